"""Sources: where runs are logged, found and read into `Run`. Imports run.py and below.

base/ is what every reader uses; then one package for each tracker (tensorboard, wandb, trackio, rows) and remote/ for
object stores; discovery/ finds the runs at a place and chooses the reader. Imports go base < trackers < discovery only.
"""

from rlhealth.sources.discovery.find import find_readers
from rlhealth.sources.discovery.opening import open_all, open_runs

__all__ = ["find_readers", "open_all", "open_runs"]
