"""The command line: one file a command. May import everything; nothing imports it."""
