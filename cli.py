"""Run cuzk from a checkout: `python cli.py --help`. Everything is in `cuzk.cli`."""

from cuzk.cli import main

if __name__ == "__main__":
    main()
