"""DVCLive: a folder with a table per metric below `plots/metrics/`."""
