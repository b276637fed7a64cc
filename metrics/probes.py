"""Is what a question needs in what is sent? Probes, measured without any model.

Of each message that an answer rests on, its **evidence**, as far as it was said before the question:

- `verbatim`: it is sent as it was said, or its text, whole or all its sentences, stands word for word in messages that
  the strategy wrote;
- `part`: some of its sentences stand so in messages that the strategy wrote. A line ends a sentence; those of fewer
  than `LEAST` words are not looked for, since they stand anywhere;
- `summary`: no sentence of it is there, but a summary, or a fact, that was made of it is sent;
- `loadable`: nothing of it is there, but an archive or a lower tier has it, from which it can be loaded;
- `absent`: none of these.

White space does not matter, all else does. Another recorded message that says the same does not count: it is not the
evidence. A whole text of fewer than `LEAST` words has to be a line of its own, behind `role: ` if need be.

An accepted **answer** is present if any message but the question says it as a whole (`occurrences.py`), in any case.
It is asked of the probes alone one of whose accepted answers had been said so: no strategy can keep the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..scenarios.model import Conversation, Message, Probe
from ..scenarios.view import Messages
from .grounding import said
from .language import sentences, words
from .tokens import Ledger
from .value import Missing, Value
from .values import occurs, places

State = Literal["verbatim", "part", "summary", "loadable", "absent"]
STATES: tuple[State, ...] = ("verbatim", "part", "summary", "loadable", "absent")
"""From the best to the worst."""

LEAST = 3
"""Words that a sentence must have to be looked for."""


class RetainedEvidence(NamedTuple):
    """What has become of one message that an answer rests on."""

    state: State
    share: float = 0.0
    """Of its text, in characters, what stands word for word in what is sent."""
    tokens: int = 0
    """Of that."""
    place: float = 0.0
    """Where the middle of that is among the tokens sent: 0 = at the start, 1 = at the end."""


class Evidence:
    """A message that answers rest on. Its text is read once for all strategies."""

    __slots__ = ("_message", "_sentences", "at", "id", "text")

    def __init__(self, at: int, message: Message) -> None:
        self.at, self.id, self._message = at, message.id, message
        self.text = _plain(said(message))
        self._sentences: list[str] | None = None

    @property
    def sentences(self) -> list[str]:
        """Those that are looked for."""
        if self._sentences is None:
            found = sentences(said(self._message))
            self._sentences = [plain for each in found if len(words(plain := _plain(each))) >= LEAST]
        return self._sentences


@dataclass(frozen=True, slots=True)
class PlacedProbe:
    """A probe at its place."""

    number: int
    """In the conversation's list, from 0."""
    probe: Probe
    stop: int
    """Messages said before it."""
    evidence: tuple[Evidence, ...]
    """What it rests on and had been said."""
    answers: frozenset[int]
    """The messages that say an accepted answer."""


class Placed(NamedTuple):
    """A probe and where it is asked."""

    number: int
    """In the conversation's list, from 0."""
    probe: Probe
    stop: int
    """Messages said before it."""


def placed(conversation: Conversation) -> list[Placed]:
    """The probes in the order in which they are asked: by place, then as they are listed."""
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    end = len(conversation.messages) - 1
    found = (Placed(at, each, place.get(each.after, end) + 1) for at, each in enumerate(conversation.probes))
    return sorted(found, key=lambda each: each.stop)


def asked(conversation: Conversation) -> list[PlacedProbe]:
    """The probes in that order, with what they rest on."""
    messages = conversation.messages
    place = {message.id: at for at, message in enumerate(messages)}
    says: dict[int, set[int]] = {}
    accepted = [tuple(each.casefold() for each in probe.answers if each.strip()) for probe in conversation.probes]
    if any(accepted):
        for value, at in zip(*places(accepted, [said(message).casefold() for message in messages]), strict=True):
            says.setdefault(int(value), set()).add(int(at))
    known: dict[int, Evidence] = {}
    made = []
    for number, probe, stop in placed(conversation):
        where = [at for name in dict.fromkeys(probe.evidence) if (at := place.get(name, stop)) < stop]
        evidence = tuple(known.setdefault(at, Evidence(at, messages[at])) for at in where)
        answers = frozenset(at for at in says.get(number, ()) if at < stop)
        made.append(PlacedProbe(number, probe, stop, evidence, answers))
    return made


class _Text(NamedTuple):
    """What a written message says."""

    plain: str
    folded: str
    lines: frozenset[str]
    """Its lines, and what stands in them behind the first colon."""


class _Written(NamedTuple):
    """A message that the strategy wrote, where it is sent."""

    message: Message
    text: _Text
    before: int
    """Tokens before it."""
    tokens: int


class SentText:
    """What was sent for a question: stretches of the recording, and what the strategy wrote, each with its place."""

    def __init__(self, messages: Messages, recording: Sequence[Message], ledger: Ledger, question: str) -> None:
        self._ledger, self.tokens = ledger, 0
        self._runs: list[tuple[int, int, int]] = []
        """Of each stretch where it starts and stops, and the tokens before it."""
        self._written: list[_Written] = []
        for store, start, stop in messages.spans:
            if store is recording:
                self._runs.append((start, stop, self.tokens))
                self.tokens += ledger.upto(stop) - ledger.upto(start)
                continue
            for message in store[start:stop]:
                size = ledger.tokens(message)
                if message.id != question:
                    self._written.append(_Written(message, _read(message), self.tokens, size))
                self.tokens += size

    @property
    def written(self) -> list[Message]:
        """What the strategy wrote."""
        return [each.message for each in self._written]

    def has(self, at: int) -> bool:
        """Whether a recorded message is sent as it was said."""
        return any(start <= at < stop for start, stop, _ in self._runs)

    def says(self, probe: PlacedProbe) -> bool:
        """Whether an accepted answer is there."""
        if any(map(self.has, probe.answers)):
            return True
        folded = [answer.casefold() for answer in probe.probe.answers if answer.strip()]
        return any(occurs(answer, written.text.folded) for written in self._written for answer in folded)

    def kept(
        self, evidence: Evidence, stood_for: Collection[str], loadable: Collection[str], count: Callable[[str], int]
    ) -> RetainedEvidence:
        """What has become of a message. `stood_for` are the ids of those that a summary or a fact is sent of,
        `loadable` of those in an archive or a tier.
        """
        for start, stop, before in self._runs:
            if start <= evidence.at < stop:
                begin, end = self._ledger.upto(evidence.at), self._ledger.upto(evidence.at + 1)
                return RetainedEvidence(
                    "verbatim", 1.0, end - begin, self._place(before - self._ledger.upto(start) + (begin + end) / 2)
                )
        for texts in ([evidence.text], evidence.sentences) if evidence.text else ():
            found = [(text, place) for text in texts if (place := self._find(text)) is not None]
            if found:
                return self._parts(evidence, found, count)
        if evidence.id in stood_for:
            return RetainedEvidence("summary")
        return RetainedEvidence("loadable" if evidence.id in loadable else "absent")

    def _find(self, text: str) -> float | None:
        """Where the middle of a text is that a written message has, in tokens sent."""
        short = len(words(text)) < LEAST
        for _, (plain, _, lines), before, tokens in self._written:
            if text in lines if short else text in plain:
                middle = plain.find(text) + len(text) / 2
                return before + tokens * middle / len(plain)
        return None

    def _parts(
        self, evidence: Evidence, found: Sequence[tuple[str, float]], count: Callable[[str], int]
    ) -> RetainedEvidence:
        """Of a message that is sent in what the strategy wrote."""
        sizes = [count(text) for text, _ in found]
        whole = evidence.text if found[0][0] == evidence.text else "".join(evidence.sentences)
        share = sum(len(text) for text, _ in found) / len(whole)
        middle = sum(size * place for size, (_, place) in zip(sizes, found, strict=True)) / max(sum(sizes), 1)
        return RetainedEvidence("verbatim" if share == 1 else "part", share, sum(sizes), self._place(middle))

    def _place(self, middle: float) -> float:
        return round(middle / self.tokens, 6)


@lru_cache(1 << 12)
def _read(message: Message) -> _Text:
    """What a message says, whatever its white space; the same ones are sent for many questions."""
    text = said(message)
    lines = {plain for line in text.splitlines() if (plain := _plain(line))}
    plain = _plain(text)
    return _Text(plain, plain.casefold(), frozenset(lines | {line.partition(": ")[2] for line in lines}))


def _plain(text: str) -> str:
    """A text with each stretch of white space as one blank."""
    return " ".join(text.split())


MEASURES: Mapping[str, str] = {
    "recall@1": "R@1",
    "recall@5": "R@5",
    "recall@10": "R@10",
    "nDCG@10": "nDCG@10",
    "MRR": "RR",
}
"""Ours, and as `ir_measures` has them. The mean of the reciprocal ranks is the MRR."""


def ranked(rankings: Sequence[Sequence[str]], relevant: Sequence[Collection[str]]) -> list[dict[str, float]]:
    """Every measure of each question, from what was recalled for it, best first, and what it rests on: at least one."""
    import ir_measures  # 0.1 s
    from ir_measures import Qrel, ScoredDoc, parse_measure

    wanted = [Qrel(str(at), name, 1) for at, names in enumerate(relevant) for name in sorted(set(names))]
    found = [
        ScoredDoc(str(at), name, -float(rank))
        for at, names in enumerate(rankings)
        for rank, name in enumerate(dict.fromkeys(names))
    ]
    made: list[dict[str, float]] = [dict.fromkeys(MEASURES, 0.0) for _ in relevant]
    names = {parse_measure(theirs): ours for ours, theirs in MEASURES.items()}
    for each in ir_measures.iter_calc(list(names), wanted, found) if found else ():
        made[int(each.query_id)][names[each.measure]] = float(each.value)
    return made


def recall(found: Sequence[Hashable], wanted: Collection[Hashable], k: int) -> Value:
    """The share of what is wanted that is among the first `k` found, each counted once."""
    each = set(wanted)
    if not each:
        return Missing("undefined", "nothing is wanted")
    return len(each.intersection(found[:k])) / len(each)


class Latency(NamedTuple):
    """Percentiles, in the unit of what was given."""

    p50: float
    p95: float
    p99: float


def latency(times: Sequence[float] | NDArray[np.float64]) -> Latency | Missing:
    """The percentiles of some times."""
    if not len(times):
        return Missing("undefined", "nothing was timed")
    return Latency(*(float(each) for each in np.percentile(np.asarray(times, np.float64), [50, 95, 99])))
