"""Missing is a value: a figure that could not be measured says why, and is never 0."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

if TYPE_CHECKING:  # whatever may be missing needs this module, and importing pandas takes a quarter of a second
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Missing:
    """No figure, and why.

    `unusable` is of models: there is a reply, and asking again would bring the same. `fixed` and `few` are of
    intervals: the figure has one value by construction, or too few independent units carry it.
    """

    why: Literal["failed", "unusable", "unsupported", "undefined", "fixed", "few"]
    detail: str = ""
    across: tuple[float, float] | UnsetType = UNSET
    """The lowest and highest figure of a single unit, in place of an interval; only of `few`, and not in other JSON."""

    def __bool__(self) -> bool:
        raise TypeError("a missing value is neither true nor false: match on it")


Value = float | int | Missing

Form = Literal["total", "ratio", "saving"]  # how a figure follows from its two sums

Column = NDArray[Any]  # a number for each row, whole or not
Of = Callable[["pd.DataFrame"], Any]  # a column of a frame, or a function of its columns


def value(form: Form, top: float, bottom: float) -> float:
    """Return the figure that two sums make. Raises ZeroDivisionError where it is undefined."""
    match form:
        case "total":
            return top
        case "ratio":
            return top / bottom
        case "saving":
            return 1 - top / bottom


@dataclass(frozen=True, slots=True)
class Total:
    """A sum. `unknown` is the reason to give where a row has no number."""

    top: Of
    unknown: str = "a row has no number"
    form: Form = "total"

    def parts(self, rows: pd.DataFrame) -> tuple[Column, Column]:
        """Return what each row adds to the sum, and a column of ones."""
        top = np.asarray(self.top(rows))
        return top, np.ones(len(top), np.int64)

    def __call__(self, rows: pd.DataFrame) -> Value:
        top, _ = self.parts(rows)
        return self.of_column(top)

    def of_column(self, top: Column) -> Value:
        """Return the sum of what rows add to it."""
        if np.isnan(top).any():
            return Missing("unsupported", self.unknown)
        return int(top.sum()) if top.dtype.kind in "iub" else math.fsum(top)


@dataclass(frozen=True, slots=True)
class Ratio:
    """One sum over another. `undefined` is the reason to give where the lower sum is 0.

    Where `has` is true of no row, the strategy lacks what is measured, and `lacking` is the reason.
    """

    top: Of
    bottom: Of
    undefined: str
    form: Form = "ratio"
    has: Of | None = None
    lacking: str = ""

    def parts(self, rows: pd.DataFrame) -> tuple[Column, Column]:
        """Return what each row adds to the upper and to the lower sum."""
        return np.asarray(self.top(rows)), np.asarray(self.bottom(rows))

    def __call__(self, rows: pd.DataFrame) -> Value:
        if self.has is not None and len(rows) and not np.any(self.has(rows)):
            return Missing("unsupported", self.lacking)
        return self.over(*self.parts(rows))

    def over(self, top: Column, bottom: Column) -> Value:
        """Return the figure of some rows from their parts."""
        below = float(bottom.sum())
        return value(self.form, float(top.sum()), below) if below else Missing("undefined", self.undefined)


@dataclass(frozen=True, slots=True)
class Saving(Ratio):
    """1 minus a ratio: 0.6 = 60 % fewer; negative = more."""

    form: Form = "saving"


Summed = Total | Ratio

H = TypeVar("H", bound=Hashable)

VARIES = "…"
# UUIDs, and numbers that are no part of a name: not the 4 of gpt-4o.
_NUMBERS = re.compile(r"(\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<![\w-])\d+(?:[.,]\d+)*(?![\w-]))")


class Reason(NamedTuple):
    """A group of texts that differ in numbers only, and its size."""

    text: str  # with `…` in place of the numbers that differ
    times: int


def grouped(texts: Iterable[tuple[H, str]]) -> list[tuple[H, Reason]]:
    """Group texts of the same key that differ in numbers only, most frequent first, then in order of arrival."""
    groups = defaultdict[tuple[H, tuple[str, ...]], list[list[str]]](list)
    for key, text in texts:
        parts = _NUMBERS.split(text)  # text and numbers in turn
        groups[key, tuple(parts[::2])].append(parts)
    reasons = []
    for (key, _), alike in groups.items():
        shown = (part if all(of == part for of in same) else VARIES for part, *same in zip(*alike, strict=True))
        reasons.append((key, Reason("".join(shown), len(alike))))
    return sorted(reasons, key=lambda reason: -reason[1].times)
