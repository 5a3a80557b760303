"""Completions: reads the texts that a run logged, measures them at each step, and shows them on request."""
