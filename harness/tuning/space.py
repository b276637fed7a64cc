"""What values a free parameter may take, as it is written, and the whole space of them.

1000..64000:log      from 1000 to 64000, on a logarithmic scale
0..1                 from 0 to 1, evenly; whole numbers where both ends are
'start','end'        these values, as Python literals
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ...scenarios.errors import SpecError
from ...scenarios.spec import meant
from .asked import Values

DIGITS = 3
"""Of what is tried, so that it can be read: 8120 and not 8123, unless a range is narrower than that."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers from one to another."""

    low: float
    high: float
    log: bool
    whole: bool

    @property
    def size(self) -> int | None:
        """How many there are; None = too many to count."""
        if not self.whole:
            return 1 if self.low == self.high else None
        return len({self.rounded(value) for value in range(int(self.low), int(self.high) + 1)}) if self._few else None

    @property
    def _few(self) -> bool:
        return self.high - self.low < 10_000

    def values(self) -> list[object]:
        """All of them, of a range that has a size."""
        if not self.whole:
            return [self.low]
        return list(dict.fromkeys(self.rounded(value) for value in range(int(self.low), int(self.high) + 1)))

    def rounded(self, value: float) -> float:
        """With few digits, within the range."""
        if value and math.isfinite(value):
            value = round(value, DIGITS - 1 - math.floor(math.log10(abs(value))))
        value = min(max(value, self.low), self.high)
        return round(value) if self.whole else float(value)

    def holds(self, value: object) -> bool:
        """Whether a value is one of them."""
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and self.low <= value <= self.high  # type: ignore[operator]

    def __str__(self) -> str:
        low, high = (f"{int(end)}" if self.whole else f"{end:g}" for end in (self.low, self.high))
        return f"{low}..{high}{':log' * self.log}"


@dataclass(frozen=True, slots=True)
class Choices:
    """One of some values."""

    of: tuple[object, ...]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.of)

    def values(self) -> list[object]:
        """All of them."""
        return list(self.of)

    def holds(self, value: object) -> bool:
        """Whether a value is one of them: True is not 1."""
        return any(value == each and type(value) is type(each) for each in self.of)

    def __str__(self) -> str:
        return ",".join(map(repr, self.of))


Range = Numbers | Choices


@dataclass(frozen=True)
class Space:
    """The ranges of all free parameters, and where each is from."""

    ranges: Mapping[str, Range]
    why: Mapping[str, str]
    beyond: Mapping[str, tuple[float, ...]]
    """The ends of each that the strategy would take more of: what is best there may be better beyond."""

    def size(self) -> int | None:
        """How many settings there are; None = too many to count."""
        sizes = [each.size for each in self.ranges.values()]
        known = [size for size in sizes if size is not None]
        return math.prod(known) if len(known) == len(sizes) else None

    def all(self) -> Iterator[Values]:
        """Every setting, of a space that has a size."""
        for values in product(*(each.values() for each in self.ranges.values())):
            yield dict(zip(self.ranges, values, strict=True))


def written(texts: Sequence[str], names: Sequence[str]) -> dict[str, Range]:
    """The ranges that the user gives, `name=range` each. Raises SpecError."""
    made: dict[str, Range] = {}
    for text in texts:
        name, found, given = text.partition("=")
        name = name.strip()
        if not found:
            raise SpecError(f"--space {text!r}: write it as name=low..high, name=low..high:log or name=value,value")
        if name not in names:
            raise SpecError(f"--space {text!r}: {name!r} is not to be found{meant(name, dict.fromkeys(names))}")
        if name in made:
            raise SpecError(f"--space {text!r}: {name!r} is given twice")
        made[name] = _range(given.strip(), text)
    return made


def _range(given: str, text: str) -> Range:
    plain, _, scale = given.partition(":") if ".." in given else (given, "", "")
    low, dots, high = plain.partition("..")
    if dots and scale in ("", "log"):
        ends = [_literal(each, text) for each in (low, high)]
        return _numbers(ends, scale == "log", text)
    if dots:
        raise SpecError(f"--space {text!r}: {scale!r} is no scale: there is log, and none")
    values = _literal(f"({given},)", text)
    assert isinstance(values, tuple)
    if not values:
        raise SpecError(f"--space {text!r}: no value is given")
    return Choices(tuple(dict.fromkeys(values)) if len({type(each) for each in values}) == 1 else values)


def _numbers(ends: list[object], log: bool, text: str) -> Numbers:
    low, high = ends
    if not all(isinstance(end, (int, float)) and not isinstance(end, bool) and math.isfinite(end) for end in ends):
        raise SpecError(f"--space {text!r}: both ends must be numbers")
    assert isinstance(low, (int, float))
    assert isinstance(high, (int, float))
    if low > high:
        raise SpecError(f"--space {text!r}: {low} is more than {high}")
    if log and low <= 0:
        raise SpecError(f"--space {text!r}: a logarithmic scale begins above 0, not at {low}")
    return Numbers(low, high, log, isinstance(low, int) and isinstance(high, int))


def _literal(text: str, whole: str) -> object:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise SpecError(f"--space {whole!r}: {text.strip()!r} is no plain value (quote text: 'start')") from None
