"""MLflow: runs in an `mlruns/` folder, or in the SQLite database of its tracking server, read where they lie."""
