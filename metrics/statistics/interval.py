"""A mean with its interval: what every table of means shows."""

from __future__ import annotations

from typing import NamedTuple

from ..value import Value


class Interval(NamedTuple):
    """A mean and its 95 % interval. Both ends are missing where there is one seed or one conversation only."""

    mean: float
    low: Value
    high: Value
