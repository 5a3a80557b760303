"""Watching: what `rlhealth.watch` is made of. Runs are followed, changes told, screens drawn, actions taken, one file each."""
