"""`python -m cuzk.cli`, which is `cuzk`."""

from cuzk.cli import main

main()
