"""The range of a free parameter where the user gives none: from its type, its default, and what the strategy takes.

    bool, Literal         every value
    a number between 0    one of which the strategy refuses 1.01 and −0.01: from 0 to 1, evenly, without the ends that
    and 1                 it refuses
    a number over 0       an eighth of its default to eight times that, on a logarithmic scale
    max_tokens, messages  without a default: a sixty-fourth of the longest conversation to all of it, likewise

What the strategy refuses is asked of it, by making one: a range is cut to what it takes around the default, all else
being at its default. Lengths are those of the conversations that are searched on, never of those held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from ...scenarios.errors import SpecError
from .asked import Asked, Free
from .space import Choices, Numbers, Range, Space

WIDE = 8
"""How many times its default a number may be, and how small a part of it."""
LONG = 64
"""The smallest part of a conversation that is tried as a limit."""
NEAR_END = 0.01
"""How far within a share's range its end is, where the end itself is refused."""
OF_LENGTH = ("max_tokens", "messages")
"""Parameters that are limits of what is sent."""


def space(asked: Asked, given: Mapping[str, Range], longest: Mapping[str, int]) -> Space:
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
    return Space(ranges, why, beyond)


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


def _taker(asked: Asked, free: Free) -> Callable[[object], bool]:
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
