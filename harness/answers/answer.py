"""Answer a run: give each probe's context to the answer model, each answer to the grader, shard by shard.

A shard that is answered already, from the same contexts by the same answer model, is not answered again; nor is one
graded twice. Answers and grades that a model failed to give are asked for again, and they alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import msgspec

from ctxbench.metrics.grading import Grade, GradedItem, Grader, Kind
from ctxbench.metrics.grading.rules import RulesGrader
from ctxbench.metrics.grounding import said
from ctxbench.metrics.quiz import MADE
from ctxbench.metrics.reading import VERSION, ExtractiveReader
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation, Message, Probe, Tool
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Event

from ..folder.run import Run
from ..folder.store import read_conversations
from ..models import Models
from ..probes import CEILING, FLOOR, asked_probes, questions, replayed
from ..replay import ConversationIndex
from .store import Answered, answered_by, answers_of, contexts_of, digest_of, grades_of, part_paths, read, shards, write

UNKNOWN = "UNKNOWN"  # answer of an answerer where the context does not say
NOT_ASKED = "not in the sample of questions"


class Question(NamedTuple):
    """A question with the context that a strategy sends for it."""

    conversation: str
    text: str
    context: Sequence[Message]  # without the question
    tools: tuple[Tool, ...] = ()  # tools that the model is offered: the recorded agent's own, and the strategy's
    tokens: int = 0  # of the request, by the run's count
    live: Callable[[], Live] | None = None  # starts the strategy, where it offers a tool
    recorded: Sequence[Message] = ()  # the messages of the recording
    own_tools: tuple[Tool, ...] = ()  # the tools that the strategy adds to those of the recording

    def same(self, calls_tools: bool) -> Hashable:
        """Return a key that questions with one answer share: text, context, and the strategy if tools are called."""
        # Recorded messages are known by their places: to compare their texts would take longer.
        spans = Messages.of(self.context).spans
        texts = (
            span[1:] if span.store is self.recorded else tuple(span.store[span.start : span.stop]) for span in spans
        )
        return self.text, *texts, (self.tools, self.live) if calls_tools else ()


class Answer(NamedTuple):
    """An answer with its usage, all rounds together."""

    text: str | Missing
    support: str = ""  # id of the message that it stands in, where the answerer knows
    rounds: int = 0  # model calls
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0  # US dollars; None = a price is not known
    called: tuple[str, ...] = ()  # the tools that the model called, in order
    events: tuple[Event, ...] = ()  # actions of the strategy for that


class Answerer(Protocol):
    """Answers questions. A failing model makes a Missing answer: `failed` to ask for again, `unusable` for good."""

    name: str  # the answerer: `offline`, or the full name of a model
    identity: str  # that, with all else that the answers depend on
    calls_tools: bool  # whether it may call the tools of a strategy

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Return an answer to each question, in order; all questions are of one conversation."""


class RunProbes:
    """The probes of a run with their contexts. `models` serve a strategy that has to be started again for its tools.

    Of `sample` questions, as many of each kind as there are of it, the others have no context. With `recorded` no
    question of a conversation whose questions were made is asked; the others are kept, since several answer them.
    """

    def __init__(self, run: Run, models: Models, sample: int = 0, recorded: bool = False) -> None:
        self._run, self._models, self._plan, self.size = run, models, run.manifest.plan, sample
        self._sample = sampled(run, sample) if sample else None
        self._recorded = recorded
        self._kept: dict[tuple[str, str], dict[int, Question | Missing]] = {}

    def asks(self, conversation: str, number: int) -> bool:
        """Return whether a question is asked."""
        return self._sample is None or (conversation, number) in self._sample

    def strategies(self, conversation: Conversation) -> list[str]:
        """Return the strategies that are asked about a conversation, bounds last."""
        if self._recorded and all(probe.category.startswith(MADE) for probe in conversation.probes):
            return []
        return list(dict.fromkeys((*self._plan.strategies, FLOOR, CEILING)))

    def of(self, conversation: Conversation, strategy: str) -> dict[int, Question | Missing]:
        """Return the questions to a strategy by number; Missing says why a probe has no context."""
        if (kept := self._kept.get((conversation.id, strategy))) is not None:
            return kept
        by_number: dict[int, Question | Missing] = {}
        for probe in asked_probes(self._run, conversation, strategy):
            number, context = probe.row["number"], probe.context
            if not (is_asked := self.asks(conversation.id, number)) or context is None:
                by_number[number] = Missing("undefined", probe.row["failed"] if is_asked else NOT_ASKED)
                continue
            sent = context.messages
            # From the end, where the question mostly stands. The form puts it last itself, so it is taken out.
            at = next((at for at in range(len(sent) - 1, -1, -1) if sent[at].id == probe.question.id), len(sent))
            # Not started yet: only a model that calls a tool of the strategy needs it (decision 24).
            live = partial(Live, conversation, strategy, number, self._models, self._plan.encoding)
            by_number[number] = Question(
                conversation.id,
                probe.probe.question,
                sent[:at] + sent[at + 1 :] if at < len(sent) else Messages.of(sent),
                context.tools,
                probe.row["tokens_sent"],
                None if context.tools == conversation.tools else live,
                conversation.messages,
                tuple(tool for tool in context.tools if tool not in conversation.tools),
            )
        if self._recorded:
            self._kept[conversation.id, strategy] = by_number
        return by_number


def sampled(run: Run, size: int) -> frozenset[tuple[str, int]]:
    """Return a sample of the questions of a run, spread evenly over their kinds: the same in every run."""
    rows = run.arrow("probes", ["category", "conversation", "number"]).to_pandas().drop_duplicates()
    order = sorted(
        (str(kind), digest_of(str(name), str(number)), str(name), int(number)) for kind, name, number in rows.values
    )
    size = min(size, len(order))
    return frozenset(order[at * len(order) // size][2:] for at in range(size))


class Live:
    """A strategy replayed up to a probe, which can answer calls of the tools that it offers."""

    def __init__(self, conversation: Conversation, strategy: str, number: int, models: Models, encoding: str) -> None:
        """Replay the conversation up to probe `number` of its list. Raises what the strategy or the replay raises."""
        index = ConversationIndex(conversation, TokenCounter(encoding))
        at = next(at for at, placed in enumerate(index.asked) if placed.number == number)
        probe, question = index.asked[at], questions(index.asked, index.ids)[at]
        self._services, _ = replayed(parse(strategy), index, models, probe, question)

    @property
    def tools(self) -> Mapping[str, Callable[[str], str]]:
        """The function behind each tool that the strategy offers: arguments as JSON text to the result."""
        return {name: answer for name, (_, answer) in self._services.tools.items()}

    def events(self) -> tuple[Event, ...]:
        """Return the events since the last time this was called."""
        return self._services.drain()[0]


Row = dict[str, Any]
Rows = list[Row]
Key = tuple[str, str, int]  # conversation, strategy and number of a probe


def answer(
    run: Run,
    answerer: Answerer,
    grader: Grader,
    probes: RunProbes,
    *,
    again: bool = False,
    ask: bool = True,
    done: Callable[[int], None] = lambda _: None,
) -> Answered:
    """Answer all probes of a run, and grade the answers.

    `again` makes anew whatever is there; without `ask` no answer that failed is asked for again. `done` is called with
    the number of conversations done since the last call.
    Raises RunError for a run in which no probe was asked.
    """
    for shard in asked_shards(run):
        Part(run, shard, answerer, grader, again, probes.size).make(probes, done, ask)
    answers = answered_by(run, answerer.name, grader.name)
    assert answers is not None
    return answers


def asked_shards(run: Run) -> list[str]:
    """Return the names of the shards in which probes were asked. Raises RunError if there are none."""
    if names := shards(run.folder):
        return names
    raise RunError(f"{run.folder}: no probe was asked in this run: its recordings have no questions")


class Part:
    """One shard, answered by one answer model and graded by one grader. `again` takes nothing of it for known.

    `found` are rows of answers and of grades that were made before, all of a conversation under a strategy. Without
    the shard's `conversations` they are read from the run folder.
    """

    def __init__(
        self,
        run: Run,
        shard: str,
        answerer: Answerer,
        grader: Grader,
        again: bool = False,
        sample: int = 0,
        found: tuple[Rows, Rows] = ([], []),
        conversations: Sequence[Conversation] = (),
    ) -> None:
        self._answerer, self._grader, self._given = answerer, grader, conversations
        self._recordings = run.folder / "recordings" / f"{shard}.jsonl.zst"
        self._answers, self._grades = part_paths(run.folder, answerer.name, grader.name, shard)
        identity = f"{answerer.identity} sample {sample}" if sample else answerer.identity
        self._metadata = answers_of(answerer.name, identity, contexts_of(run.folder, shard))
        # Read before answers are written: the grades of those that stay are not asked for again.
        answers = None if again else read(self._answers, "answers", self._metadata)
        grades = answers and read(self._grades, "grades", grades_of(grader.name, self._answers))
        self._stored, self._graded = (Rows() if table is None else table.to_pylist() for table in (answers, grades))
        self.known_answers = _known(self._stored)
        """The probes that are not asked again, with their rows."""
        self.known_grades = {key: row for key, row in _known(self._graded).items() if key in self.known_answers}
        """The probes whose answers are not graded again."""
        self.known_grades |= {_key(row): row for row in found[1]}
        self._found = {pair: list(rows) for pair, rows in groupby(found[0], pair_of)}
        self.made = self._stored, self._graded
        """The rows of answers and of grades, once they are made."""

    def make(self, probes: RunProbes, done: Callable[[int], None] = lambda _: None, ask: bool = True) -> None:
        """Answer and grade what is missing; without `ask` only grade the answers that are there."""
        answers = self._stored
        if not answers or (ask and len(self.known_answers) < len(answers)):
            answers = []
            for conversation in self.conversations:
                answers += self._answer(conversation, probes)
                done(1)
            if answers != self._stored or not answers:
                write(self._answers, "answers", answers, self._metadata)
        else:
            done(len(self.conversations))
        # Answers that have changed have no grades yet.
        graded = self._graded if answers == self._stored else []
        if not graded or len(self.known_grades) < len(graded):
            grades = self._grade(answers)
            if grades != graded or not grades:
                write(self._grades, "grades", grades, grades_of(self._grader.name, self._answers))
            graded = grades
        self.made = answers, graded

    @cached_property
    def conversations(self) -> Sequence[Conversation]:
        """The conversations of the shard."""
        return self._given or list(read_conversations(self._recordings))

    def _answer(self, conversation: Conversation, probes: RunProbes) -> Rows:
        known, stored = self.known_answers, [row for row in self._stored if row["conversation"] == conversation.id]
        if stored and all(_key(row) in known for row in stored):
            return stored
        rows, made = Rows(), dict[Hashable, Answer]()
        for strategy in probes.strategies(conversation):
            if found := self._found.get((conversation.id, strategy)):
                rows += found
                continue
            asked = probes.of(conversation, strategy)
            new = {
                number: question.same(self._answerer.calls_tools)
                for number, question in asked.items()
                if not isinstance(question, Missing) and (conversation.id, strategy, number) not in known
            }
            # Strategies that send the same share an answer.
            first = {same: asked[number] for number, same in new.items() if same not in made}
            made.update(zip(first, self._answerer.answers(list(first.values())), strict=True))  # type: ignore[arg-type]
            for number, question in asked.items():
                key = (conversation.id, strategy, number)
                if key in known:
                    rows.append(known[key])
                else:
                    answer = Answer(question) if isinstance(question, Missing) else made[new[number]]
                    rows.append(_row(conversation, key, answer))
        return rows

    def _grade(self, answers: Rows) -> Rows:
        """Return a row for each answer. Everything that is to be graded goes to the grader in one call."""
        known = self.known_grades
        conversations = {conversation.id: conversation for conversation in self.conversations if conversation.probes}
        messages = {
            name: {message.id: message for message in conversation.messages}
            for name, conversation in conversations.items()
        }
        items = {
            _key(row): item_of(
                conversations[row["conversation"]].probes[row["number"]],
                messages[row["conversation"]],
                row["answer"],
                f"{row['conversation']} {row['strategy']} {row['probe']}",
            )
            for row in answers
            if row["gold"] and row["answer"] is not None and _key(row) not in known
        }
        # UNKNOWN where there is an answer is no matter of judgement, and small models take it for right: `logit` took
        # 67 of 348 for right, so that `last_turn`, which knows nothing, had 20 % (decision 24). Rules grade it.
        by_rules = {key for key, item in items.items() if item.candidate == UNKNOWN and item.kind != "unanswerable"}
        grades: dict[Key, Grade | Missing] = {}
        for grader, keys in ((self._grader, items.keys() - by_rules), (RulesGrader(), by_rules)):
            some = {key: item for key, item in items.items() if key in keys}
            grades |= zip(some, grader.grade(list(some.values())), strict=True)
        rows = Rows()
        for row in answers:
            key = _key(row)
            if key in known:
                rows.append(known[key])
                continue
            why = "there is no answer to be graded" if row["answer"] is None else _NO_GOLD
            grade = grades.get(key, Missing("undefined", why))
            row = dict(zip(_KEY, key, strict=True)) | {name: getattr(grade, name, None) for name in _GRADE}
            row["missing"] = grade.detail if isinstance(grade, Missing) else None
            row["reply"] = _reply(grade) if key in items and key not in by_rules else None
            rows.append(row)
        return rows


_NO_GOLD = "the recording has no answer to compare with"
_KEY, _GRADE = ("conversation", "strategy", "number"), Grade.__struct_fields__
_OF_ANSWER = ("support", "rounds", "input_tokens", "output_tokens", "cost")


def pair_of(row: Row) -> tuple[str, str]:
    """Return the conversation and the strategy of an answer or a grade."""
    return row["conversation"], row["strategy"]


def _known(rows: Rows) -> dict[Key, Row]:
    """Return the rows that are not to be asked for again."""
    return {_key(row): row for row in rows if row["reply"] != "failed"}


def _key(row: Row) -> Key:
    return row["conversation"], row["strategy"], row["number"]


def _reply(value: object) -> str | None:
    """Return what became of the reply that a value is from; None if the model cannot give such a value at all."""
    if not isinstance(value, Missing):
        return "usable"
    return value.why if value.why in ("failed", "unusable") else None


def _row(conversation: Conversation, key: Key, answer: Answer) -> Row:
    probe = conversation.probes[key[2]]
    return {
        **dict(zip(_KEY, key, strict=True)),
        "probe": probe.id,
        "category": probe.category,
        "answerable": probe.answerable,
        "gold": has_gold(probe),
        "reply": _reply(answer.text),
        "answer": None if isinstance(answer.text, Missing) else answer.text,
        "missing": answer.text.detail if isinstance(answer.text, Missing) else None,
        **{name: getattr(answer, name) for name in _OF_ANSWER},
        "called": list(answer.called),
        "events": [msgspec.json.encode(event).decode() for event in answer.events],
    }


KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("temporal", "temporal-reasoning", "temporal_reasoning", "event_ordering"), "temporal"),
    **dict.fromkeys(("preference", "single-session-preference", "preference_following"), "preference"),
    **dict.fromkeys(("updated_fact", "knowledge-update", "knowledge_update"), "update"),
}
"""Names in recordings of the kinds of questions that are graded in their own way."""


def has_gold(probe: Probe) -> bool:
    """Return whether an answer to the probe can be graded."""
    return bool(any(map(str.strip, probe.answers)) or probe.rubric or not probe.answerable)


def item_of(probe: Probe, said_by: Mapping[str, Message], answer: str, name: str) -> GradedItem:
    """Return the answer to a probe as graders take it; one from documents outside needs no exact dates."""
    texts = [said(said_by[name_of]) for name_of in probe.evidence if name_of in said_by]
    kind: Kind = KINDS.get(probe.category, "plain") if probe.answerable else "unanswerable"
    evidence = tuple(filter(None, [*texts, *probe.passages]))
    return GradedItem(
        name, probe.question, probe.answers, answer, kind, probe.rubric, evidence, exact_dates=not probe.passages
    )


class Offline:
    """The extractive baseline: a span of the context, or UNKNOWN. It reads a conversation's messages once."""

    name = "offline"
    identity = f"offline {VERSION}"
    calls_tools = False

    def __init__(self, counter: TokenCounter) -> None:
        self._counter, self._conversation, self._reader = counter, "", ExtractiveReader()

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Return an answer to each question."""
        answers = list[Answer]()
        for question in questions:
            if question.conversation != self._conversation:
                self._conversation, self._reader = question.conversation, ExtractiveReader()
            span = self._reader.answer(question.context, question.text)
            answers.append(Answer(span.text, span.support, 1, question.tokens, self._counter.text(span.text)))
        return answers
