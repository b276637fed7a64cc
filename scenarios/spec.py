"""Frozen dataclasses as text: `window(max_tokens=8000)` parses to `Window(max_tokens=8000)` and prints back.

    name(parameter=value, …)      parentheses may be left out when there is nothing in them
    maker.name(parameter=value)   a name may have dots, as in `anthropic.clear_tool_uses`
    'name'(parameter=value, …)    a name that is neither is quoted

Values are Python literals: numbers, quoted strings, True / False (or true / false), None, tuples, lists. They are
parsed by `ast.literal_eval` and never executed. Parameters at their defaults are not printed, so equal instances have
one text.

The bounds of a number stand on its field, as `Annotated[int, msgspec.Meta(ge=1)]`; `PositiveInt` is that. They are
checked where a text is parsed and where an instance is printed: building one in Python alone checks nothing.
"""

from __future__ import annotations

import ast
import operator
import reprlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from .errors import SpecError, Stopped, UserError

PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
NonNegativeInt = Annotated[int, msgspec.Meta(ge=0)]
NonNegativeFloat = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
ShareBelowOne = Annotated[float, msgspec.Meta(ge=0, lt=1)]
ShareWithoutEnds = Annotated[float, msgspec.Meta(gt=0, lt=1)]


@dataclass(frozen=True, slots=True)
class SpecCall:
    """One parsed `name(parameter=value, …)`."""

    name: str
    parameters: Mapping[str, object]


def parse(text: str, kinds: Mapping[str, type[Any]], kind: str) -> Any:
    """Parse one `name(parameter=value, …)` and return an instance of the class that `kinds` has under that name.

    `kind` is the word for it in messages ("strategy"). Raises SpecError, with the nearest names.
    """
    return build(single(text, kind), kinds, kind)


def single(text: str, kind: str) -> SpecCall:
    """Parse one `name(parameter=value, …)` into a call. Raises SpecError, for a chain too."""
    chain = calls(text, kind)
    if len(chain) != 1:
        raise SpecError(f"one {kind} is wanted, not a chain: {text!r}")
    return chain[0]


def calls(text: str, kind: str) -> list[SpecCall]:
    """Parse a chain such as `a(x=1) | b` into its calls, in order. Raises SpecError if it cannot be read."""
    chained = ", chained with |" if kind == "strategy" else ""
    hint = f"write it as name or name(parameter=value){chained}; the {kind} was {text!r}"
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SpecError(f"cannot read this {kind}: {hint}") from None
    if isinstance(node, ast.Tuple) and kind == "strategy":
        raise SpecError(f"{text!r} is more than one strategy: give each on its own, as in -s none -s recorded")
    nodes: list[ast.expr] = []
    # a | b | c is read as (a | b) | c: the right ends come first, hence the reversal below.
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        nodes.append(node.right)
        node = node.left
    return [_call(part, kind, hint) for part in (node, *reversed(nodes))]


LISTS = {"strategy": "ctxbench list strategies", "format": "ctxbench list formats"}  # commands that list all of a kind


def build(call: SpecCall, kinds: Mapping[str, type[Any]], kind: str) -> Any:
    """Return an instance of the class that `kinds` has under the call's name.

    Raises SpecError for an unknown name, and for a parameter that is unknown, missing, mistyped or out of bounds.
    """
    name, kind_of = call.name, f"{kind} {call.name!r}"
    if name not in kinds:
        raise SpecError(f"unknown {kind} {name!r}{suggestion(name, kinds, LISTS.get(kind, ''))}")
    cls = kinds[name]
    known = {field.name: field for field in parameters(cls)}
    hints = get_type_hints(cls)
    values: dict[str, object] = {}
    for key, value in call.parameters.items():
        if key not in known:
            takes = f"it takes {', '.join(known) or 'none'}"
            raise SpecError(f"{kind_of} has no parameter {key!r}; {takes}{nearest(key, known)}")
        try:
            values[key] = msgspec.convert(value, hints[key], strict=True)
        except msgspec.ValidationError:
            allowed = {literal: None for literal in literals(hints[key]) if isinstance(literal, str)}
            several = value if isinstance(value, (list, tuple)) else (value,)
            texts = (text for text in several if isinstance(text, str) and text not in allowed)
            meant = next((nearest(text, allowed) for text in texts), "")
            raise SpecError(f"{kind_of}: {key} must be {in_words(hints[key])}, not {value!r}{meant}") from None
    missing = [key for key, field in known.items() if key not in values and _default(field) is MISSING]
    if missing:
        raise SpecError(f"{kind_of} needs {', '.join(missing)}: {name}({missing[0]}=…)")
    try:
        for key, meta in bounds(cls).items():
            if key in values:
                _check(key, values[key], meta)
        return cls(**values)
    except ValueError as error:
        raise SpecError(f"{kind_of}: {error}") from None
    except (Stopped, UserError):
        raise
    except (Exception, SystemExit) as error:  # a plug-in's class may raise anything
        raise SpecError(f"{kind_of}: {type(error).__name__}: {error}") from error


def spec(name: str, value: Any) -> str:
    """Return the text of an instance: its name, and the parameters that differ from their defaults.

    Raises SpecError for a parameter out of bounds, and for one that text cannot hold.
    """
    try:
        check_bounds(value)
    except ValueError as error:
        raise SpecError(f"{name}: {error}") from None
    given = ((field.name, getattr(value, field.name), _default(field)) for field in parameters(type(value)))
    arguments = [f"{key}={_written(name, key, value)}" for key, value, default in given if value != default]
    return f"{name}({', '.join(arguments)})" if arguments else name


def _written(name: str, key: str, value: object) -> str:
    with suppress(Exception):  # a class of the user's own may print itself as it likes
        if ast.literal_eval(text := repr(value)) == value:
            return text
    what = f"{key} is {reprlib.repr(value)}, which cannot be written down: a strategy goes by its text"
    raise SpecError(f"{name}: {what}. Give plain numbers, texts and lists of them, and make the rest in start")


def parameters(kind: type[Any]) -> list[Field[Any]]:
    """Return the fields that a dataclass's constructor takes, in the order of its signature: keyword-only ones last."""
    return sorted((field for field in fields(kind) if field.init), key=lambda field: field.kw_only is True)


def bounds(kind: type[Any]) -> dict[str, msgspec.Meta]:
    """Return the bounds of a dataclass's numbers, by parameter. Parameters without bounds are left out."""
    return _bounds(kind)  # type: ignore[arg-type]  # for mypy a type[Any] is not hashable


@cache
def _bounds(kind: type[Any]) -> dict[str, msgspec.Meta]:
    hints = get_type_hints(kind, include_extras=True)
    by_name = {parameter.name: _meta(hints[parameter.name]) for parameter in parameters(kind)}
    return {name: meta for name, meta in by_name.items() if meta is not None}


def _meta(hint: object) -> msgspec.Meta | None:
    """Return the first bounds in a type: those of `Annotated[int, Meta(ge=1)] | None` are `Meta(ge=1)`."""
    metas = [meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]
    return next(filter(None, [*metas, *map(_meta, get_args(hint))]), None)


_ENDS = {
    "ge": ("at least", operator.ge),
    "gt": ("above", operator.gt),
    "le": ("at most", operator.le),
    "lt": ("below", operator.lt),
}


def is_within(number: float, meta: msgspec.Meta) -> bool:
    """Return whether a number is within bounds; NaN is within none."""
    ends = [(compare, getattr(meta, end)) for end, (_, compare) in _ENDS.items()]
    return all(limit is None or compare(number, limit) for compare, limit in ends)


def limits(meta: msgspec.Meta) -> str:
    """Return bounds in words: `above 0 and at most 1`."""
    ends = [(words, getattr(meta, end)) for end, (words, _) in _ENDS.items()]
    return " and ".join(f"{words} {limit}" for words, limit in ends if limit is not None)


def check_bounds(value: Any) -> None:
    """Raise ValueError for the first parameter of a dataclass's instance that is out of the bounds of its field.

    PositiveInt, and the value is -1  →  ValueError: limit must be at least 1, not -1
    """
    for name, meta in bounds(type(value)).items():
        _check(name, getattr(value, name), meta)


def _check(name: str, value: object, meta: msgspec.Meta) -> None:
    for number in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(number, (int, float)) and not is_within(number, meta):
            raise ValueError(f"{name} must be {limits(meta)}, not {number}")


def nearest(name: str, known: Mapping[str, object]) -> str:
    """Return `; did you mean …?` with the names that are close, or an empty text."""
    close = get_close_matches(name, list(known), n=3)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


MOST_NAMES = 20  # names that an error lists


def suggestion(name: str, known: Mapping[str, object], more: str = "") -> str:
    """Return `; did you mean …?` with the names that are close, or else the list of names.

    Of very many the first are listed, and `more` says where the others are.
    """
    names = list(known)
    if len(names) > MOST_NAMES and more:
        names = [*names[:MOST_NAMES], f"… ({len(names)} in all: {more})"]
    return nearest(name, known) or f"; there {'is' if len(known) == 1 else 'are'} {', '.join(names)}"


def _call(node: ast.expr, kind: str, hint: str) -> SpecCall:
    if (name := _name(node)) is not None:
        return SpecCall(name, {})
    if not isinstance(node, ast.Call) or (name := _name(node.func)) is None:
        raise SpecError(f"cannot read this {kind}: {hint}")
    if node.args:
        raise SpecError(f"{kind} {name!r}: parameters are written name=value; {hint}")
    keywords: dict[str, object] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in keywords:
            raise SpecError(f"{kind} {name!r}: a parameter stands twice or has no name; {hint}")
        keywords[keyword.arg] = _literal(keyword.value, kind, keyword.arg)
    return SpecCall(name, keywords)


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Attribute, ast.Name)):
        return f"{_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def _literal(node: ast.expr, kind: str, name: str) -> object:
    if isinstance(node, ast.Name) and node.id in ("true", "false"):
        return node.id == "true"
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise SpecError(f"{kind}: {name}={ast.unparse(node)} is not a plain value (quote text: {name}='…')") from None
    if is_beyond(value):
        raise SpecError(f"{kind}: {name} is beyond {LARGEST:,}: no number here may be")
    return value


LARGEST = 2**53  # largest number of a parameter: up to here whole numbers and floats are the same


def is_beyond(value: object) -> bool:
    """Return whether a value is, or holds, a number beyond LARGEST, on either side of 0."""
    if isinstance(value, (list, tuple)):
        return any(map(is_beyond, value))
    return isinstance(value, (int, float)) and not -LARGEST <= value <= LARGEST


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


_WORDS: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    str: "text in quotes",
    bool: "True or False",
    NoneType: "None",
    list: "a list",
    tuple: "a list",
}


def type_text(hint: object) -> str:
    """Return a type as it is written in code: `int | None`, `Literal['start', 'end']`."""
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(map(type_text, get_args(hint)))
    if hint is NoneType:
        return "None"
    plain = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return plain.replace("typing.", "")


def in_words(hint: object) -> str:
    """Describe the values of a type: `a whole number or None`, `a list, each 'a', 'b' or 'c'`."""
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
    return type_text(hint)


def literals(hint: object) -> list[object]:
    """Return the values of every `Literal` in a type, nested ones included."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [value for part in get_args(hint) for value in literals(part)]


def _either(words: Sequence[str]) -> str:
    """Join words as `a`, `a or b`, `a, b or c`."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
