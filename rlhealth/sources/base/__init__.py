"""What every reader of logs stands on: the Reader protocol, files that grow, numbers and rows as trackers write them. Imports run.py and below."""
