"""`python -m rlhealth`."""

from rlhealth.cli import main

main()
