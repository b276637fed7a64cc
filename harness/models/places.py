"""Where models, their replies and their weights are kept on this machine when nothing else is said."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The user's cache of ctxbench, which may not exist yet: `$XDG_CACHE_HOME/ctxbench`, or `~/.cache/ctxbench`."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "ctxbench"
