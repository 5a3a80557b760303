"""TensorBoard event files: framing, records, values, settings, and the run that they make up."""
