"""The state of a research dialogue, and what every turn of it does: search, open, note, answer, offer probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from ..asking import Questions
from ..script import Script
from ..wording import one, other_than_last, say
from . import speech_en, speech_zh
from .papers import Library, Paper, Topic, tidy
from .words import FIELDS, Criterion


@dataclass
class Agreed:
    """A value that the review goes by now, and the message that set it."""

    value: int
    said: str


@dataclass
class Review:
    """The state of one research dialogue."""

    rng: Random
    script: Script
    turns: int
    chinese: bool
    turn: int = 0
    topics: list[Topic] = field(default_factory=list)
    """Those that were talked about, in the order they came up."""
    criteria: dict[Criterion, list[Agreed]] = field(default_factory=dict)
    """Every value that a criterion had, newest last."""
    hypotheses: dict[str, int] = field(default_factory=dict)
    """By outcome and moderator: the threshold that the hypothesis names now."""
    notes: int = 0

    def __post_init__(self) -> None:
        self.at = int(self.chinese)
        self._said: dict[str, str] = {}
        self.speech = (speech_zh if self.chinese else speech_en).SPEECH
        self.area = one(self.rng, FIELDS)
        self.library = Library(self.rng, self.area, self.chinese)
        self.questions = Questions(self.rng, self.turns, self._nowhere)
        pairs = [(outcome, moderator) for outcome in self.area.outcomes for moderator in self.area.moderators]
        joint = "与" if self.chinese else " and "
        self.unvisited = [
            Topic(outcome, moderator, f"{outcome.name[self.at]}{joint}{moderator.name[self.at]}")
            for outcome, moderator in self.rng.sample(pairs, len(pairs))
        ]

    def words(self, key: str, facts: dict[str, str]) -> str:
        text = tidy(say(self.rng, other_than_last(self.rng, self.speech[key], self._said, key), facts))
        return text if self.chinese else text[:1].upper() + text[1:]

    def facts(self, topic: Topic, paper: Paper | None = None, second: Paper | None = None) -> dict[str, str]:
        """What can be said of a topic, with a paper and one to compare it with."""
        outcome, moderator = topic.outcome, topic.moderator
        facts = dict(paper.facts) if paper else {}
        facts |= {
            "topic": topic.name,
            "outcome": outcome.name[self.at],
            "moderator": moderator.name[self.at],
            "munit": moderator.unit[self.at],
            "count": str(len(topic.papers)),
            "mechanism2": one(self.rng, self.area.mechanisms)[self.at],
            "first1": facts.get("first", ""),
        }
        if second is not None:
            facts |= {f"{name}2": second.facts[name] for name in ("n", "months", "place", "first")}
            facts["second"] = second.label
            facts["better"] = max((paper or second, second), key=lambda each: each.sample).label
        return facts

    def search(self, topic: Topic, fresh: int, query: str) -> str:
        """Search: some papers of the topic that were seen, and new ones. Returns the message with the hits."""
        seen = self.rng.sample(topic.papers[-12:], min(2, len(topic.papers)))
        new = [self.library.paper(topic) for _ in range(fresh)]
        topic.papers += new
        topic.last = self.turn
        hits = self.rng.sample(seen + new, len(seen + new))
        saying = self.words("searching", self.facts(topic))
        text = "\n\n".join(self.library.abstract(paper) for paper in hits)
        return self.script.tool_call("search_papers", {"query": query}, text, saying)

    def open(self, topic: Topic, papers: list[Paper]) -> None:
        """Open one paper, or two in one message."""
        calls = [self.script.call("open_paper", {"id": paper.id}) for paper in papers]
        self.script.assistant(
            self.words("opening" if len(papers) > 1 else "opening_one", self.facts(topic, papers[0])), calls
        )
        for paper, call in zip(papers, calls, strict=True):
            paper.shown = self.script.result(call, self.library.whole(paper))
            if paper not in topic.opened:
                topic.opened.append(paper)
            self._offer_paper(topic, paper)
        if len(papers) == 2:
            self._offer_pair(topic, *papers)

    def note(self, key: str, facts: dict[str, str]) -> tuple[str, str]:
        """Take a note; returns the message that confirms it, and the day that it names."""
        self.notes += 1
        day = f"{self.script.now:%Y-%m-%d}"
        text = self.words(key, facts)
        saved = self.words("note_saved", {"number": str(self.notes), "date": day})
        said = self.script.tool_call(
            "take_note", {"text": text}, saved + ("" if self.chinese else " ") + text, self.words("noting", facts)
        )
        return said, day

    def answer(self, topic: Topic, papers: list[Paper], *extra: str) -> str:
        """A long answer: what the turn adds, the papers read, some of the others, a caution."""
        parts = [*extra, self.words("answer_open", self.facts(topic))]
        parts += [
            self.words("answer_paper" if paper.effect else "answer_null", self.facts(topic, paper)) for paper in papers
        ]
        parts.append(self.words("answer_detail", self.facts(topic, papers[0])))
        others = [paper for paper in topic.papers[-8:] if paper not in papers]
        hits = self.rng.sample(others, min(3, len(others)))
        gap = "" if self.chinese else " "
        parts.append(gap.join(self.words("answer_hit", self.facts(topic, paper)) for paper in hits))
        parts.append(self.words("answer_end", self.facts(topic)))
        return self.script.assistant("\n\n".join(part for part in parts if part))

    def offer(
        self,
        category: str,
        key: str,
        facts: dict[str, str],
        answers: Sequence[str],
        evidence: Sequence[str],
        *,
        about: Sequence[str] = (),
        computed: bool = False,
    ) -> None:
        """A question that can be asked from now on."""
        self.questions.offer(category, self.words(key, facts), answers, evidence, about=about, computed=computed)

    def counted(self, number: int, unit: str) -> list[str]:
        """Accepted spellings of a number."""
        if not unit:
            return [str(number)]
        spaced = [str(number), tidy(f"{number} {unit}")]
        return list(dict.fromkeys([*spaced, f"{number}{unit}"])) if self.chinese else spaced

    def _offer_paper(self, topic: Topic, paper: Paper) -> None:
        facts, shown = self.facts(topic, paper), [paper.shown]
        self.offer("single_hop", "q_n", facts, self.counted(paper.sample, facts["units"]), shown)
        percent = f"{facts['dropout']}%"
        self.offer("single_hop", "q_dropout", facts, [facts["dropout"], percent, f"{facts['dropout']} percent"], shown)
        self.offer("single_hop", "q_instrument", facts, [facts["instrument"]], shown)
        months = int(facts["months"])
        self.offer("single_hop", "q_months", facts, self.counted(months, "个月" if self.chinese else "months"), shown)

    def _offer_pair(self, topic: Topic, first: Paper, second: Paper) -> None:
        facts, shown = self.facts(topic, first, second), [first.shown, second.shown]
        if first.sample != second.sample:
            larger = max((first, second), key=lambda paper: paper.sample)
            self.offer("multi_hop", "q_larger", facts, [larger.label], shown)
        total = self.counted(first.sample + second.sample, facts["units"])
        self.offer("multi_hop", "q_sum", facts, total, shown, computed=True)
        if first.facts["start"] != second.facts["start"]:
            earlier = min((first, second), key=lambda paper: int(paper.facts["start"]))
            facts |= {"first1": first.facts["first"], "first2": second.facts["first"]}
            self.offer("temporal", "q_older", facts, [earlier.facts["first"], earlier.label], shown)
        years = self.counted(abs(first.year - second.year), "年" if self.chinese else "years")
        self.offer("temporal", "q_span", facts, years, shown, computed=True)

    def _nowhere(self) -> str:
        topic = one(self.rng, self.topics)
        return self.words("nowhere", self.facts(topic, one(self.rng, topic.papers)))
