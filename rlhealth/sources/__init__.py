"""Sources: every place where a run is written, found and read into `Run`."""
