"""Read forms from data files, and fill them: the one template syntax of the embedded scenarios.

A data file has forms under keys. An indented line is a further line of the same form; nothing else is stripped. A line
that starts with `#` is a comment:

    @greeting                          a key
    - «Hello|Good morning», $name.     a form
      Your order $number has arrived.  its second line
    - Hi $name!                        another form under the same key
    -                                  an empty form

`«a|b|c»` is one of several wordings and may be nested; `$name` or `${name}` is a fact; `$Name` is the fact `name` with
a capital, where no fact is called `Name`. A file is read, and a form parsed, once.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any, NamedTuple, TypeVar

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
def load(package: str, name: str) -> Forms:
    """Return the forms of the data file `data/<name>.txt` beside a package, by key.

    Raises ValueError, with file and line, for a line that is neither a key, a form, nor a further line of one.
    """
    path = files(package) / "data" / f"{name}.txt"
    forms_by_key: dict[str, list[str]] = {}
    forms: list[str] | None = None
    blank = 0
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("@"):
            if line[1:] in forms_by_key:
                raise ValueError(f"{name}.txt:{number}: the key {line[1:]!r} stands twice")
            forms = forms_by_key[line[1:]] = []
        elif (line == "-" or line.startswith("- ")) and forms is not None:
            forms.append(line[2:])
        elif line.startswith("  ") and forms:
            # Blank lines within a form are a part of it, those behind its last line are none.
            forms[-1] += "\n" * (blank + 1) + line[2:]
        elif line and not line.startswith("#"):
            raise ValueError(f"{name}.txt:{number}: neither @key, '- form' nor an indented line: {line!r}")
        blank = 0 if line else blank + 1
    return {key: tuple(forms) for key, forms in forms_by_key.items()}


@cache
def table(package: str, name: str) -> Mapping[str, Any]:
    """Return the records of the data file `data/<name>.toml` beside a package."""
    return tomllib.loads((files(package) / "data" / f"{name}.toml").read_text(encoding="utf-8"))


def say(rng: Random, form: str, facts: Mapping[str, str]) -> str:
    """Return the form with one wording chosen at each choice. Raises KeyError for a fact that is not given."""
    template = _template(form)
    if template is not None:
        return template % facts
    out: list[str] = []
    _say(_parse(form), rng, facts, out)
    return "".join(out)


def fill(form: str, choose: Choose, fact: Callable[[str], str]) -> str:
    """Return the form with its choices made, from left to right, and then its slots filled, from left to right."""
    chosen: list[str | _Slot] = []
    _choose(_parse(form), choose, chosen)
    return "".join([part if isinstance(part, str) else fact(part.name) for part in chosen])


def one(rng: Random, options: Sequence[T]) -> T:
    """Return one of the options: `Random.choice`, but twice as fast."""
    return options[int(rng.random() * len(options))]


def other_than_last(rng: Random, forms: Sequence[str], last: dict[str, str], key: str) -> str:
    """Return one of the forms, but not the one used last time for the key, so that nobody repeats themselves."""
    choice = one(rng, [form for form in forms if form != last.get(key)] or forms)
    last[key] = choice
    return choice


def _say(form: Parts, rng: Random, facts: Mapping[str, str], out: list[str]) -> None:
    # `fill` could do this, but most of a conversation is made here, and two calls per part make it a quarter slower
    for part in form:
        if isinstance(part, str):
            out.append(part)
        elif isinstance(part, _Slot):
            out.append(facts[part.name] if part.name in facts else _fact(facts, part.name))
        else:
            _say(one(rng, part.options), rng, facts, out)


def _choose(form: Parts, choose: Choose, out: list[str | _Slot]) -> None:
    for part in form:
        if isinstance(part, _Choice):
            _choose(choose(part.options), choose, out)
        else:
            out.append(part)


def _fact(facts: Mapping[str, str], name: str) -> str:
    if name in facts:
        return facts[name]
    lower = name[0].lower() + name[1:]
    if lower == name:
        raise KeyError(name)
    return facts[lower][:1].upper() + facts[lower][1:]


@cache
def _template(form: str) -> str | None:
    """Return the form as a template of the `%` operator, which is twice as fast, or None if it has more than slots."""
    parts = _parse(form)
    if any(isinstance(part, _Choice) or (isinstance(part, _Slot) and not part.name[0].islower()) for part in parts):
        return None
    return "".join(f"%({part.name})s" if isinstance(part, _Slot) else str(part).replace("%", "%%") for part in parts)


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
    if options:
        raise ValueError(f"a choice is not closed: {form!r}")
    return tuple(part for part in stack[0] if part != "")
