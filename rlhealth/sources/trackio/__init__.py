"""Trackio: projects in its SQLite database, also while they are written."""
