"""What values a free parameter may take, as it is written, and the whole space of them.

1000..64000:log      from 1000 to 64000, on a logarithmic scale
0..1                 from 0 to 1, evenly; whole numbers where both ends are
'start','end'        these values, as Python literals
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ...scenarios import spec as text_of
from ...scenarios.errors import SpecError
from ...scenarios.spec import meant
from ...strategies import plugins
from ...strategies.chain import parse, spec, strategies

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
class SearchSpace:
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


WIDE = 8
"""How many times its default a number may be, and how small a part of it."""
LONG = 64
"""The smallest part of a conversation that is tried as a limit."""
NEAR_END = 0.01
"""How far within a share's range its end is, where the end itself is refused."""
OF_LENGTH = ("max_tokens", "messages")
"""Parameters that are limits of what is sent."""


def space(asked: SearchedStrategy, given: Mapping[str, Range], longest: Mapping[str, int]) -> SearchSpace:
    """The space of a strategy. `given`: the user's ranges; `longest`: of a conversation, by the names in OF_LENGTH.

    Raises SpecError for a parameter whose range is not known.
    """
    ranges: dict[str, Range] = {}
    why: dict[str, str] = {}
    beyond: dict[str, tuple[float, ...]] = {}
    for free in asked.free:
        takes = _taker(asked, free)
        if free.name in given:
            ranges[free.name], why[free.name] = _fitting(given[free.name], free), "given"
        else:
            ranges[free.name], why[free.name] = _derived(free, takes, longest)
        whole = free.parameter in OF_LENGTH and free.name not in given
        beyond[free.name] = () if whole else tuple(_open_ends(ranges[free.name], takes))
    return SearchSpace(ranges, why, beyond)


def _open_ends(range_: Range, takes: Callable[[object], bool]) -> Iterator[float]:
    """The ends of a range past which the strategy takes numbers."""
    if not isinstance(range_, Numbers):
        return
    for end, past in ((range_.low, range_.low / 2), (range_.high, range_.high * 2)):
        more = round(past) if range_.whole else past
        if more != end and takes(more):
            yield end


def _fitting(given: Range, free: Free) -> Range:
    """Whole numbers stand for numbers where the parameter is no whole one."""
    kinds = _kinds(free.hint)
    if isinstance(given, Numbers):
        if not {int, float} & set(kinds):
            raise SpecError(f"--space {free.name}={given}: {free.name} is no number: give its values, name=value,value")
        if float not in kinds and not given.whole:
            raise SpecError(f"--space {free.name}={given}: {free.name} takes whole numbers")
        return Numbers(given.low, given.high, given.log, int in kinds and given.whole)
    return given


def _derived(free: Free, takes: Callable[[object], bool], longest: Mapping[str, int]) -> tuple[Range, str]:
    kinds = _kinds(free.hint)
    if kinds == (bool,):
        return Choices((False, True)), "both"
    if get_origin(free.hint) is Literal:
        return Choices(tuple(each for each in get_args(free.hint) if takes(each))), "every value that there is"
    number = free.default
    if isinstance(number, (int, float)) and number > 0 and {int, float} & set(kinds):
        if float in kinds and number <= 1 and not takes(1 + NEAR_END) and not takes(-NEAR_END):
            return _share(takes), "a share"
        return _around(number, int in kinds, takes), f"around its default, {number}"
    if int in kinds and number is None and free.parameter in OF_LENGTH:
        most = longest[free.parameter]
        low = max(1, most // LONG)
        return Numbers(low, max(low, most), True, True), "up to the longest conversation"
    raise SpecError(
        f"no range of {free.name!r} follows from its type and default: give it, "
        f"--space '{free.name}=low..high' or --space '{free.name}=value,value'"
    )


def _share(takes: Callable[[object], bool]) -> Numbers:
    return Numbers(0.0 if takes(0.0) else NEAR_END, 1.0 if takes(1.0) else 1 - NEAR_END, False, False)


def _around(number: float, whole: bool, takes: Callable[[object], bool]) -> Numbers:
    """As far around a number, by halves and doubles, as the strategy takes."""
    low = high = number
    for down in (2, 4, WIDE):
        each = max(1, round(number / down)) if whole else number / down
        if not takes(each):
            break
        low = each
    for up in (2, 4, WIDE):
        if not takes(number * up):
            break
        high = number * up
    return Numbers(low, high, low < high, whole)


def _taker(asked: SearchedStrategy, free: Free) -> Callable[[object], bool]:
    """Whether the strategy takes a value, all else being at its default."""

    def takes(value: object) -> bool:
        try:
            asked.at({free.name: value})
        except SpecError:
            return False
        return True

    return takes


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types that a parameter may be of, None left out."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(each for each in get_args(hint) if each is not NoneType)
    return (hint,)


_TEXT_OR_FREE = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|=\s*(?P<free>\?)""")
_FREE = "?"

Values = Mapping[str, object]
"""By the name that a free parameter has in the whole chain."""


@dataclass(frozen=True, slots=True)
class Free:
    """One parameter that is to be found."""

    name: str
    """In the chain: `max_tokens`, or `window.max_tokens` where other stages have one of that name that is free."""
    parameter: str
    stage: int
    hint: Any
    default: object
    """None where it has none."""


@dataclass(frozen=True, slots=True)
class SearchedStrategy:
    """A strategy whose free parameters are not known yet."""

    text: str
    """As it was written, but for spaces."""
    calls: tuple[text_of.SpecCall, ...]
    free: tuple[Free, ...]

    def names(self) -> list[str]:
        """Of the stages; that of a file has the digest of what is in it."""
        return [plugins.name_of(_kind(each)) or each.name for each in self.calls]

    def at(self, values: Values) -> str:
        """The text of the strategy with these values; those that are not named have their defaults.

        Raises SpecError for what the strategy does not take.
        """
        by_place = {(each.stage, each.parameter): values[each.name] for each in self.free if each.name in values}
        stages = []
        for at, call in enumerate(self.calls):
            given = {
                name: by_place.get((at, name), value)
                for name, value in call.parameters.items()
                if value != _FREE or (at, name) in by_place
            }
            stages.append(f"{call.name!r}({', '.join(f'{name}={value!r}' for name, value in given.items())})")
        return spec(parse(" | ".join(stages)))


def asked(text: str) -> SearchedStrategy:
    """Read it. Raises SpecError for what is no strategy, or has nothing to be found."""
    written = _TEXT_OR_FREE.sub(lambda found: f"={_FREE!r}" if found.group("free") else found.group(), text)
    calls = tuple(text_of.calls(plugins.quoted(written), "strategy"))
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
    known = {field.name: field for field in text_of.parameters(kind)}
    if name not in known:
        takes = f"it takes {', '.join(known) or 'none'}"
        raise SpecError(f"strategy {call.name!r} has no parameter {name!r}; {takes}{text_of.nearest(name, known)}")
    default = known[name].default
    plain = isinstance(default, (bool, int, float, str))
    return Free(name, name, at, get_type_hints(kind)[name], default if plain else None)


def _kind(call: text_of.SpecCall) -> type[Any]:
    """The class of a stage. What cannot be one raises the SpecError that a run would."""
    if plugins.is_file(call.name):
        return plugins.load(call.name)
    found = strategies()
    if call.name not in found:
        parse(f"{call.name!r}({', '.join(f'{name}={value!r}' for name, value in call.parameters.items())})")
        raise SpecError(f"strategy {call.name!r} has no parameters to search")
    return found[call.name]


def _named(free: list[Free], calls: tuple[text_of.SpecCall, ...]) -> list[Free]:
    """Each with a name that no other has: its own, with its stage's, or with its stage's number."""
    made = []
    for each in free:
        same = [other for other in free if other.parameter == each.parameter]
        stage = calls[each.stage].name
        alike = [other for other in same if calls[other.stage].name == stage]
        whose = stage if len(alike) == 1 else f"{each.stage + 1}"
        name = each.parameter if len(same) == 1 else f"{whose}.{each.parameter}"
        made.append(Free(name, each.parameter, each.stage, each.hint, each.default))
    return made


def _takes(name: str, kind: type[Any]) -> str:
    """What a stage takes, in words."""
    names = [field.name for field in text_of.parameters(kind)]
    return f" ({name} takes {', '.join(names)})" if names else ""
