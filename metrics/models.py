"""What is known of models: their context windows, from litellm's bundled map, read as a file.

litellm is never imported: it takes seconds and tries the network. The file inside its wheel is dated by its version.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import msgspec

from ..scenarios.errors import SpecError
from ..scenarios.spec import nearest

_MAP = "litellm/model_prices_and_context_window_backup.json"


@cache
def model_map() -> dict[str, dict[str, Any]]:
    """litellm's map of prices and context windows by model name (4 000 entries, 3 MB, 30 ms)."""
    path = distribution("litellm").locate_file(_MAP)
    found: dict[str, dict[str, Any]] = msgspec.json.decode(Path(str(path)).read_bytes())
    return found


def map_version() -> str:
    """What the map is dated by: `litellm 1.106.2`."""
    return f"litellm {version('litellm')}"


def window_of(model: str) -> int:
    """A model's context window: the tokens that a request may hold. Raises SpecError with the nearest names."""
    known = model_map()
    entry = known.get(model) or known.get(model.rpartition("/")[2])
    if entry is None:
        raise SpecError(f"unknown model {model!r}{nearest(model, known)}")
    size = entry.get("max_input_tokens") or entry.get("max_tokens")
    if not isinstance(size, int):
        raise SpecError(f"no context window is known for model {model!r}: give max_tokens")
    return size
