"""Comparison with known-good runs: their envelope, and which metric left it first.

May import engine, sources, parallel and below.
"""
