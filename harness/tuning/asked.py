"""A strategy with `?` for the values that are to be found: `summary(every=?) | window(max_tokens=?)`.

What `scenarios.spec` reads and prints, with one more value. A text that is to be `?` itself cannot be given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from ...scenarios import spec as text_of
from ...scenarios.errors import SpecError
from ...strategies import plugins
from ...strategies.chain import parse, spec, strategies

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
class Asked:
    """A strategy whose free parameters are not known yet."""

    text: str
    """As it was written, but for spaces."""
    calls: tuple[text_of.Call, ...]
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


def asked(text: str) -> Asked:
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
    return Asked(" ".join(text.split()), calls, tuple(_named(free, calls)))


def _free(call: text_of.Call, at: int, name: str) -> Free:
    kind = _kind(call)
    known = {field.name: field for field in text_of.parameters(kind)}
    if name not in known:
        takes = f"it takes {', '.join(known) or 'none'}"
        raise SpecError(f"strategy {call.name!r} has no parameter {name!r}; {takes}{text_of.nearest(name, known)}")
    default = known[name].default
    plain = isinstance(default, (bool, int, float, str))
    return Free(name, name, at, get_type_hints(kind)[name], default if plain else None)


def _kind(call: text_of.Call) -> type[Any]:
    """The class of a stage. What cannot be one raises the SpecError that a run would."""
    if plugins.is_file(call.name):
        return plugins.load(call.name)
    found = strategies()
    if call.name not in found:
        parse(f"{call.name!r}({', '.join(f'{name}={value!r}' for name, value in call.parameters.items())})")
        raise SpecError(f"strategy {call.name!r} has no parameters to search")
    return found[call.name]


def _named(free: list[Free], calls: tuple[text_of.Call, ...]) -> list[Free]:
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
