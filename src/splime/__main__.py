"""`python -m splime`."""

from splime.cli.main import main

main()
