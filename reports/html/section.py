"""What a section of the report is made of. Sections choose; templates place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from ..figures.style import written
from ..render import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class InlineFigure:
    """A figure, and what stands under it. It is drawn when it is first asked for."""

    name: str
    """Of its files, without an ending."""
    title: str
    about: str
    """What it shows, in words: for who reads how, and for who cannot see it."""
    draw: Callable[[], Figure]

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """By the endings of their names."""
        return written(self.draw())


@dataclass(frozen=True)
class ReportSection:
    """A part of the report with a title."""

    name: str
    """Where links go, and of no other section."""
    title: str
    lead: str
    """What is asked here and how to read the answer."""
    parts: tuple[Table | InlineFigure, ...] = ()
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Exact figures, each written as a CSV file of that name."""
    template: str = "section.html"

    @property
    def figures(self) -> list[InlineFigure]:
        """Those among its parts."""
        return [part for part in self.parts if isinstance(part, InlineFigure)]
