"""Many runs at once, in processes of this machine or as tasks of a Ray cluster. May import sources and below."""
