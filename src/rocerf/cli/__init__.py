"""The command line: one thin command for each verb."""

from rocerf.cli.app import main

__all__ = ["main"]
