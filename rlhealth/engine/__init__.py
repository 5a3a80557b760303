"""The engine: measures, operands, episodes and causes, which turn a run and rules into findings.

May import rules, metrics, verdict and run.
"""
