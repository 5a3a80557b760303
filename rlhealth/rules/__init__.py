"""Rules: their schema, how rule files are found and loaded, and a rule as a sentence.

The rules themselves are the YAML files of the top-level rules/. May import metrics and parsing.
"""
