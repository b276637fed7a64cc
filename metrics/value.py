"""Missing is a value: a figure that could not be measured says why, and is never 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Missing:
    """No figure, and why."""

    why: Literal["failed", "unsupported", "undefined"]
    detail: str = ""

    def __bool__(self) -> bool:
        raise TypeError("a missing value is neither true nor false: match on it")


Value = float | int | Missing
