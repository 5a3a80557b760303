"""Finds the runs at a place: the registry of sources, files by tracker, and several logs of one run.

Imports the trackers and below.
"""
