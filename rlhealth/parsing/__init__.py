"""Strict parsing: YAML, validated values, and the position of a key in a TOML file. Imports only errors."""
