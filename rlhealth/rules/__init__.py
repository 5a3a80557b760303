"""Rules: their schema, how files are found and read, and a rule in words.

The rules themselves are the YAML files of the top-level rules/. May import metrics and parsing.
"""
