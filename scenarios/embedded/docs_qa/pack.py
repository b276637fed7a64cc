"""What a language offers to a docs_qa conversation: chapters of the documentation, settings, names, sentence forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["record", "job", "file"]
KINDS: tuple[Kind, ...] = ("record", "job", "file")


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that the product keeps or runs. `slug` stands in keys, paths and commands."""

    name: str
    plural: str
    slug: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Area:
    """A chapter of the documentation with the phrases that only it has.

    `goals` complete "how do I …"; `steps` are in the order in which they are done; `troubles` are
    (symptom, cause, remedy); `notes` are whole sentences.
    """

    slug: str
    title: str
    things: tuple[Thing, ...]
    goals: tuple[str, ...]
    steps: tuple[str, ...]
    troubles: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Aspect:
    """A kind of setting: the end of its key, the values it may have, and how one speaks of it."""

    suffix: str
    kinds: str
    values: tuple[int, ...]
    unit: str
    meanings: tuple[str, ...]
    question: str
    statement: str
    short: str = ""
    """How one would search for it; empty = the words of the suffix."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Everything that is written in one language. `frames` are sentence forms by the place they are for."""

    language: str
    areas: tuple[Area, ...]
    aspects: tuple[Aspect, ...]
    names: Mapping[str, tuple[str, ...]]
    frames: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, str]
    system: str
    joint: str
    """What stands between two sentences."""
    more: int
    """How many sentences more than in English make a paragraph of the same length."""


def chapters(text: str, thing: Callable[[str, Kind], Thing], space: str) -> tuple[Area, ...]:
    """The areas written in a compact form, one item a line; a line that begins with two blanks continues the last.

    ## slug | title · record: | job: | file: things · ? goal · 1 step · ! symptom | cause | remedy · . note
    """
    found = []
    for block in text.split("## ")[1:]:
        head, *lines = block.replace("\n  ", space).strip().splitlines()
        slug, heading = head.split(" | ")
        named = [(kind, line) for kind in KINDS for line in _marked(lines, f"{kind}: ")]
        things = [thing(name, kind) for kind, line in named for name in line.split(", ")]
        troubles = [(symptom, cause, remedy) for symptom, cause, remedy in map(_thirds, _marked(lines, "! "))]
        goals, steps, notes = (tuple(_marked(lines, mark)) for mark in ("? ", "1 ", ". "))
        found.append(Area(slug, heading, tuple(things), goals, steps, tuple(troubles), notes))
    return tuple(found)


def _marked(lines: list[str], mark: str) -> list[str]:
    return [line[len(mark) :] for line in lines if line.startswith(mark)]


def _thirds(line: str) -> list[str]:
    return line.split(" | ")
