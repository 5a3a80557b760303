"""Trackio: the runs in its SQLite databases, also while they are written."""
