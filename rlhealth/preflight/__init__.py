"""Before a long run: which of its settings will hurt, from a config file, a script, a notebook or a run's own
settings."""
