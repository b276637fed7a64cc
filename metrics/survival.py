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
from itertools import accumulate, islice
from typing import NamedTuple

from .language import STOP_WORDS, is_constraint, is_decision, reads_by_line, sentences, words
from .value import Missing, Value
from .values import exact_values, first_place, spellings, values

SHARE = 0.6  # share of a sentence's content words that the summary must have

START = 24  # characters at the start of a text that cannot be in the material by chance


class FollowedFact(NamedTuple):
    """The parts of a fact that a summary must have: one spelling of each value, and a share of the words."""

    kind: str
    values: tuple[tuple[str, ...], ...]
    words: frozenset[str] = frozenset()

    def has_enough(self, words: frozenset[str]) -> bool:
        return not self.words or len(self.words & words) >= SHARE * len(self.words)

    def lines_in(self, summary: str) -> set[str] | None:
        """Return lines of a summary that have all values; None if it does not have one of them."""
        lines = set[str]()
        for value in self.values:
            at = next((at for spelling in value if (at := first_place(spelling, summary)) >= 0), -1)
            if at < 0:
                return None
            end = summary.find("\n", at)
            lines.add(summary[summary.rfind("\n", 0, at) + 1 : end if end >= 0 else None])
        return lines


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
    """Count the facts still in the summary, by kind and age. A fact is looked for when it enters, and when a line goes
    that had a part of it."""
    # Each fact is counted once, at its last age, and `_beyond` adds up. Entered in the first of three rounds and gone
    # in the third, it is followed to age 2 and lived to age 1: rows of 1 of 1, 1 of 1 and 0 of 1.
    followed, lived = (defaultdict[str, list[int]](lambda: [0] * (len(rounds) + 1)) for _ in range(2))
    # The facts have numbers, which are compared faster.
    numbers: dict[FollowedFact, int] = {}
    facts: list[FollowedFact] = []
    entered: dict[int, int] = {}
    alive: set[int] = set()
    # The facts by the lines that have their parts, those whose words are in several lines, and the words of each line.
    held: defaultdict[str, list[int]] = defaultdict(list)
    loose: list[int] = []
    lines: dict[str, None] = {}
    words_of: dict[str, frozenset[str]] = {}

    def leave(number: int, at: int) -> None:
        """Stop following a fact after the round before `at`."""
        for counts in (followed, lived) if number in alive else (followed,):
            counts[facts[number].kind][at - 1 - entered[number]] += 1

    for at, (replaced, summary) in enumerate(rounds):
        looked_for = {numbers.setdefault(fact, len(numbers)) for fact in replaced}
        facts += islice(numbers, len(facts), None)
        for number in looked_for:
            if number in entered:
                leave(number, at)
            entered[number] = at
        alive |= looked_for
        before, lines = lines, dict.fromkeys(summary.split("\n"))
        gone = [number for line in before.keys() - lines.keys() for number in held.pop(line, ())]
        by_line = reads_by_line(summary)
        looked_for = alive.intersection(looked_for.union(gone, loose)) if by_line else alive.copy()
        words_of = {line: words_of[line] if line in words_of else frozenset(words(line)) for line in lines if by_line}
        summary_words = frozenset().union(*words_of.values()) if by_line else frozenset(words(summary))
        loose = []
        for number in looked_for:
            fact = facts[number]
            in_lines = fact.lines_in(summary) if fact.has_enough(summary_words) else None
            if in_lines is None:
                alive.remove(number)
                if at > entered[number]:
                    lived[fact.kind][at - 1 - entered[number]] += 1
                continue
            if fact.words:
                has_enough = [line for line, own in words_of.items() if fact.has_enough(own)]
                loose += [] if has_enough else [number]
                in_lines.update(has_enough[:1])
            for line in in_lines:
                held[line].append(number)
    for number in entered:
        leave(number, len(rounds))
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
