"""Probes without a model: whether a context has what a question needs.

**Evidence** is a message that an answer rests on and that precedes the question. In a context it is one of these:

- `verbatim`: the message is sent, or its text, whole or all its sentences, stands word for word in messages that the
  strategy wrote;
- `partial`: some of its sentences stand so in messages that the strategy wrote. A line ends a sentence; sentences of
  fewer than `LEAST` words are not looked for, since they stand anywhere;
- `summary`: no sentence of it is there, but a summary or a fact made from it is sent;
- `loadable`: nothing of it is there, but an archive or a lower tier has it, from which it can be loaded;
- `absent`: none of these.

White space does not matter, all else does. Another recorded message with the same text does not count: it is not the
evidence. A whole text of fewer than `LEAST` words has to be a line of its own, behind `speaker: ` if need be.

The **answer is in the context** where a model that misses nothing could give it: the ceiling of a strategy, 100 % where
the whole history is sent. A message has an accepted answer that it says as a whole, by words and values (`values.py`):
in any case, a day in any order, a number with or without commas and not as a part of a date, path or identifier. Bare
numbers and single letters stand anywhere by chance: they count in evidence and beside it. Where no evidence says an
answer, as a sum or a count, all of the evidence sent word for word will do as well. Yes or no, and a name that the
question offers ("Ann or Ben?"), are judged by the evidence alone. Probes without evidence whose answer nobody has said
do not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.model import Conversation, Message, Probe
from ctxbench.scenarios.view import Messages

from .grading.rules.quantities import dates
from .grounding import said
from .language import SHORT, sentences, words
from .times import written
from .tokens import Ledger
from .value import Missing, Value
from .values import finder, occurs, places, without_values

State = Literal["verbatim", "partial", "summary", "loadable", "absent"]  # states of evidence, from best to worst

LEAST = 3  # words that a sentence must have to be looked for


class RetainedEvidence(NamedTuple):
    """State of one message that an answer rests on, in one context."""

    state: State
    share: float = 0.0  # share of its text, in characters, that stands word for word in the context
    tokens: int = 0  # tokens of that part
    place: float = 0.0  # position of its middle among the tokens sent: 0 = at the start, 1 = at the end


class Evidence:
    """Message that answers rest on. Its text is read once for all strategies."""

    def __init__(self, at: int, message: Message) -> None:
        self.at, self.id, self._message = at, message.id, message

    @cached_property
    def text(self) -> str:
        """The text of the message, each run of white space as one blank."""
        return _read(self._message)[0]

    @cached_property
    def is_short(self) -> bool:
        """Whether its text is too short to be looked for within a line."""
        # The start of a long text tells already, and takes a hundredth of the time.
        return len(words(self.text[:SHORT])) <= LEAST and len(words(self.text)) < LEAST

    @cached_property
    def sentences(self) -> list[str]:
        """Sentences to look for."""
        return [plain for plain in map(_plain, sentences(said(self._message))) if len(words(plain)) >= LEAST]


@dataclass(frozen=True, slots=True)
class PlacedProbe:
    """A probe at its place, with its evidence and the messages that answer it (`placed_probes`)."""

    number: int  # in the conversation's list, from 0
    probe: Probe
    stop: int  # messages said before it
    evidence: tuple[Evidence, ...] = ()  # messages it rests on, as far as they precede it
    answers: frozenset[int] = frozenset()  # places of the messages that say an accepted answer
    spellings: tuple[str, ...] = ()  # ways to write the accepted answers, of those that can stand in a text
    by_evidence: bool = False  # whether it can be answered, if at all, from the evidence as a whole


def placed(conversation: Conversation) -> list[PlacedProbe]:
    """Return the probes in the order in which they are asked: by place, then as they are listed."""
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    end = len(conversation.messages) - 1
    # A probe that names no message is asked at the end. Sorting is stable, so those of one place stay as listed.
    probes = (PlacedProbe(at, probe, place.get(probe.after, end) + 1) for at, probe in enumerate(conversation.probes))
    return sorted(probes, key=lambda probe: probe.stop)


def placed_probes(conversation: Conversation) -> list[PlacedProbe]:
    """Return the probes in the order in which they are asked, with their evidence."""
    messages = conversation.messages
    place = {message.id: at for at, message in enumerate(messages)}
    says, evidence_at, result = defaultdict[int, set[int]](set), dict[int, Evidence](), []
    spelt = [
        tuple(way for way in spellings(probe.answers) if not occurs(way, probe.question.casefold()))
        for probe in conversation.probes
    ]
    texts = [said(message).casefold() for message in messages] if any(spelt) else []
    for probe, at in zip(*(found.tolist() for found in places(finder(spelt), texts)), strict=True):
        says[probe].add(at)
    for asked in placed(conversation):
        # Evidence that is not in the conversation gets the place `stop`, which is too late, and so is left out.
        where = [place.get(name, asked.stop) for name in dict.fromkeys(asked.probe.evidence)]
        evidence = tuple(evidence_at.setdefault(at, Evidence(at, messages[at])) for at in where if at < asked.stop)
        named, ways = {item.at for item in evidence}, spelt[asked.number]
        exact = [way for way in ways if not (evidence and stands_by_chance(way))]
        answers = {
            at
            for at in says[asked.number]
            if at < asked.stop and any(says_whole(way, messages[at]) for way in (ways if at in named else exact))
        }
        is_open = bool(evidence and asked.probe.answerable and asked.probe.answers) and not answers & named
        result.append(PlacedProbe(asked.number, asked.probe, asked.stop, evidence, frozenset(answers), ways, is_open))
    return result


_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_LONGEST_DAY = 60  # characters of the longest answer that can be nothing but a day
_YES_NO = frozenset(["yes", "no", "true", "false", "ja", "nein", "oui", "non", "sí", "si", "はい", "いいえ", "네"])
_YES_NO |= {"아니요", "是", "不是", "否", "对", "不对", "有", "没有"}


def spellings(answers: Iterable[str]) -> tuple[str, ...]:
    """Return the ways to write accepted answers, in small letters; answers that are only yes or no have no way."""
    ways = dict[str, None]()
    for answer in (answer.strip().casefold() for answer in answers):
        if not answer or answer.rstrip(".!。！") in _YES_NO:
            continue
        ways[answer] = None
        if _NUMBER.fullmatch(answer):
            whole, dot, part = answer.replace(",", "").partition(".")
            ways |= dict.fromkeys((f"{whole}{dot}{part}", f"{int(whole):,}{dot}{part}"))
        for when, start, stop in dates(answer) if len(answer) <= _LONGEST_DAY else ():
            if (start, stop) == (0, len(answer)) and when.low == when.high > 0:
                day = date.fromordinal(when.low)
                number, month, year = written(day).casefold().split()
                ways |= dict.fromkeys((day.isoformat(), written(day, chinese=True), f"{number} {month} {year}"))
                ways |= dict.fromkeys((f"{month} {number}, {year}", f"{number} {month[:3]} {year}"))
    return tuple(ways)


def says_whole(spelling: str, message: Message) -> bool:
    """Return whether a message says an answer as a whole; a number of one or two digits not as a part of a value."""
    if not occurs(spelling, _read(message)[1]):
        return False
    is_small = len(spelling) < 3 and spelling.isdecimal()
    return not is_small or occurs(spelling, without_values(said(message)).casefold())


def stands_by_chance(spelling: str) -> bool:
    """Return whether an answer is so short that any text may contain it: a number, or a single letter."""
    return len(spelling) == 1 or _NUMBER.fullmatch(spelling) is not None


class _Written(NamedTuple):
    """A message that the strategy wrote, at its place in the context."""

    message: Message
    before: int  # tokens sent before it
    tokens: int
    plain: str


class SentText:
    """Context sent for a question: spans of the recording and messages that the strategy wrote, with their places."""

    def __init__(self, messages: Messages, recording: Sequence[Message], ledger: Ledger, question: str) -> None:
        self._ledger, self.tokens = ledger, 0
        self._runs: list[tuple[int, int, int]] = []  # start and stop of each span, and the tokens before it
        self._written: list[_Written] = []
        for store, start, stop in messages.spans:
            if store is recording:
                self._runs.append((start, stop, self.tokens))
                self.tokens += ledger.upto(stop) - ledger.upto(start)
                continue
            for message in store[start:stop]:
                size = ledger.tokens(message)
                # The question is sent, so its tokens count, but what it says itself is no evidence and no answer.
                if message.id != question:
                    self._written.append(_Written(message, self.tokens, size, _read(message)[0]))
                self.tokens += size

    @property
    def written(self) -> list[Message]:
        """Messages that the strategy wrote."""
        return [written.message for written in self._written]

    def has(self, at: int) -> bool:
        """Return whether a recorded message is sent unchanged."""
        return any(start <= at < stop for start, stop, _ in self._runs)

    def says(self, probe: PlacedProbe, evidence: Sequence[RetainedEvidence]) -> bool | None:
        """Return whether the answer is in the context; None where nobody has said it. `evidence` is the probe's."""
        if probe.by_evidence and all(item.state == "verbatim" for item in evidence):
            return True
        if not probe.answers:
            return False if probe.by_evidence else None
        if any(map(self.has, probe.answers)):
            return True
        # Of numbers that stand anywhere, one beside a part of the evidence that says it, or a summary, is the answer.
        is_there = any(item.state in ("verbatim", "partial", "summary") for item in evidence)
        is_near = not evidence or (is_there and not probe.by_evidence)
        ways = [way for way in probe.spellings if is_near or not stands_by_chance(way)]
        return any(says_whole(way, message) for message in self.written for way in ways)

    def retained(
        self, evidence: Evidence, stood_for: Collection[str], loadable: Collection[str], count: Callable[[str], int]
    ) -> RetainedEvidence:
        """Return the state of a message that an answer rests on.

        `stood_for` has the ids of the messages that a summary or a fact in the context stands for, `loadable` the ids
        of those in an archive or a tier.
        """
        for start, stop, before in self._runs:
            if start <= evidence.at < stop:
                begin, end = self._ledger.upto(evidence.at), self._ledger.upto(evidence.at + 1)
                # In the recording the run begins at upto(start), in the context at `before`.
                middle = before - self._ledger.upto(start) + (begin + end) / 2
                return RetainedEvidence("verbatim", 1.0, end - begin, self._place(middle))
        # The whole text first: cut into sentences, those that are too short to be looked for would be missing from it.
        for texts in ([evidence.text], evidence.sentences) if self._written and evidence.text else ():
            passages = [(text, place) for text in texts if (place := self._find(text, evidence)) is not None]
            if passages:
                return self._parts(evidence, passages, count)
        if evidence.id in stood_for:
            return RetainedEvidence("summary")
        return RetainedEvidence("loadable" if evidence.id in loadable else "absent")

    def _find(self, text: str, evidence: Evidence) -> float | None:
        """Return the position, in tokens sent, of the middle of a text of evidence in a written message, or None."""
        is_line = text is evidence.text and evidence.is_short
        for message, before, tokens, plain in self._written:
            if text in _lines(message) if is_line else text in plain:
                # Tokens of a part are not known: it is taken to be as far into them as it is into the characters.
                middle = plain.find(text) + len(text) / 2
                return before + tokens * middle / len(plain)
        return None

    def _parts(
        self, evidence: Evidence, passages: Sequence[tuple[str, float]], count: Callable[[str], int]
    ) -> RetainedEvidence:
        """Return the state of a message whose text stands in messages that the strategy wrote."""
        sizes = [count(text) for text, _ in passages]
        # Sentences that are not looked for count neither as lost nor as kept. Both lengths are sums of the same whole
        # numbers, so a share of exactly 1 means that all are there.
        whole = evidence.text if passages[0][0] == evidence.text else "".join(evidence.sentences)
        share = sum(len(text) for text, _ in passages) / len(whole)
        middle = sum(size * place for size, (_, place) in zip(sizes, passages, strict=True)) / max(sum(sizes), 1)
        return RetainedEvidence("verbatim" if share == 1 else "partial", share, sum(sizes), self._place(middle))

    def _place(self, middle: float) -> float:
        return round(middle / self.tokens, 6)


_SPEAKER_END = re.compile(": |：")


@lru_cache(1 << 12)
def _read(message: Message) -> tuple[str, str]:
    """Return a message's text, and that without cases."""
    # The same messages are sent for many questions.
    plain = _plain(said(message))
    return plain, plain.casefold()


@lru_cache(1 << 12)
def _lines(message: Message) -> frozenset[str]:
    """Return a message's lines, and their parts behind the first colon."""
    lines = {plain for line in said(message).splitlines() if (plain := _plain(line))}
    return frozenset(lines | {parts[1] for line in lines if len(parts := _SPEAKER_END.split(line, 1)) == 2})


def _plain(text: str) -> str:
    """Return a text with each run of white space as one blank."""
    return " ".join(text.split())


MEASURES = {"recall@1": "R@1", "recall@5": "R@5", "recall@10": "R@10", "nDCG@10": "nDCG@10", "MRR": "RR"}
"""Our names of the measures, and those of `ir_measures`. The mean of the reciprocal ranks is the MRR."""


def ranked(rankings: Sequence[Sequence[str]], relevant: Sequence[Collection[str]]) -> list[dict[str, float]]:
    """Return every measure of each question, from the ids recalled for it, best first, and its relevant ids."""
    import ir_measures  # takes 0.1 s, and most commands rank nothing
    from ir_measures import Qrel, ScoredDoc, parse_measure

    relevance = [Qrel(str(at), name, 1) for at, names in enumerate(relevant) for name in sorted(set(names))]
    # The measures sort by score: the rank, falling, keeps our order.
    ranks = [(str(at), rank) for at, names in enumerate(rankings) for rank in enumerate(dict.fromkeys(names))]
    retrieved = [ScoredDoc(question, name, -float(rank)) for question, (rank, name) in ranks]
    by_question: list[dict[str, float]] = [dict.fromkeys(MEASURES, 0.0) for _ in relevant]
    names = {parse_measure(theirs): ours for ours, theirs in MEASURES.items()}
    for result in ir_measures.iter_calc(list(names), relevance, retrieved) if retrieved else ():
        by_question[int(result.query_id)][names[result.measure]] = float(result.value)
    return by_question


def recall(ranking: Sequence[Hashable], wanted: Collection[Hashable], k: int) -> Value:
    """Return the share of the wanted items among the first `k` of a ranking, each counted once."""
    relevant = set(wanted)
    if not relevant:
        return Missing("undefined", "nothing is wanted")
    return len(relevant.intersection(ranking[:k])) / len(relevant)


class Latency(NamedTuple):
    """Percentiles of times, in their unit."""

    p50: float
    p95: float
    p99: float


def latency(times: Sequence[float] | NDArray[np.float64]) -> Latency | Missing:
    """Return the percentiles of some times."""
    if not len(times):
        return Missing("undefined", "nothing was timed")
    return Latency(*(float(value) for value in np.percentile(np.asarray(times, np.float64), [50, 95, 99])))
