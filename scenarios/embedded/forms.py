"""Read forms from data files, and fill them: the template syntax of the generated conversations.

A data file has forms under keys. An indented line is a further line of the same form; nothing else is stripped. A line
that starts with `#` is a comment:

    @greeting                          a key
    - «Hello|Good morning», $name.     a form
      Your order $number has arrived.  its second line
    - Hi $name!                        another form under the same key
    -                                  an empty form

`«a|b|c»` is one of several wordings and may be nested; `$name` or `${name}` is a fact. A file is read, and a form
parsed, once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from random import Random
from typing import NamedTuple, TypeVar

T = TypeVar("T")

Forms = Mapping[str, tuple[str, ...]]
Choose = Callable[[Sequence["Parts"]], "Parts"]
Parts = tuple["str | _Slot | _Choice", ...]
"""A parsed form: texts, slots and choices."""


class _Slot(NamedTuple):
    name: str


class _Choice(NamedTuple):
    options: tuple[Parts, ...]


_TOKEN = re.compile(r"«|»|\||\$\{([A-Za-z_0-9]+)\}|\$([A-Za-z_][A-Za-z_0-9]*)")


@cache
def load(name: str) -> Forms:
    """Return the forms of the data file `data/<name>.txt` by key."""
    forms_by_key: dict[str, list[str]] = {}
    forms: list[str] = []
    blank = 0
    for line in (files(__package__) / "data" / f"{name}.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("@"):
            forms = forms_by_key[line[1:]] = []
        elif line == "-" or line.startswith("- "):
            forms.append(line[2:])
        elif line.startswith("  "):
            # Blank lines within a form are a part of it, those behind its last line are none.
            forms[-1] += "\n" * (blank + 1) + line[2:]
        blank = 0 if line else blank + 1
    return {key: tuple(forms) for key, forms in forms_by_key.items()}


def fill(form: str, choose: Choose, fact: Callable[[str], str]) -> str:
    """Return the form with its choices made, from left to right, and then its slots filled, from left to right."""
    chosen: list[str | _Slot] = []
    _choose(_parse(form), choose, chosen)
    return "".join([part if isinstance(part, str) else fact(part.name) for part in chosen])


def one(rng: Random, options: Sequence[T]) -> T:
    """Return one of the options: `Random.choice`, but twice as fast."""
    return options[int(rng.random() * len(options))]


def _choose(form: Parts, choose: Choose, out: list[str | _Slot]) -> None:
    for part in form:
        if isinstance(part, _Choice):
            _choose(choose(part.options), choose, out)
        else:
            out.append(part)


@cache
def _parse(form: str) -> Parts:
    # Behind «a|b the stack has the parts outside and those of b, and `options` the finished a: one entry for each
    # choice that is open, since they may be nested.
    options: list[list[Parts]] = []
    stack: list[list[str | _Slot | _Choice]] = [[]]
    at = 0
    for token in _TOKEN.finditer(form):
        stack[-1].append(form[at : token.start()])
        at = token.end()
        if token[0] == "«":
            options.append([])
            stack.append([])
        elif token[0] == "»":
            options[-1].append(tuple(stack.pop()))
            stack[-1].append(_Choice(tuple(options.pop())))
        elif token[0] == "|":
            if not options:  # a bar outside a choice is a bar
                stack[-1].append("|")
                continue
            options[-1].append(tuple(stack.pop()))
            stack.append([])
        else:
            stack[-1].append(_Slot(token[1] or token[2]))
    stack[-1].append(form[at:])
    return tuple(part for part in stack[0] if part != "")
