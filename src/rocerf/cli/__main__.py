"""``python -m rocerf.cli``."""

from rocerf.cli.app import main

main()
