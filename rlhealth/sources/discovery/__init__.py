"""Finds the runs at a place: the registry of sources, the walk's files by tracker, several logs of one run. Imports the trackers and below."""
