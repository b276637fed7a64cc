"""Types of parameters: as they are written, and in words for who gave something else."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

_WORDS: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    str: "text in quotes",
    bool: "True or False",
    NoneType: "None",
    list: "a list",
    tuple: "a list",
}


def written(hint: object) -> str:
    """A type as it is written: `int | None`, `Literal['start', 'end']`."""
    plain = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return plain.replace("typing.", "")


def in_words(hint: object) -> str:
    """What a parameter of this type may be: `a whole number or None`, `a list, each 'a', 'b' or 'c'`."""
    parts = get_args(hint)
    if hint in _WORDS:
        return _WORDS[hint]
    if get_origin(hint) in (Union, UnionType):
        return _either([in_words(part) for part in parts])
    if get_origin(hint) is Literal:
        return _either([repr(part) for part in parts])
    if get_origin(hint) is list or (get_origin(hint) is tuple and parts[-1] is ...):
        return f"a list, each {in_words(parts[0])}"
    if get_origin(hint) is tuple and len(set(parts)) == 1:
        return f"a list of {len(parts)}, each {in_words(parts[0])}"
    return written(hint)


def literals(hint: object) -> list[object]:
    """The values that a type allows by name, wherever in it they stand."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [each for part in get_args(hint) for each in literals(part)]


def _either(words: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
