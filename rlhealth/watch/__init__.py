"""Watching: runs are followed while they are written, and changes are reported and acted on.

May import reports, engine, sources and below.
"""
