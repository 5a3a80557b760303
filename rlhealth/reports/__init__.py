"""Reports: one file a format; each takes a finished answer and returns text."""
