"""Text read strictly: YAML, checked values, and where a key stands in a TOML file. Imports only errors."""
