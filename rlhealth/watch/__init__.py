"""Watching: runs that are followed while they are written, what changed, and what is done about it.

May import reports, engine, sources and below.
"""
