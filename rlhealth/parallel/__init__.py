"""Many runs at once: processes of this machine, or tasks of a Ray cluster. May import sources and below."""
