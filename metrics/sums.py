"""Figures that are a sum over rows, or made of two sums: they fall into parts by conversation, and can be put together.

Total(sent)           Σ sent
Ratio(kept, wanted)   Σ kept / Σ wanted: a conversation weighs what it wants
Saving(sent, full)    1 − Σ sent / Σ full

saving = Saving(lambda steps: steps.tokens_sent, lambda steps: steps.tokens_full, "no steps")
saving(steps) == saving.value(*map(sum, saving.parts(steps)))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .value import Missing, Value

Form = Literal["total", "ratio", "saving"]
"""How a figure is made of its two sums."""

Column = NDArray[Any]
"""A number for each row, whole or not."""
Of = Callable[[pd.DataFrame], Any]
"""A column of a frame, or what is made of its columns."""


def value(form: Form, top: float, bottom: float) -> float:
    """The figure that two sums make. ZeroDivisionError where there is none."""
    match form:
        case "total":
            return top
        case "ratio":
            return top / bottom
        case "saving":
            return 1 - top / bottom


@dataclass(frozen=True, slots=True)
class Total:
    """A sum. `unknown` says why a row has no number, where that can be."""

    top: Of
    unknown: str = "a row has no number"
    form: Form = "total"

    def parts(self, rows: pd.DataFrame) -> tuple[Column, Column]:
        """What each row adds to the sum. The other column is of ones."""
        return np.asarray(self.top(rows)), np.ones(len(rows), np.int64)

    def __call__(self, rows: pd.DataFrame) -> Value:
        top, _ = self.parts(rows)
        if np.isnan(top).any():
            return Missing("unsupported", self.unknown)
        return int(top.sum()) if top.dtype.kind in "iub" else float(top.sum())


@dataclass(frozen=True, slots=True)
class Ratio:
    """One sum over another. `undefined` says why there is none, where the other is 0."""

    top: Of
    bottom: Of
    undefined: str
    form: Form = "ratio"

    def parts(self, rows: pd.DataFrame) -> tuple[Column, Column]:
        """What each row adds to either sum."""
        return np.asarray(self.top(rows)), np.asarray(self.bottom(rows))

    def __call__(self, rows: pd.DataFrame) -> Value:
        top, bottom = (float(column.sum()) for column in self.parts(rows))
        return value(self.form, top, bottom) if bottom else Missing("undefined", self.undefined)


@dataclass(frozen=True, slots=True)
class Saving(Ratio):
    """What a ratio leaves of 1: 0.6 = 60 % fewer; negative = more."""

    form: Form = "saving"


Summed = Total | Ratio
