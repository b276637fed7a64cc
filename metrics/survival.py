"""How long facts survive when summaries are summarised again and again, and which messages a summariser never saw.

A round is one call of a summariser: it replaces some messages, and from then on its text stands for them and for all
that was replaced before. Facts are of these kinds:

- `number`, `date`, `identifier`, `path`, `url`, `name` (`values.py`): a fact survives if the summary has it verbatim,
  a number without its currency and unit. "March 14" for "2024-03-14" does not count.
- `decision`, `constraint`: sentences with such a cue (`data/language.toml`). One survives if the summary has every
  value in it that is no name, and at least `SHARE` of its content words, names among them.

A fact enters with the round that replaces it, at age 0. It is followed until the last round, or until it is replaced
once more (said again): then it enters anew. Once gone it stays gone: the next round has nothing to restore it from.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from .language import STOP_WORDS, is_constraint, is_decision, sentences, words
from .value import Missing, Value
from .values import exact_values, occurs, spellings, values

SHARE = 0.6  # share of a sentence's content words that the summary must have

START = 24  # characters at the start of a text that cannot be in the material by chance


class FollowedFact(NamedTuple):
    """The parts of a fact that a summary must have: one spelling of each value, and a share of the words."""

    kind: str
    values: tuple[tuple[str, ...], ...]
    words: frozenset[str] = frozenset()

    def is_in(self, summary: str, summary_words: frozenset[str]) -> bool:
        if self.words and len(self.words & summary_words) < SHARE * len(self.words):
            return False
        return all(any(occurs(spelling, summary) for spelling in value) for value in self.values)


class Round(NamedTuple):
    """One round of summarising."""

    replaced: Sequence[FollowedFact]  # the facts (`facts_in`) of the messages that it newly replaced
    summary: str  # all summary text that is in force after it


class Survival(NamedTuple):
    """Facts of one kind that were followed to an age, and how many of them were still there. Rows may be added up."""

    kind: str
    age: int  # rounds since the fact was replaced; 0 = in the first summary that stands for it
    values: int
    kept: int


def survival(rounds: Sequence[Round]) -> list[Survival]:
    """Count the facts still in the summary, by kind and age, at the cost of one look per fact and round it lived."""
    # Each fact is counted once, at its last age, and `_beyond` adds up. Entered in the first of three rounds and gone
    # in the third, it is followed to age 2 and lived to age 1: rows of 1 of 1, 1 of 1 and 0 of 1.
    followed, lived = (defaultdict[str, list[int]](lambda: [0] * (len(rounds) + 1)) for _ in range(2))
    entered: dict[FollowedFact, int] = {}
    alive: dict[FollowedFact, None] = {}

    def leave(fact: FollowedFact, at: int) -> None:
        """Stop following a fact after the round before `at`."""
        for counts in (followed, lived) if fact in alive else (followed,):
            counts[fact.kind][at - 1 - entered[fact]] += 1

    for at, (replaced, summary) in enumerate(rounds):
        for fact in dict.fromkeys(replaced):
            if fact in entered:
                leave(fact, at)
            entered[fact] = at
            alive[fact] = None
        summary_words = frozenset(words(summary))
        for fact in [fact for fact in alive if not fact.is_in(summary, summary_words)]:
            del alive[fact]
            if at > entered[fact]:
                lived[fact.kind][at - 1 - entered[fact]] += 1
    for fact in entered:
        leave(fact, len(rounds))
    return [
        Survival(kind, age, total, kept)
        for kind in sorted(followed)
        for age, (total, kept) in enumerate(zip(_beyond(followed[kind]), _beyond(lived[kind]), strict=True))
        if total
    ]


def _beyond(counts: Sequence[int]) -> list[int]:
    """Return for each age how many were counted at it or later."""
    return list(accumulate(reversed(counts)))[::-1]


def cliff(rows: Iterable[Survival]) -> Value:
    """Return the first age at which fewer than half survive, all rows of an age together."""
    followed, kept = Counter[int](), Counter[int]()
    for row in rows:
        followed[row.age] += row.values
        kept[row.age] += row.kept
    if not followed:
        return Missing("undefined", "no facts were replaced")
    fallen = (age for age in sorted(followed) if kept[age] * 2 < followed[age])
    return next(fallen, Missing("undefined", f"half or more survive {max(followed)} rounds, the most there are"))


def shown(about: Sequence[str], material: Sequence[str], count: Callable[[str], int]) -> int:
    """Return the tokens of the texts `about` that are in the material, whole or cut after at least START characters."""
    whole = "\n".join(material)
    total = 0
    for text in about:
        if text in whole:
            total += count(text)
        else:
            # A start of a start that is there is there too, so the longest is found by halving.
            size = bisect_left(range(len(text)), True, key=lambda last: text[: last + 1] not in whole)
            total += count(text[:size]) if size >= START else 0
    return total


def shown_share(calls: Iterable[tuple[int, int]]) -> Value:
    """Return the share of the replaced tokens that the summariser was shown, from each call's (about, shown).

    1 − this is the blind spot: tokens replaced unseen. A call that was shown more than it replaces counts as shown all.
    """
    pairs = list(calls)
    about = sum(stands_for for stands_for, _ in pairs)
    return sum(map(min, pairs)) / about if about else Missing("undefined", "no messages were summarised")


def facts_in(text: str) -> tuple[FollowedFact, ...]:
    """Return the different facts of a text, in order."""
    facts = dict.fromkeys(FollowedFact(value.kind, (spellings(value),)) for value in values(text))
    for sentence in sentences(text):
        kinds = [kind for kind, says in (("decision", is_decision), ("constraint", is_constraint)) if says(sentence)]
        if kinds:
            needs = tuple(spellings(value) for value in exact_values(sentence))
            content = frozenset(words(sentence)) - STOP_WORDS
            facts.update((FollowedFact(kind, needs, content), None) for kind in kinds)
    return tuple(facts)
