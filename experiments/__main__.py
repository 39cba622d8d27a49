"""The program `python -m experiments`."""

from experiments.commands import main

if __name__ == "__main__":
    main()
