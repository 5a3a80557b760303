"""TensorBoard event files: framing, records, values, settings, and the run that they belong to."""
