"""The program `ctxbench`, also as `python -m ctxbench`.

It imports nothing by itself. The commands take some 0.2 s to import, and Ctrl-C within them would print Python's trace,
or be lost where a library catches it.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run `ctxbench` and exit with its code."""
    try:
        import signal

        # Until the commands are imported there is nothing to clean up (cli/streams.py).
        for name in {"SIGINT", "SIGTERM", "SIGHUP"} & vars(signal).keys():
            if signal.getsignal(number := signal.Signals[name]) is not signal.SIG_IGN:
                signal.signal(number, _stop_at_once)
        from ctxbench.cli import main as run

        run()
    except KeyboardInterrupt:  # before the signals are listened to, or by a strategy
        sys.stderr.write("stopped\n")
        sys.exit(130)


def _stop_at_once(number: int, _frame: object) -> None:
    os.write(2, b"stopped\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
