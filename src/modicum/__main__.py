"""Run the command line with ``python -m modicum``."""

from modicum.cli.main import main

if __name__ == "__main__":
    main()
