"""One unit of work: a shard of conversations through every strategy, written to the run folder."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec

from ...metrics.grounding import retained
from ...metrics.measure import MeasuredResult, measure
from ...metrics.survival import Round, survival
from ...metrics.tokens import TokenCounter
from ...scenarios.errors import RunError, Stopped
from ...scenarios.model import Call, Conversation, Usage
from ...strategies.base import Strategy, budget_of
from ...strategies.bounds import EvidenceOnly, LastTurn
from ...strategies.chain import parse
from ...strategies.events import Called, Summarised
from ..answers.answer import answer_usually
from ..folder.store import PER_CELL, PER_SHARD, Constant, ResultPart
from ..models import Models, Settings
from ..probes.ask import CEILING, FLOOR
from ..probes.probe_run import ProbeResult, bounded, interviewed, write_probes
from ..replay import ContextLog, ConversationIndex, RecordedContext, replay, why

Cell = tuple[ContextLog, list[ProbeResult]]
Asked = dict[str, list[tuple[str, list[ProbeResult]]]]
"""By strategy the conversations with their probes."""


class Shard(msgspec.Struct, frozen=True):
    """Some consecutive conversations, and the strategies to put them through."""

    number: int
    conversations: list[Conversation]
    strategies: list[str]
    folder: str
    encoding: str
    models: Settings = Settings()
    probes: bool = True
    """Whether probes are asked."""
    answers: bool = False
    """Whether they are answered, by `offline`, and the answers graded, by `rules`."""


class Done(msgspec.Struct, frozen=True):
    """What comes back of a shard: its files are written."""

    number: int
    conversations: int
    steps: int
    """Steps replayed now; those of parts that were finished before are not in it."""
    digest: str


def work_packed(shard: bytes) -> Done:
    """`work` for a shard that came as MessagePack, as workers get them."""
    return work(msgspec.msgpack.decode(shard, type=Shard))


def work(shard: Shard) -> Done:
    """Put a shard through its strategies and write every part that is not there yet."""
    folder, conversations = Path(shard.folder), shard.conversations
    digests = [conversation.digest() for conversation in conversations]
    digest = digest_of(digests)
    counter, models, steps = _counter(shard.encoding), _models(shard.models), 0
    try:
        parts = [(spec, ResultPart(folder, shard.number, at)) for at, spec in enumerate(shard.strategies)]
        todo = [(spec, part) for spec, part in parts if not _finished(part, digest)]
        books = [ConversationIndex(conversation, counter) for conversation in conversations]
        recordings = ResultPart(folder, shard.number)
        with no_cycles():
            if recordings.digest("conversations") != digest or not recordings.whole(PER_SHARD):
                write_probes(recordings, _bounds(books, shard.strategies, models, shard.probes))
                write_recordings(recordings, digests, conversations, books)
            for spec, part in todo:
                strategy = parse(spec)
                budget, wrong = _budget(strategy)
                cells = [wrong or _replayed(each, strategy, models, shard.probes) for each in books]
                write_probes(part, {spec: _probed(conversations, cells)})
                logs = [cell if isinstance(cell, str) else cell[0] for cell in cells]
                steps += write_cells(part, digest, spec, budget, books, logs)
        if shard.answers:
            answer_usually(folder, shard.number, counter, models)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return Done(shard.number, len(conversations), steps, digest)


@contextmanager
def no_cycles() -> Iterator[None]:
    """No garbage collector while a shard is worked on: a log has no cycles, and walking it took a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _finished(part: ResultPart, digest: str) -> bool:
    found = part.digest("results")
    if found not in (None, digest):
        raise RunError(
            f"{part.folder}: the recordings are not what they were when this run began (shard {part.name}): "
            "run with --overwrite, or name another --out"
        )
    return found is not None and part.whole(PER_CELL)


@cache
def _counter(encoding: str) -> TokenCounter:
    return TokenCounter(encoding)


@cache
def _models(settings: Settings) -> Models:
    return Models(settings)


def _replayed(books: ConversationIndex, strategy: Strategy, models: Models, probes: bool) -> Cell | str:
    """One cell; if the strategy raises, why. It loses its cell and nothing else."""
    log = ContextLog(books.conversation.messages)
    try:
        if probes and books.conversation.probes:
            return log, interviewed(books, strategy, models, log)
        for step in replay(books.conversation, strategy, RecordedContext(books, models)):
            log.add(step)
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        return why(error)
    return log, []


def _probed(conversations: Sequence[Conversation], cells: Sequence[Cell | str]) -> list[tuple[str, list[ProbeResult]]]:
    """The probes of the conversations that did not fail."""
    pairs = zip(conversations, cells, strict=True)
    return [(conversation.id, cell[1]) for conversation, cell in pairs if not isinstance(cell, str)]


def _bounds(books: Sequence[ConversationIndex], strategies: Sequence[str], models: Models, probes: bool) -> Asked:
    """The probes of each conversation, asked of the bounds that are no strategies of the run."""
    if not probes:
        return {}
    bounds: dict[str, Strategy] = {FLOOR: LastTurn(), CEILING: EvidenceOnly()}
    return {
        name: [(each.conversation.id, bounded(each, bound, models)) for each in books]
        for name, bound in bounds.items()
        if name not in strategies
    }


def _budget(strategy: Strategy) -> tuple[int | None, str]:
    """What the strategy promises; if it cannot be had, why: then it loses its cells."""
    try:
        return budget_of(strategy), ""
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        return None, why(error)


NO_CALL, NO_USAGE = Call(), Usage()


def digest_of(digests: Iterable[str]) -> str:
    """One digest for several, in order."""
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def write_recordings(
    part: ResultPart, digests: list[str], conversations: list[Conversation], books: Sequence[ConversationIndex]
) -> None:
    """Write a shard's conversations: whole, and as the two tables on them."""
    part.write_recordings(conversations)
    sizes = [len(conversation.messages) for conversation in conversations]
    messages = [message for conversation in conversations for message in conversation.messages]
    running = [each.ledger.running(size) for each, size in zip(books, sizes, strict=True)]
    calls = [message.call or NO_CALL for message in messages]
    usage = [call.usage or NO_USAGE for call in calls]
    part.write(
        "messages",
        {
            "conversation": [c.id for c, size in zip(conversations, sizes, strict=True) for _ in range(size)],
            "at": [at for size in sizes for at in range(size)],
            "id": [message.id for message in messages],
            "role": [message.role for message in messages],
            "tokens": [after - before for each in running for before, after in pairwise(each)],
            "time": [message.time for message in messages],
            "model": [call.model or None for call in calls],
            "usage_input": [each.input for each in usage],
            "usage_output": [each.output for each in usage],
            "usage_cache_read": [each.cache_read for each in usage],
            "usage_cache_write": [each.cache_write for each in usage],
            "usage_cost": [each.cost for each in usage],
            "compacted": [each for conversation in conversations for each in _compacted(conversation)],
        },
    )
    part.write(
        "conversations",
        {
            "conversation": [c.id for c in conversations],
            "digest": digests,
            "source": [c.source for c in conversations],
            "licence": [c.licence for c in conversations],
            "language": [c.language for c in conversations],
            "messages": sizes,
            "calls": [sum(1 for _ in c.calls()) for c in conversations],
            "probes": [len(c.probes) for c in conversations],
            "tokens": [each[-1] for each in running],
            "tools_tokens": [each.tools(c.tools) for c, each in zip(conversations, books, strict=True)],
            "meta": [msgspec.json.encode(c.meta).decode() for c in conversations],
        },
        digest_of(digests),
    )


def _compacted(conversation: Conversation) -> Iterator[bool]:
    """Whether a recorded compaction stands before each message."""
    after = {compaction.after for compaction in conversation.compactions}
    seen = False
    for message in conversation.messages:
        yield seen
        seen = seen or message.id in after


def write_cells(
    part: ResultPart,
    digest: str,
    spec: str,
    budget: int | None,
    books: Sequence[ConversationIndex],
    logs: Sequence[ContextLog | str],
) -> int:
    """Measure what one strategy did with every conversation, and write the part's tables. Returns the steps.

    A log that is a text is a cell that failed, and why.
    """
    done = [(each, log) for each, log in zip(books, logs, strict=True) if isinstance(log, ContextLog)]
    cells = [cell_of(each, log, budget) for each, log in done]
    steps = [len(cell.runs.at) for cell in cells]
    names = {
        "conversation": [
            each.conversation.id for (each, _), count in zip(done, steps, strict=True) for _ in range(count)
        ],
        "strategy": Constant(spec, sum(steps)),
    }
    measured = measure(cells)
    part.write(
        "timings",
        {
            **names,
            "step": measured["step"],
            "latency_ns": [time for _, log in done for time in log.latency_ns],
            "model_wait_ns": [time for _, log in done for time in log.model_wait_ns],
        },
    )
    _write_contexts(part, spec, done)
    _write_events(part, spec, done)
    _write_grounding(part, spec, done)
    _write_survival(part, spec, done)
    marks = [marks for _, log in done for marks in log.marks]
    part.write("steps", {**names, **measured, "marks": marks, "tools_added": _tools_added(done)})
    part.write(
        "results",
        {
            "conversation": [each.conversation.id for each in books],
            "strategy": Constant(spec, len(books)),
            "status": ["ok" if isinstance(log, ContextLog) else "failed" for log in logs],
            "detail": ["" if isinstance(log, ContextLog) else log for log in logs],
            "steps": [len(log.runs.at) if isinstance(log, ContextLog) else 0 for log in logs],
            "budget": [budget] * len(logs),
        },
        digest,
    )
    return sum(steps)


def _tools_added(cells: Iterable[tuple[ConversationIndex, ContextLog]]) -> list[list[str]]:
    """Of each step, the names of the tools that are not the recording's."""
    made: list[list[str]] = []
    for books, log in cells:
        recorded = before = books.conversation.tools
        names: list[str] = []
        for tools in log.tools:
            if tools is not before:
                before, names = tools, [tool.name for tool in tools if tool not in recorded]
            made.append(names)
    return made


def cell_of(books: ConversationIndex, log: ContextLog, budget: int | None) -> MeasuredResult:
    """A replayed cell, ready to be measured."""
    return MeasuredResult(
        recording=books.conversation.messages,
        written=log.written,
        ledger=books.ledger,
        structure=books.structure,
        runs=log.runs,
        tools=[books.tools(tools) for tools in log.tools],
        tools_full=books.tools(books.conversation.tools),
        budget=budget,
    )


def _write_contexts(part: ResultPart, spec: str, cells: Iterable[tuple[ConversationIndex, ContextLog]]) -> None:
    """Write the messages that the strategy wrote, if it wrote any."""
    rows = [
        (books.conversation.id, number, books.ledger.tokens(message), msgspec.json.encode(message).decode())
        for books, log in cells
        for number, message in enumerate(log.written)
    ]
    if rows:
        names, numbers, tokens, messages = zip(*rows, strict=True)
        columns = {"conversation": names, "number": numbers, "tokens": tokens, "message": messages}
        part.write("contexts", {**columns, "strategy": Constant(spec, len(rows))})


def _write_events(part: ResultPart, spec: str, cells: Iterable[tuple[ConversationIndex, ContextLog]]) -> None:
    """Write what the strategy did, if it reported anything."""
    rows = [(books.conversation.id, step, event) for books, log in cells for step, event in log.events]
    if not rows:
        return
    calls = [event if isinstance(event, Called) else None for _, _, event in rows]
    part.write(
        "events",
        {
            "conversation": [name for name, _, _ in rows],
            "strategy": Constant(spec, len(rows)),
            "step": [step for _, step, _ in rows],
            "kind": [str(event.__struct_config__.tag) for _, _, event in rows],
            "input_tokens": [call.input_tokens if call else None for call in calls],
            "output_tokens": [call.output_tokens if call else None for call in calls],
            "cost": [call.cost if call else None for call in calls],
            "about": [call.about if call and call.role == "summariser" else None for call in calls],
            "shown": [call.shown if call and call.role == "summariser" else None for call in calls],
            "event": [msgspec.json.encode(event).decode() for _, _, event in rows],
        },
    )


def _write_grounding(part: ResultPart, spec: str, cells: Sequence[tuple[ConversationIndex, ContextLog]]) -> None:
    """Write what the recorded model used next, and how much of it each context still had."""
    demands = [books.demands for books, _ in cells]
    rows = sum(len(each.step) for each in demands)
    part.write(
        "grounding",
        {
            "conversation": [
                books.conversation.id for (books, _), each in zip(cells, demands, strict=True) for _ in each.step
            ],
            "strategy": Constant(spec, rows),
            "step": [step for each in demands for step in each.step.tolist()],
            "of": [of for each in demands for of in each.of],
            "kind": [kind for each in demands for kind in each.kind],
            "values": [count for each in demands for count in each.values.tolist()],
            "kept": [
                count
                for (_, log), each in zip(cells, demands, strict=True)
                for count in retained(each, log.runs, log.written).tolist()
            ],
        },
    )


def _write_survival(part: ResultPart, spec: str, cells: Iterable[tuple[ConversationIndex, ContextLog]]) -> None:
    """Write how long facts outlived being summarised, if there were summaries."""
    rows = [(books.conversation.id, row) for books, log in cells for row in survival(_rounds(books, log))]
    if rows:
        part.write(
            "survival",
            {
                "conversation": [name for name, _ in rows],
                "strategy": Constant(spec, len(rows)),
                "kind": [row.kind for _, row in rows],
                "age": [row.age for _, row in rows],
                "values": [row.values for _, row in rows],
                "kept": [row.kept for _, row in rows],
            },
        )


def _rounds(books: ConversationIndex, log: ContextLog) -> list[Round]:
    """The rounds of summarising of a cell. A summary of summaries replaces no messages, and empties the level below."""
    in_force: dict[tuple[str, int], str] = {}
    rounds = []
    for _, event in log.events:
        if isinstance(event, Summarised):
            below = {(event.by, level) for level in range(1, event.level)}
            in_force = {place: text for place, text in in_force.items() if place not in below}
            in_force[event.by, event.level] = event.summary
            replaced = [fact for name in event.replaced for fact in books.facts_in(name)] if event.level == 1 else []
            rounds.append(Round(replaced, "\n".join(in_force.values())))
    return rounds
