"""Completions: the texts that a run wrote down, read, measured a step, and shown where that was asked for."""
