"""Completions: the texts that a run wrote down, read, measured at each step, and shown where that was asked for."""
