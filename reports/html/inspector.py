"""The conversations that are in the page for its inspector, packed: as many as there is room for.

Each is JSON, deflated, in base64: the page unpacks what is looked at. A conversation that does not fit has its texts
cut shorter; one that still does not fit is left to `ctxbench show`.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec
import pyarrow as pa

from ...harness.folder.run import Run
from ...scenarios.errors import RunError
from ...scenarios.model import Conversation, Message
from ...scenarios.spec import nearest
from ..render import printable
from ..results import Results

ROOM = 3_000_000
"""Characters in the page for all of them."""
MOST_STEPS = 150_000
"""Steps that are looked at for it."""
CUTS = (2000, 200, 40)
"""Characters of a message's text: more, if there is room."""


@dataclass(frozen=True)
class Packed:
    """One conversation."""

    name: str
    steps: int
    cut: int
    """Characters of a text that are here."""
    data: str


@dataclass(frozen=True)
class Inspected:
    """What the inspector has."""

    conversations: Sequence[Packed]
    of: int
    """Conversations that the run has."""
    model: str
    """Whose cache is meant by cached."""

    @cached_property
    def names(self) -> frozenset[str]:
        """The conversations that it has."""
        return frozenset(each.name for each in self.conversations)


def check(run: Run, named: Sequence[str]) -> None:
    """Raise a RunError for a conversation that is not in the run: before work is done for it."""
    known = dict.fromkeys(run.table("conversations").conversation)
    for name in named:
        if name not in known:
            raise RunError(f"{run.folder}: no conversation {name!r} is in this run{nearest(name, known) or ''}")


def inspected(results: Results, named: Sequence[str] = ()) -> Inspected:
    """The named conversations first, then the others in the order of the run, as many as fit."""
    check(results.run, named)
    table = results.run.table("conversations")
    steps = dict(zip(table.conversation, table.calls, strict=True))
    chosen: dict[str, None] = {}
    budget = MOST_STEPS
    for name in dict.fromkeys((*named, *steps)):
        budget -= steps[name] * len(results.strategies)
        if budget < 0 and chosen:
            break
        chosen[name] = None
    tools = dict(zip(table.conversation, table.tools_tokens, strict=True))
    packed = list(_packed(results, list(chosen), tools))
    return Inspected(packed, len(steps), results.models[0])


def _packed(results: Results, names: Sequence[str], tools: dict[str, int]) -> Iterator[Packed]:
    confined = Run(results.run.folder, frozenset(names))
    tables, read = Tables.of(confined), _reads(results)
    found = {each.id: each for each in confined.conversations()}
    left = ROOM
    for name in names:
        for cut in CUTS:
            made = plain(found[name], results.strategies, tables, read, int(tools[name]), cut)
            data = b64encode(zlib.compress(msgspec.json.encode(made), 6)).decode()
            if len(data) <= left:
                left -= len(data)
                yield Packed(printable(name), max(len(each.get("at", ())) for each in made["strategies"]), cut, data)
                break


def _reads(results: Results) -> Callable[[Key], list[int] | None]:
    """Of the steps of a cell, the tokens that the first model's cache would have; None where that was not reckoned."""
    billed = results.billed
    usage, cells = billed.usages[billed.schemes[0]], billed.cells
    names, strategies = cells.steps.conversation, cells.steps.strategy
    rows = {(names.iloc[start], strategies.iloc[start]): slice(start, stop) for start, stop in pairwise(cells.bounds)}
    return lambda key: usage.read[rows[key]].tolist() if key in rows else None


FIELD, ITEMS = 160, 12
"""Characters of a field of an event, and items of a list in it, that are in the page."""

_PIECE = re.compile(r"[^\n.!?;。！？；]*[\n.!?;。！？；]*")

Plain = dict[str, Any]
Key = tuple[str, str]
"""A conversation and a strategy."""


@dataclass(frozen=True)
class Tables:
    """The rows of some conversations, by conversation and strategy."""

    steps: Mapping[Key, pa.Table]
    written: Mapping[Key, pa.Table]
    events: Mapping[Key, pa.Table]
    tokens: Mapping[str, Sequence[int]]
    failed: Mapping[Key, str]

    @classmethod
    def of(cls, run: Run) -> Tables:
        """Of a run that is confined to them."""
        cells = run.table("results")
        failed = cells[cells.status == "failed"]
        messages = run.table("messages").groupby("conversation", observed=True, sort=False).tokens
        return cls(
            _by_cell(run.arrow("steps")),
            _by_cell(run.arrow("contexts")),
            _by_cell(run.arrow("events")),
            {str(name): tokens.tolist() for name, tokens in messages},
            {
                (name, str(at)): why
                for name, at, why in zip(failed.conversation, failed.strategy, failed.detail, strict=True)
            },
        )


def _by_cell(table: pa.Table) -> dict[Key, pa.Table]:
    """The rows of each cell. They stand together."""
    names, strategies = (table.column(each).to_pylist() for each in ("conversation", "strategy"))
    found: dict[Key, pa.Table] = {}
    start = 0
    for row in range(1, len(table) + 1):
        if row == len(table) or (names[row], strategies[row]) != (names[start], strategies[start]):
            found[names[start], strategies[start]] = table.slice(start, row - start)
            start = row
    return found


class Texts:
    """Texts as pieces, each different piece once: a summary repeats what was said, and most of the one before it."""

    def __init__(self, cut: int) -> None:
        self.pieces: dict[str, int] = {}
        self._cut = cut

    def add(self, text: str) -> list[int]:
        """The text up to where it is cut, as runs of pieces: the number of the first, and how many."""
        runs: list[int] = []
        for piece in _PIECE.findall(text[: self._cut].replace("\t", "    ").replace("\r\n", "\n")):
            if not piece:
                continue
            number = self.pieces.setdefault(piece, len(self.pieces))
            if runs and number == runs[-2] + runs[-1]:
                runs[-1] += 1
            else:
                runs += (number, 1)
        return runs

    def messages(self, messages: Sequence[Message], tokens: Sequence[int]) -> Plain:
        """As columns. `more`: how many characters were cut, where any were."""
        texts = [_text(message) for message in messages]
        return {
            "id": [printable(message.id) for message in messages],
            "role": [message.role for message in messages],
            "tokens": list(tokens),
            "text": [self.add(text) for text in texts],
            "more": {at: len(text) - self._cut for at, text in enumerate(texts) if len(text) > self._cut},
        }


def plain(
    conversation: Conversation,
    strategies: Sequence[str],
    tables: Tables,
    read: Callable[[Key], Sequence[int] | None],
    tools: int,
    cut: int,
) -> Plain:
    """The conversation. `read`: of each step of a cell, the tokens read from a cache; `cut`: characters of a text."""
    said, texts = conversation.messages, Texts(cut)
    places = {message.id: at for at, message in enumerate(said)}
    made = {
        "id": printable(conversation.id),
        "tools": tools,
        "cut": cut,
        "messages": texts.messages(said, tables.tokens[conversation.id]),
        "probes": list(_probes(conversation, places)),
        "strategies": [
            _strategy(conversation, (conversation.id, strategy), tables, places, read, texts) for strategy in strategies
        ],
    }
    return {**made, "pieces": list(map(printable, texts.pieces))}


def _strategy(
    conversation: Conversation,
    key: Key,
    tables: Tables,
    places: Mapping[str, int],
    read: Callable[[Key], Sequence[int] | None],
    texts: Texts,
) -> Plain:
    steps = tables.steps.get(key)
    if steps is None:
        return {"failed": printable(tables.failed.get(key, "")) or "no model was called: there are no steps"}
    column: Callable[[str], list[Any]] = lambda name: steps.column(name).to_pylist()  # noqa: E731
    rows = tables.written.get(key)
    written = [msgspec.json.decode(text, type=Message) for text in rows.column("message").to_pylist()] if rows else []
    told = list(_told(tables.events.get(key)))
    return {
        **{name: column(name) for name in ("at", "turn", "kept", "marks")},
        "added": [
            [end for pair in zip(*both, strict=True) for end in pair]
            for both in zip(column("added_from"), column("added_to"), strict=True)
        ],
        "full": column("tokens_full"),
        "sent": column("tokens_sent"),
        "prefix": column("tokens_kept"),
        "offered": {step: names for step, names in enumerate(column("tools_added")) if names},
        "read": read(key),
        "written": texts.messages(written, rows.column("tokens").to_pylist() if rows else []),
        "of": [places.get(message.id, -1) for message in written],
        "same": [at for at, message in enumerate(written) if _is_said(message, conversation, places)],
        "summarised": [
            [step, [places[name] for name in event["replaced"] if name in places]]
            for step, event in told
            if event["event"] == "summarised"
        ],
        "archived": [
            [step, places[event["message"]]]
            for step, event in told
            if event["event"] == "archived" and event["message"] in places
        ],
        "events": [[step, event["event"], _fields(event)] for step, event in told],
    }


def _is_said(message: Message, conversation: Conversation, places: Mapping[str, int]) -> bool:
    """Whether the strategy wrote a message that is the recorded one."""
    at = places.get(message.id)
    return at is not None and conversation.messages[at] == message


def _text(message: Message) -> str:
    calls = "".join(f"\n→ {call.name}({call.arguments})" for call in message.calls)
    images = f"\n[{message.images} images]" * bool(message.images)
    return f"{message.text}{calls}{images}".removeprefix("\n")


def _told(rows: pa.Table | None) -> Iterator[tuple[int, Plain]]:
    """The events of a cell, each with its step."""
    if rows is not None:
        for step, text in zip(rows.column("step").to_pylist(), rows.column("event").to_pylist(), strict=True):
            yield step, msgspec.json.decode(text)


def _fields(event: Plain) -> dict[str, str]:
    """Each field in words, a long one or list with its start and what is left out."""
    found = {}
    for name, value in event.items():
        if name == "event":
            continue
        if isinstance(value, list):
            shown = ", ".join(f"{each:.3g}" if isinstance(each, float) else str(each) for each in value[:ITEMS])
            found[name] = printable(shown[:FIELD]) + (f" … ({len(value)} of them)" if len(value) > ITEMS else "")
        else:
            text = " ".join(str(value)[: 2 * FIELD].split())
            found[name] = printable(text[:FIELD]) + ("…" if len(text) > FIELD else "")
    return found


def _probes(conversation: Conversation, places: Mapping[str, int]) -> Iterator[Plain]:
    """Each question, the messages that its answer rests on, and how much had been said when it is asked."""
    for probe in conversation.probes:
        yield {
            "id": printable(probe.id),
            "question": printable(probe.question[: 2 * FIELD]),
            "answers": [printable(answer[: 2 * FIELD]) for answer in probe.answers[:ITEMS]],
            "evidence": [places[name] for name in probe.evidence if name in places],
            "at": places.get(probe.after, len(conversation.messages) - 1) + 1,
        }
