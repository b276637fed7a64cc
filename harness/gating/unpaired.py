"""Which conversations of two runs are the same, and what one of them has alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .measured import About, Floats, Measured

Flags = NDArray[np.bool_]


class Unpaired(NamedTuple):
    """What was there on one side only, or is not the same thing on both."""

    word: Literal["lost", "new", "incomparable"]
    what: Literal["conversation", "strategy"]
    names: tuple[str, ...]
    why: str
    strategy: str = ""
    """Of conversations that are there, but not under this strategy; empty = under none."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of two, confined to the conversations that both have, in one order."""

    measured: Measured
    names: tuple[str, ...]
    at: tuple[int, ...]
    """Where they are."""

    @property
    def source(self) -> str:
        """Where it is from."""
        return self.measured.source

    def about(self, metric: str) -> About | None:
        """What a metric is; None if it was not measured here."""
        return self.measured.metrics.get(metric)

    def version(self, metric: str) -> str | None:
        """Of a metric; None if it was not measured here."""
        about = self.about(metric)
        return about.version if about else None

    def sums(self, strategy: str, metric: str) -> Floats | None:
        """Of the conversations; None where the strategy has no such figure."""
        found = self.measured.sums[strategy].get(metric)
        return None if found is None else found[list(self.at)]


class Sides(NamedTuple):
    """Both."""

    before: Side
    after: Side


def paired(before: Measured, after: Measured) -> Sides | None:
    """The conversations whose name and content are the same; None if there are none."""
    names = tuple(name for name, digest in before.digests.items() if after.digests.get(name) == digest)
    if not names:
        return None
    places = [{name: at for at, name in enumerate(each.digests)} for each in (before, after)]
    one, other = (tuple(where[name] for name in names) for where in places)
    return Sides(Side(before, names, one), Side(after, names, other))


def conversations(before: Measured, after: Measured) -> list[Unpaired]:
    """Those of one side, and those that have another content."""
    both = before.digests.keys() & after.digests.keys()
    made = [
        Unpaired("lost", "conversation", _without(before.digests, both), f"not in {after.source}"),
        Unpaired("new", "conversation", _without(after.digests, both), f"not in {before.source}"),
        Unpaired(
            "incomparable",
            "conversation",
            tuple(name for name in before.digests if name in both and before.digests[name] != after.digests[name]),
            "another recording under the same name",
        ),
    ]
    return [each for each in made if each.names]


def strategies(before: Measured, after: Measured) -> list[Unpaired]:
    """Those of one side."""
    both = before.sums.keys() & after.sums.keys()
    made = [
        Unpaired("lost", "strategy", _without(before.sums, both), f"not in {after.source}"),
        Unpaired("new", "strategy", _without(after.sums, both), f"not in {before.source}"),
    ]
    return [each for each in made if each.names]


def cells(sides: Sides, strategy: str, against: str) -> list[Unpaired]:
    """The conversations in which the strategy has figures on one side only: it failed on the other."""
    one, other = _failed(sides.before, against), _failed(sides.after, strategy)
    made = [
        Unpaired("lost", "conversation", *_those(sides.after, other & ~one, strategy), strategy),
        Unpaired("new", "conversation", *_those(sides.before, one & ~other, against), strategy),
    ]
    return [each for each in made if each.names]


def _failed(side: Side, strategy: str) -> Flags:
    """Where the strategy has no figure at all."""
    tables = [table[list(side.at), 0] for table in side.measured.sums[strategy].values()]
    none: Flags = np.ones(len(side.at), np.bool_)
    for table in tables:
        none &= np.isnan(table)
    return none


def _those(side: Side, which: Flags, strategy: str) -> tuple[tuple[str, ...], str]:
    """The conversations, and why there are no figures of them."""
    names = tuple(name for name, here in zip(side.names, which, strict=True) if here)
    said = side.measured.failed.get(strategy, {})
    why = next((said[name] for name in names if name in said), "")
    return names, f"{strategy} failed in {side.source}" + (f": {why}" if why else "")


def _without(names: Iterable[str], both: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in both)
