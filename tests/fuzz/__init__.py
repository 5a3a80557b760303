"""Fuzzing: every reader, the files a user writes and every report, fed what nobody meant to write: `python -m
tests.fuzz --seconds 60`.
"""
