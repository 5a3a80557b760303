"""Canonical metric names: which trainer logged a run, what each of its tags means, and in which unit.

May import run and parsing.
"""

from rlhealth.metrics.aliases import read_aliases
from rlhealth.metrics.catalogue import Meaning, meaning, meanings
from rlhealth.metrics.metric import Metric
from rlhealth.metrics.translation import Translation, translate

__all__ = ["Meaning", "Metric", "Translation", "meaning", "meanings", "read_aliases", "translate"]
