"""Canonical metric names: which trainer wrote this run, what each of its tags means, in which unit."""

from rlhealth.metrics.aliases import read_aliases
from rlhealth.metrics.catalogue import Meaning, meaning, meanings
from rlhealth.metrics.metric import Metric
from rlhealth.metrics.translation import Translation, translate

__all__ = ["Meaning", "Metric", "Translation", "meaning", "meanings", "read_aliases", "translate"]
