"""`python -m rlhealth`."""

from rlhealth.cli.app import main

main()
