"""Settings of a project: rlhealth.toml or pyproject.toml, their schema and where each is found.

May import rules and below.
"""
