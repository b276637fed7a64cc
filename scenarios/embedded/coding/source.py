"""Invented Python modules: source text that parses, with constants and error codes in it that probes can ask for."""

from __future__ import annotations

import re
from functools import cache
from random import Random

from ..wording import one, say
from .bugs import BUGS, Bug
from .methods import METHODS
from .module import Constant, Module, Planted, camel, plural
from .more import FUNCTIONS
from .prose import DOC_TAILS, DOCS, NOTES, NOTES_ZH
from .words import FLAGS, KINDS, LOCALS, Domain, Kind


def write(rng: Random, domain: Domain, module: Module, size: int, facts: dict[str, str], chinese: bool) -> None:
    """Fill `module.text` with about `size` characters of Python, one bug among them, and the constants it uses."""
    notes = NOTES_ZH if chinese else NOTES
    functions = rng.sample(FUNCTIONS, min(1 + size // 6000, len(FUNCTIONS)))
    methods = _choose(rng, size - 2400 - sum(map(len, functions)))
    bug = one(rng, BUGS)
    kinds = set().union(*(_kinds(form) for form in (*functions, *methods, bug.before, bug.wrong, bug.after)))
    module.constants = _constants(rng, module.name.upper(), kinds)
    module.facts = facts | _names(module) | {each.kind.suffix: each.name for each in module.constants}

    written: dict[str, str] = {}
    text, module.bug = _plant(rng, domain, module, bug)
    written[module.bug.method] = text
    for form in methods:
        _body(rng, domain, module, form, notes, written)
    order = list(written.values())
    rng.shuffle(order)
    outside: dict[str, str] = dict.fromkeys(written, "")
    for form in functions:
        _body(rng, domain, module, form, notes, outside)
    module.methods = sorted(outside)
    tail = "\n\n".join(text for text in outside.values() if text)
    module.text = _head(rng, domain, module, notes) + "\n".join(order) + "\n\n" + tail


def new_method(rng: Random, domain: Domain, module: Module, chinese: bool) -> tuple[str, str]:
    """The name and text of a method that the module does not have yet, with constants that it has."""
    known = {constant.kind.suffix for constant in module.constants}
    form = one(rng, [form for form in METHODS if _kinds(form) <= known])
    written = dict.fromkeys(module.methods, "")
    name = _body(rng, domain, module, form, NOTES_ZH if chinese else NOTES, written)
    module.methods.append(name)
    return name, written[name]


def _choose(rng: Random, room: int) -> list[str]:
    chosen: list[str] = []
    deck: list[str] = []
    while room > 0 or len(chosen) < 2:
        deck = deck or rng.sample(METHODS, len(METHODS))
        chosen.append(deck.pop())
        room -= len(chosen[-1])
    return chosen


@cache
def _kinds(form: str) -> frozenset[str]:
    """The kinds of constant that a form speaks of."""
    return frozenset(kind.suffix for kind in KINDS if re.search(rf"\${kind.suffix}\b", form))


def _names(module: Module) -> dict[str, str]:
    return {
        "ent": module.thing,
        "ents": plural(module.thing),
        "Ent": camel(module.thing),
        "ent_word": module.thing.replace("_", " "),
        "ent_zh": module.thing_zh,
        "Err": f"{camel(module.name)}Error",
        "role": module.role,
        "Role": camel(module.name),
        "package": module.package,
        "area": module.area,
        "name": module.name,
        "runbook": module.runbook,
        "attr": plural(module.thing),
    }


def _body(
    rng: Random, domain: Domain, module: Module, form: str, notes: tuple[str, ...], written: dict[str, str]
) -> str:
    """Write a method or function under a name that is free, add it to `written`, return the name."""
    name = ""
    for _ in range(12):
        facts = _local(rng, domain, module)
        facts["note"] = article(say(rng, one(rng, notes), facts))
        facts["tail"] = _doc_tail(rng, facts, "        " if form.startswith("    ") else "    ")
        text = article(say(rng, form, facts))
        name = text[text.index("def ") + 4 : text.index("(")]
        if name not in written:
            written[name] = text
            return name
    free = f"{name}_{len(written)}"
    written[free] = text.replace(f"def {name}(", f"def {free}(", 1)
    return free


def article(text: str) -> str:
    """`a empty row` → `an empty row`, in English texts."""
    return _ARTICLE.sub(r"\1n ", text)


_ARTICLE = re.compile(r"\b([Aa]) (?=[aeio][a-z]{2})")


def _local(rng: Random, domain: Domain, module: Module) -> dict[str, str]:
    """Names for one method: another thing, fields, states, six local variables."""
    other, other_zh = one(rng, domain.things)
    if other == module.thing:
        other, other_zh = domain.things[domain.things.index((other, other_zh)) - 1]
    number, number2 = rng.sample(domain.numbers, 2)
    text, text2 = rng.sample(domain.texts, 2)
    state, state2 = rng.sample(domain.states, 2)
    verb = one(rng, domain.verbs)
    year = 2019 + int(rng.random() * 6)
    return module.facts | {
        "other": other,
        "Other": camel(other),
        "others": plural(other),
        "other_word": other.replace("_", " "),
        "other_zh": other_zh,
        "num": number,
        "num2": number2,
        "text": text,
        "text2": text2,
        "state": state,
        "state2": state2,
        "verb": verb,
        "flag": one(rng, FLAGS),
        "event": f"{module.thing}.{verb}",
        "small": str(2 + int(rng.random() * 60)),
        "ticket": f"{module.facts['prefix']}-{100 + int(rng.random() * 880)}",
        "year": str(year),
        "release": f"{year - 2016}.{int(rng.random() * 12)}",
        **dict(zip("abcdef", rng.sample(LOCALS, 6), strict=True)),
    }


def _doc_tail(rng: Random, facts: dict[str, str], indent: str) -> str:
    """Nothing, or an empty line and one or two more sentences."""
    if rng.random() < 0.4:
        return ""
    tails = [article(say(rng, tail, facts)) for tail in rng.sample(DOC_TAILS, 1 + int(rng.random() * 2))]
    return f"\n\n{indent}" + f"\n{indent}".join(tails) + f"\n{indent}"


def _plant(rng: Random, domain: Domain, module: Module, bug: Bug) -> tuple[str, Planted]:
    facts = _local(rng, domain, module)
    first = 12 + int(rng.random() * 180)
    if "BACKOFF_MS" in bug.wrong:
        first = next(each.value for each in module.constants if each.kind.suffix == "BACKOFF_MS")
    facts |= {
        "one": str(first),
        "two": str(first + 1),
        "three": str(first + 2),
        "sample": f"{module.thing[:2].upper()}-{1000 + int(rng.random() * 9000)}",
        "tail": _doc_tail(rng, facts, "        "),
    }
    before = article(say(rng, bug.before, facts))
    facts["method"] = before[before.index("def ") + 4 : before.index("(")]
    wrong, right, after, test, fails, error = (
        say(rng, form, facts) for form in (bug.wrong, bug.right, bug.after, bug.test, bug.fails, bug.error)
    )
    name = f"test_{facts['method']}_{one(rng, ('exactly', 'again', 'at_the_limit', 'on_old_rows', 'with_gaps'))}"
    planted = Planted(bug, facts["method"], before, wrong, right, name, test, fails, error, facts)
    return before + wrong + after, planted


def _head(rng: Random, domain: Domain, module: Module, notes: tuple[str, ...]) -> str:
    facts = _local(rng, domain, module)
    tails = [article(say(rng, tail, facts)) for tail in rng.sample(DOC_TAILS, 2)]
    lines = [
        f'"""The {module.name.replace("_", " ")} of {module.package}.',
        "",
        *tails,
        "",
        f"Owner: {module.facts['owner']}",
        f"Runbook: {module.runbook}",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "import asyncio",
        "import csv",
        "import hmac",
        "import json",
        "import logging",
        "from collections import Counter, defaultdict, deque",
        "from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence",
        "from dataclasses import dataclass, replace",
        "from datetime import UTC, datetime, timedelta",
        "from pathlib import Path",
        "",
        f"from {module.package}.base import Decision, Difference, Event, Page, Summary",
        f"from {module.package}.models.{facts['other']} import {facts['Other']}",
        "",
    ]
    for constant in module.constants:
        if rng.random() < 0.5:
            lines.append(f"# {article(say(rng, one(rng, notes), facts))}")
        lines.append(f"{constant.name} = {constant.value}")
    role, error = module.facts["Role"], module.facts["Err"]
    lines += ["", "", f"class {error}(Exception):", f'    """What the {module.name.replace("_", " ")} refuses."""', ""]
    lines += [f'    code = "{module.code}"', "", "", "@dataclass(frozen=True)", f"class {facts['Ent']}:"]
    lines += [f'    """{say(rng, "One $ent_word «as we store it|on its way|between two runs».", facts)}"""', ""]
    lines += ["    id: str", *(f"    {name}: str = ''" for name in rng.sample(domain.texts, len(domain.texts)))]
    lines += [*(f"    {name}: int = 0" for name in rng.sample(domain.numbers, len(domain.numbers)))]
    lines += [f'    state: str = "{facts["state"]}"', "    updated_at: datetime = datetime.min", "", ""]
    lines += [
        f"class {role}:",
        f'    """{article(say(rng, one(rng, DOCS), facts))}.{_doc_tail(rng, facts, "    ")}"""',
        "",
        "    def __init__(self, name: str, remote,",
    ]
    lines[-1] += " session, clock, metrics, alerts, journal) -> None:"
    lines += ["        self._name, self._clock, self._metrics, self._alerts = name, clock, metrics, alerts"]
    lines += [f"        self._remote, self._session, self._{facts['attr']} = remote, session, {{}}"]
    lines += [f'        self._log = logging.getLogger("{module.package}.{module.area}.{module.name}")']
    lines += ["        self._journal, self._failures, self._buckets = journal, Counter(), {}", "", ""]
    return "\n".join(lines)


def _constants(rng: Random, prefix: str, wanted: set[str]) -> list[Constant]:
    """A constant of each kind wanted, at least five in all."""
    rest = [kind for kind in KINDS if kind.suffix not in wanted]
    kinds = [kind for kind in KINDS if kind.suffix in wanted] + rng.sample(
        rest, max(0, min(5 - len(wanted), len(rest)))
    )
    rng.shuffle(kinds)
    return [Constant(f"{prefix}_{kind.suffix}", kind, _value(rng, kind)) for kind in kinds]


def other_value(rng: Random, constant: Constant) -> int:
    """A value that the constant does not have."""
    value = _value(rng, constant.kind)
    return value if value != constant.value else _value_after(constant)


def _value(rng: Random, kind: Kind) -> int:
    return kind.low + kind.step * int(rng.random() * ((kind.high - kind.low) // kind.step + 1))


def _value_after(constant: Constant) -> int:
    kind = constant.kind
    return constant.value + kind.step if constant.value + kind.step <= kind.high else constant.value - kind.step
