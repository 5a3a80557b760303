"""Text logs, one row at a time: JSON, CSV, console output and trainer_state.json."""
