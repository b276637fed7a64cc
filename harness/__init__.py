"""Running strategies over recordings: replay, the matrix, its store. `cli/` is the outermost layer.

For programs and notebooks: `ctxbench.harness.load(folder)` is a finished run as data frames. It is imported when it is
asked for, as the command line must start quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .loading import load as load


def __getattr__(name: str) -> object:
    if name == "load":
        from .loading import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
