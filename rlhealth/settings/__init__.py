"""Settings of a project: rlhealth.toml or pyproject.toml, and their schema. May import rules and below."""
