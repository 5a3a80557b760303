"""Canonical metric names: which trainer wrote this run, what each of its tags means, in which unit."""
