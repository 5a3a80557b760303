"""Publishing: a verdict written into the tracker that a run was read from, only ever by a flag."""
