"""Parse the ranges of free parameters, and derive the whole search space of a strategy.

1000..64000:log      from 1000 to 64000, on a logarithmic scale
0..1                 from 0 to 1, evenly; whole numbers where both ends are
'start','end'        these values, as Python literals
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from ctxbench.scenarios import spec as text_of
from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.spec import suggestion
from ctxbench.strategies import plugins
from ctxbench.strategies.chain import parse, spec, strategies

DIGITS = 3
"""Significant digits of the settings tried, so that they can be read: 8120, not 8123, unless a range is narrower."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """A range of numbers."""

    low: float
    high: float
    log: bool
    whole: bool

    @property
    def size(self) -> int | None:
        """Number of values; None = too many to count."""
        if not self.whole:
            return 1 if self.low == self.high else None
        return len(self.values()) if self.high - self.low < 10_000 else None

    def values(self) -> list[object]:
        """Return all values of a range that has a size."""
        if not self.whole:
            return [self.low]
        return list(dict.fromkeys(self.rounded(value) for value in range(int(self.low), int(self.high) + 1)))

    def rounded(self, value: float) -> float:
        """Return a number with few digits, within the range."""
        if value and math.isfinite(value):
            # log10 of 8123 is 3.9, so it is rounded to -1 decimals: 8120. 0.01234 has -1.9: 4 decimals, 0.0123.
            value = round(value, DIGITS - 1 - math.floor(math.log10(abs(value))))
        value = min(max(value, self.low), self.high)
        return round(value) if self.whole else float(value)

    def holds(self, value: object) -> bool:
        """Return whether a value is in the range."""
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and self.low <= value <= self.high  # type: ignore[operator]

    def __str__(self) -> str:
        low, high = (f"{int(end)}" if self.whole else f"{end:g}" for end in (self.low, self.high))
        return f"{low}..{high}{':log' * self.log}"


@dataclass(frozen=True, slots=True)
class Choices:
    """A choice of some values."""

    of: tuple[object, ...]

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.of)

    def values(self) -> list[object]:
        """Return all values."""
        return list(self.of)

    def holds(self, value: object) -> bool:
        """Return whether a value is one of them: True is not 1."""
        return any(value == choice and type(value) is type(choice) for choice in self.of)

    def __str__(self) -> str:
        return ",".join(map(repr, self.of))


Range = Numbers | Choices


@dataclass(frozen=True)
class SearchSpace:
    """The ranges of all free parameters, and the origin of each range."""

    ranges: Mapping[str, Range]
    why: Mapping[str, str]
    beyond: Mapping[str, tuple[float, ...]]
    """The ends of each range past which the strategy takes more: better settings may lie beyond."""

    def size(self) -> int | None:
        """Return the number of settings; None = too many to count."""
        sizes = [range_.size for range_ in self.ranges.values()]
        countable = [size for size in sizes if size is not None]
        return math.prod(countable) if len(countable) == len(sizes) else None

    def all(self) -> Iterator[Values]:
        """Yield every setting of a space that has a size."""
        for values in product(*(range_.values() for range_ in self.ranges.values())):
            yield dict(zip(self.ranges, values, strict=True))


def written(texts: Sequence[str], names: Sequence[str]) -> dict[str, Range]:
    """Parse the ranges that the user gives, `name=range` each. Raises SpecError."""
    ranges: dict[str, Range] = {}
    for text in texts:
        name, equals, range_text = text.partition("=")
        name = name.strip()
        if not equals:
            raise SpecError(f"--space {text!r}: write it as name=low..high, name=low..high:log or name=value,value")
        if name not in names:
            raise SpecError(f"--space {text!r}: {name!r} is not to be found{suggestion(name, dict.fromkeys(names))}")
        if name in ranges:
            raise SpecError(f"--space {text!r}: {name!r} is given twice")
        ranges[name] = _range(range_text.strip(), text)
    return ranges


def _range(range_text: str, text: str) -> Range:
    plain, _, scale = range_text.partition(":") if ".." in range_text else (range_text, "", "")
    low, dots, high = plain.partition("..")
    if dots and scale in ("", "log"):
        ends = [_literal(end, text) for end in (low, high)]
        return _numbers(ends, scale == "log", text)
    if dots:
        raise SpecError(f"--space {text!r}: {scale!r} is no scale: there is log, and none")
    # With its comma one value is a tuple as well, and a comma within quotes or brackets separates nothing.
    values = _literal(f"({range_text},)", text)
    assert isinstance(values, tuple)
    if not values:
        raise SpecError(f"--space {text!r}: no value is given")
    # As keys 1, 1.0 and True are one: values of several types are left as they are.
    return Choices(tuple(dict.fromkeys(values)) if len({type(value) for value in values}) == 1 else values)


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
        value = ast.literal_eval(text.strip())
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise SpecError(f"--space {whole!r}: {text.strip()!r} is no plain value (quote text: 'start')") from None
    if text_of.is_beyond(value):
        raise SpecError(f"--space {whole[:60]!r}: no number may be beyond {text_of.LARGEST:,}")
    return value


WIDE = 8
"""How many times its default a number may be, and how small a part of it."""
LONG = 64
"""The smallest part of a conversation that is tried as a limit."""
NEAR_END = 0.01
"""How close to the end of a share's range it is searched, where the end itself is out of bounds."""
OF_LENGTH = ("max_tokens", "messages")
"""Parameters that limit what is sent."""


def space(strategy: SearchedStrategy, given: Mapping[str, Range], longest: Mapping[str, int]) -> SearchSpace:
    """Return the search space of a strategy. `given` are the user's ranges. `longest` is the longest conversation by
    each name of OF_LENGTH.

    Raises SpecError for a parameter whose range is not known.
    """
    ranges: dict[str, Range] = {}
    why: dict[str, str] = {}
    beyond: dict[str, tuple[float, ...]] = {}
    for free in strategy.free:
        if free.name in given:
            ranges[free.name], why[free.name] = _fitting(given[free.name], free), "given"
        else:
            ranges[free.name], why[free.name] = _derived(free, longest)
        whole = free.parameter in OF_LENGTH and free.name not in given
        beyond[free.name] = () if whole else tuple(_open_ends(ranges[free.name], free))
    return SearchSpace(ranges, why, beyond)


def _open_ends(range_: Range, free: Free) -> Iterator[float]:
    """Yield the ends of a range past which the strategy takes numbers."""
    if not isinstance(range_, Numbers):
        return
    for end, past in ((range_.low, range_.low / 2), (range_.high, range_.high * 2)):
        more = round(past) if range_.whole else past
        if more != end and free.takes(more):
            yield end


def _fitting(range_: Range, free: Free) -> Range:
    """Return a given range as the parameter takes it: whole numbers stand for fractions too."""
    kinds = _kinds(free.hint)
    if isinstance(range_, Numbers):
        if not {int, float} & set(kinds):
            raise SpecError(
                f"--space {free.name}={range_}: {free.name} is no number: give its values, name=value,value"
            )
        if float not in kinds and not range_.whole:
            raise SpecError(f"--space {free.name}={range_}: {free.name} takes whole numbers")
        return Numbers(range_.low, range_.high, range_.log, int in kinds and range_.whole)
    return range_


def _derived(free: Free, longest: Mapping[str, int]) -> tuple[Range, str]:
    kinds = _kinds(free.hint)
    if kinds == (bool,):
        return Choices((False, True)), "both"
    if get_origin(free.hint) is Literal:
        return Choices(get_args(free.hint)), "every value that there is"
    number = free.default
    if isinstance(number, (int, float)) and number > 0 and {int, float} & set(kinds):
        if float in kinds and number <= 1 and not free.takes(1 + NEAR_END) and not free.takes(-NEAR_END):
            low, high = 0.0 if free.takes(0.0) else NEAR_END, 1.0 if free.takes(1.0) else 1 - NEAR_END
            return Numbers(low, high, False, False), "a share"
        return _around(number, int in kinds, free), f"around its default, {number}"
    if int in kinds and number is None and free.parameter in OF_LENGTH:
        most = longest[free.parameter]
        low = max(1, most // LONG)
        return Numbers(low, max(low, most), True, True), "up to the longest conversation"
    raise SpecError(
        f"no range of {free.name!r} follows from its type and default: give it, "
        f"--space '{free.name}=low..high' or --space '{free.name}=value,value'"
    )


def _around(number: float, whole: bool, free: Free) -> Numbers:
    """Return a range as far around a number, by halves and doubles, as the parameter's bounds allow."""
    low = high = number
    for down in (2, 4, WIDE):
        smaller = max(1, round(number / down)) if whole else number / down
        if not free.takes(smaller):
            break
        low = smaller
    for up in (2, 4, WIDE):
        if not free.takes(number * up):
            break
        high = number * up
    return Numbers(low, high, low < high, whole)


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Return the types that a parameter may have, without None."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(kind for kind in get_args(hint) if kind is not NoneType)
    return (hint,)


# Quoted texts come first in the pattern and are matched whole, so that a "=?" in one of them is no free parameter.
_TEXT_OR_FREE = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|=\s*(?P<free>\?)""")
_FREE = "?"

Values = Mapping[str, object]
"""Values of free parameters, by their names in the whole chain."""


@dataclass(frozen=True, slots=True)
class Free:
    """One free parameter."""

    name: str
    """In the chain: `max_tokens`, or `window.max_tokens` where other stages have a free parameter of that name."""
    parameter: str
    stage: int
    hint: Any
    default: object
    """None where it has none."""
    bounds: msgspec.Meta | None
    """Bounds of its field. Checks across parameters are not known here: a setting that one refuses fails."""

    def takes(self, number: float) -> bool:
        """Return whether a number is within the bounds."""
        return self.bounds is None or text_of.is_within(number, self.bounds)


@dataclass(frozen=True, slots=True)
class SearchedStrategy:
    """A strategy with free parameters."""

    text: str
    """As written, with single spaces."""
    calls: tuple[text_of.SpecCall, ...]
    free: tuple[Free, ...]

    def names(self) -> list[str]:
        """Return the names of the stages; the name of a file includes the digest of its content."""
        return [plugins.name_of(_kind(call)) or call.name for call in self.calls]

    def at(self, values: Values) -> str:
        """Return the text of the strategy with these values; unnamed parameters have their defaults.

        Raises SpecError for values that the strategy does not take.
        """
        by_place = {(free.stage, free.parameter): values[free.name] for free in self.free if free.name in values}
        stages = []
        for at, call in enumerate(self.calls):
            parameters = {
                name: by_place.get((at, name), value)
                for name, value in call.parameters.items()
                if value != _FREE or (at, name) in by_place
            }
            stages.append(f"{call.name!r}({', '.join(f'{name}={value!r}' for name, value in parameters.items())})")
        return spec(parse(" | ".join(stages)))


def searched(text: str) -> SearchedStrategy:
    """Parse a strategy with free parameters. Raises SpecError for an unknown strategy, or one without any."""
    written = _TEXT_OR_FREE.sub(lambda match: f"={_FREE!r}" if match.group("free") else match.group(), text)
    calls = tuple(text_of.calls(plugins.quote_files(written), "strategy"))
    free = [
        _free(call, at, name)
        for at, call in enumerate(calls)
        for name, value in call.parameters.items()
        if value == _FREE
    ]
    if not free:
        takes = [_takes(call.name, _kind(call)) for call in calls]
        raise SpecError(f"nothing is to be found in {text!r}: write name=? for each parameter to search{takes[0]}")
    return SearchedStrategy(" ".join(text.split()), calls, tuple(_named(free, calls)))


def _free(call: text_of.SpecCall, at: int, name: str) -> Free:
    kind = _kind(call)
    fields = {field.name: field for field in text_of.parameters(kind)}
    if name not in fields:
        takes = f"it takes {', '.join(fields) or 'none'}"
        raise SpecError(f"strategy {call.name!r} has no parameter {name!r}; {takes}{text_of.nearest(name, fields)}")
    default = fields[name].default
    plain = isinstance(default, (bool, int, float, str))
    return Free(name, name, at, get_type_hints(kind)[name], default if plain else None, text_of.bounds(kind).get(name))


def _kind(call: text_of.SpecCall) -> type[Any]:
    """Return the class of a stage. An unknown stage raises the SpecError that a run would."""
    if plugins.is_file(call.name):
        return plugins.load(call.name)
    kinds = strategies()
    if call.name not in kinds:
        parse(f"{call.name!r}({', '.join(f'{name}={value!r}' for name, value in call.parameters.items())})")
        raise SpecError(f"strategy {call.name!r} has no parameters to search")
    return kinds[call.name]


def _named(free: list[Free], calls: tuple[text_of.SpecCall, ...]) -> list[Free]:
    """Return the parameters, each with a unique name: its own, with its stage's, or with its stage's number."""
    named = []
    for parameter in free:
        namesakes = [other for other in free if other.parameter == parameter.parameter]
        stage = calls[parameter.stage].name
        alike = [other for other in namesakes if calls[other.stage].name == stage]
        whose = stage if len(alike) == 1 else f"{parameter.stage + 1}"
        name = parameter.parameter if len(namesakes) == 1 else f"{whose}.{parameter.parameter}"
        named.append(replace(parameter, name=name))
    return named


def _takes(name: str, kind: type[Any]) -> str:
    """Return the parameters of a stage, in words."""
    names = [field.name for field in text_of.parameters(kind)]
    return f" ({name} takes {', '.join(names)})" if names else ""
