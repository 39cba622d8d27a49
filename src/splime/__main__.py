"""The program `splime`, also called as `python -m splime`."""

import os
import signal
import sys


def main() -> None:
    """Run the program, from before its modules are imported."""
    # While they are, Ctrl-C ends the process at once: there is nothing to clean up.
    before = signal.getsignal(signal.SIGINT)
    if before == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # closed (`2>&-`): a file would get this number, and messages written to it
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8")

    from splime.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
