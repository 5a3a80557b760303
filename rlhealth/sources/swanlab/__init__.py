"""SwanLab's local files: `run-<id>.swanlab`, written by its offline and local modes."""
