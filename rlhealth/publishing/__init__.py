"""Publishing: writes a verdict into the tracker that a run was read from, only if a flag asks for it."""
