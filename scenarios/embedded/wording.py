"""Texts from forms: `say(rng, "«Let us|We should» look at $module.", facts)`.

`«a|b|c»` is one of several wordings and may be nested, `$name` or `${name}` is a fact, and `$Name` is the fact `name`
with a capital where no fact is called `Name`. A form is parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class _Slot(NamedTuple):
    name: str


class _Choice(NamedTuple):
    options: tuple[tuple[object, ...], ...]


_TOKEN = re.compile(r"«|»|\||\$\{([A-Za-z_0-9]+)\}|\$([A-Za-z_][A-Za-z_0-9]*)")


def say(rng: Random, form: str, facts: Mapping[str, str]) -> str:
    """The form with one wording chosen at each choice. Raises KeyError for a fact that is not given."""
    out: list[str] = []
    _render(_parse(form), rng, facts, out)
    return "".join(out)


def one(rng: Random, options: Sequence[T]) -> T:
    """One of them; `Random.choice`, but twice as fast."""
    return options[int(rng.random() * len(options))]


def other_than_last(rng: Random, forms: Sequence[str], last: dict[str, str], key: str) -> str:
    """One of the forms, but not the one used last time for the key, so that nobody says the same twice running."""
    choice = one(rng, [form for form in forms if form != last.get(key)] or forms)
    last[key] = choice
    return choice


def _render(form: tuple[object, ...], rng: Random, facts: Mapping[str, str], out: list[str]) -> None:
    for part in form:
        if isinstance(part, str):
            out.append(part)
        elif isinstance(part, _Slot):
            out.append(facts[part.name] if part.name in facts else _capital(facts, part.name))
        elif isinstance(part, _Choice):
            _render(one(rng, part.options), rng, facts, out)


def _capital(facts: Mapping[str, str], name: str) -> str:
    lower = name[0].lower() + name[1:]
    if lower == name:
        raise KeyError(name)
    return facts[lower][:1].upper() + facts[lower][1:]


@cache
def _parse(form: str) -> tuple[object, ...]:
    done: list[list[tuple[object, ...]]] = []
    stack: list[list[object]] = [[]]
    at = 0
    for token in _TOKEN.finditer(form):
        stack[-1].append(form[at : token.start()])
        at = token.end()
        if token[0] == "«":
            done.append([])
            stack.append([])
        elif token[0] == "»":
            done[-1].append(tuple(stack.pop()))
            stack[-1].append(_Choice(tuple(done.pop())))
        elif token[0] == "|":
            if not done:  # a bar outside a choice is a bar
                stack[-1].append("|")
                continue
            done[-1].append(tuple(stack.pop()))
            stack.append([])
        else:
            stack[-1].append(_Slot(token[1] or token[2]))
    stack[-1].append(form[at:])
    if done:
        raise ValueError(f"a choice is not closed: {form!r}")
    return tuple(part for part in stack[0] if part != "")
