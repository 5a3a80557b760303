"""rlhealth: reads the logs a reinforcement-learning run has written and says whether it is healthy."""

__version__ = "0.1.0"
