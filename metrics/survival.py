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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain
from typing import NamedTuple, TypeVar

import numpy as np

from .language import STOP_WORDS, is_constraint, is_decision, reads_by_line, sentences, words
from .measure import Stretches, distinct, ranges
from .value import Missing, Value
from .values import Ints, Lines, exact_values, finder, places, spellings, values
from .values import Value as ValueInText

T = TypeVar("T")

SHARE = 0.6  # share of a sentence's content words that the summary must have

START = 24  # characters at the start of a text that cannot be in the material by chance


class FollowedFact(NamedTuple):
    """The parts of a fact that a summary must have: one spelling of each value, and a share of the words."""

    kind: str
    values: tuple[tuple[str, ...], ...]
    words: frozenset[str] = frozenset()


class Round(NamedTuple):
    """One round of summarising."""

    replaced: Sequence[int]  # the facts of the messages that it newly replaced
    summary: str  # all summary text that is in force after it


class Survival(NamedTuple):
    """Number of facts of one kind that were followed to an age, and of those still there. Rows may be added up."""

    kind: str
    age: int  # rounds since the fact was replaced; 0 = in the first summary that stands for it
    values: int
    kept: int


class FollowedFacts:
    """The facts of a conversation, numbered, and what finds their parts in a summary: it reads each line once, however
    many summaries and strategies have it.
    """

    def __init__(self, stated: Mapping[str, Iterable[FollowedFact]]) -> None:
        """Take the facts of messages (`facts_in`), by the messages' names."""
        numbers: dict[FollowedFact, int] = {}
        self.of = {name: [numbers.setdefault(fact, len(numbers)) for fact in facts] for name, facts in stated.items()}
        """The facts in each message, by its name."""
        self.kinds = np.array([fact.kind for fact in numbers], np.str_)
        self.needed = SHARE * np.array([len(fact.words) for fact in numbers])  # words of each fact
        self.values, self.different = _parts(fact.values for fact in numbers)
        self.find_values = cache(finder(self.different))
        self.words, different = _parts(fact.words for fact in numbers)
        number = dict(zip(different, range(len(different)), strict=True))
        self.find_words = cache(lambda line: [number[word] for word in number.keys() & words(line)])


def survival(rounds: Sequence[Round], facts: FollowedFacts) -> list[Survival]:
    """Count the facts still in the summary, by kind and age."""
    number = np.fromiter(chain.from_iterable(new for new, _ in rounds), np.int64)
    entries = distinct(number << 32 | np.repeat(np.arange(len(rounds)), [len(new) for new, _ in rounds]))
    which, entered = entries >> 32, entries & (1 << 32) - 1
    # A fact that enters anew is followed from there.
    left = np.where(np.diff(which, append=-1) == 0, np.append(entered, 0)[1:], len(rounds))
    texts = [summary for _, summary in rounds]
    summaries = Lines(texts)
    if not all(map(reads_by_line, summaries.different)):
        # With kana the words of a text are not those of its lines: it is one line, of clauses that end where they did.
        summaries = Lines(text if reads_by_line(text) else text.replace("\n", "！") for text in texts)
    gone = _gone(facts, which, entered, left, summaries)
    # Each fact is counted once, at its last age, and `_beyond` adds up. Entered in the first of three rounds and gone
    # in the third, it is followed to age 2 and lived to age 1: rows of 1 of 1, 1 of 1 and 0 of 1.
    kinds, found = facts.kinds[which], list[Survival]()
    for kind in sorted(set(kinds.tolist())):
        of_kind, lived = kinds == kind, (kinds == kind) & (gone > entered)
        followed = np.bincount((left - entered - 1)[of_kind], minlength=len(rounds))
        kept = np.bincount((gone - entered - 1)[lived], minlength=len(rounds))
        ages = enumerate(zip(_beyond(followed.tolist()), _beyond(kept.tolist()), strict=True))
        found += [Survival(kind, age, total, still) for age, (total, still) in ages if total]
    return found


def _gone(facts: FollowedFacts, which: Ints, entered: Ints, left: Ints, summaries: Lines) -> Ints:
    """Return for each entry, of `which` fact and before it has `left`, the first summary with too little of it."""
    size = len(summaries.texts)
    at = np.arange(size)
    there = Stretches(at, at, at + 1, size).with_lines(summaries, 0)
    of_values = there.having(*summaries.places(facts.find_values, facts.different))
    entry, value = _of_entries(which, *facts.values)
    gone = left.copy()
    np.minimum.at(gone, entry, of_values.until(value, entered[entry]))
    # Where all values are there, the words count. How many of them are there changes where one comes or goes.
    said, line = places(facts.find_words, summaries.different)
    alive = np.flatnonzero(gone > entered)
    entry, word = _of_entries(which[alive], *facts.words)
    owner, at = alive[entry], alive[distinct(entry)]
    owner, begin, end = there.having(said, line + size).within(owner, word, entered, gone)
    owner, time = np.concatenate([at, owner, owner]), np.concatenate([entered[at], begin, end])
    change = np.repeat([0, 1, -1], [len(at), len(begin), len(end)])
    place = owner * (size + 1) + time
    order = np.argsort(place)
    owner, time, count = owner[order], time[order], np.cumsum(change[order])
    is_last = np.diff(place[order], append=-1) != 0
    few = is_last & (count < facts.needed[which[owner]]) & (time < gone[owner])
    np.minimum.at(gone, owner[few], time[few])
    return gone


def _of_entries(which: Ints, fact: Ints, part: Ints) -> tuple[Ints, Ints]:
    """Return every (entry, part), from the fact of each entry and the parts of each fact."""
    row, count = ranges(*(np.searchsorted(fact, which, side) for side in ("left", "right")))
    return np.repeat(np.arange(len(which)), count), part[row]


def _parts(of: Iterable[Iterable[T]]) -> tuple[tuple[Ints, Ints], list[T]]:
    """Return every (fact, part), by their numbers, and the different parts."""
    numbers: dict[T, int] = {}
    pairs = [(fact, numbers.setdefault(part, len(numbers))) for fact, parts in enumerate(of) for part in parts]
    fact, number = np.array(pairs, np.int64).reshape(-1, 2).T
    return (fact, number), list(numbers)


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


@lru_cache(1 << 14)
def _stated(value: ValueInText) -> FollowedFact:
    """Return the fact that a value is stated."""
    return FollowedFact(value.kind, (spellings(value),))


def facts_in(text: str) -> tuple[FollowedFact, ...]:
    """Return the different facts of a text, in order."""
    facts = dict.fromkeys(map(_stated, values(text)))
    for sentence in sentences(text):
        kinds = [kind for kind, says in (("decision", is_decision), ("constraint", is_constraint)) if says(sentence)]
        if kinds:
            needs = tuple(spellings(value) for value in exact_values(sentence))
            content = frozenset(words(sentence)) - STOP_WORDS
            facts.update((FollowedFact(kind, needs, content), None) for kind in kinds)
    return tuple(facts)
