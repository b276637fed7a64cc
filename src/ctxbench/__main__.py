"""The program `ctxbench`, also as `python -m ctxbench`: `src/ctxbench/__main__.py` is a link to this file.

It imports nothing by itself. The commands take some 0.2 s to import, and Ctrl-C within them would print Python's trace.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run `ctxbench` and exit with its code."""
    try:
        from ctxbench.cli import main as run

        run()
    except KeyboardInterrupt:  # before the signals are listened to, or by a strategy
        sys.stderr.write("stopped\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
