"""DVCLive: a folder with a table a metric below `plots/metrics/`."""
