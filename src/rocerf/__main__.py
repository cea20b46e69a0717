"""``python -m rocerf`` is the command line."""

from rocerf.cli import main

if __name__ == "__main__":
    main()
