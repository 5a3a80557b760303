"""What every reader of logs uses: the Reader protocol, growing files, numbers and rows as trackers write them.

Imports run.py and below.
"""
