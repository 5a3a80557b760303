"""Findings, verdicts, the gate, and the baseline of accepted findings. May import metrics and run."""
