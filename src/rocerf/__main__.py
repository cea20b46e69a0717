"""``python -m rocerf``, where the command ``rocerf`` is not on the path."""

from rocerf.cli import main

main()
