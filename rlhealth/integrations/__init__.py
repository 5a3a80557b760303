"""rlhealth inside other programs: a monitor for training loops, a callback for trainers, an assertion for test suites.

May import watch and below.
"""
