"""S0, `none`: the whole history is sent. The baseline of every comparison (design document 003 §3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Desk, View


@dataclass(frozen=True, slots=True)
class Everything:
    """The whole history. A context over the model's window is not cut: it is counted as an overflow."""

    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "003 §3.1"
    fails: ClassVar[str] = "the conversation outgrows the model's window, or its bill"

    def start(self, desk: Desk) -> View:  # noqa: ARG002
        return lambda context: context
