"""Conversations in the page for its inspector, packed: as many as there is room for.

Each is JSON, deflated, in base64: the page unpacks what is looked at. Where they do not fit, the texts of all are cut
shorter; what still does not fit is left to `ctxbench show`.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from ctxbench.harness.folder.contexts import values_of
from ctxbench.harness.folder.run import KEYS, Run
from ctxbench.harness.folder.schema import LEFT_OUT
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.media import media_counts
from ctxbench.scenarios.model import Conversation, Message, Tool
from ctxbench.scenarios.spec import nearest
from ctxbench.scenarios.text import printable

from ..results import Results

ROOM = 1_900_000
"""Characters in the page for all conversations."""
CUTS = (2000, 700, 200, 40)
"""Characters of a message's text: as many as leave room for every conversation."""

# Steps that are considered for the page, and those of which lists are in memory at a time.
_MOST_STEPS, _AT_ONCE = 150_000, 20_000
# Conversations from which on some of them tell how much room all take, and by how much that may be wrong.
_MANY, _DOUBT = 16, 0.1
# Characters of an event's field, and items of a list in it, that are in the page.
_FIELD, _ITEMS = 120, 6
# Fields of events that have, or may quote, what was said.
_QUOTING = ("summary", "why", "instead")
_PIECE = re.compile(r"[^\n.!?;。！？；]*[\n.!?;。！？；]*")

Plain = dict[str, Any]
Key = tuple[str, str]
"""A conversation and a strategy."""
Columns = dict[str, list[Any]]
"""Columns of a table by name."""


@dataclass(frozen=True)
class Packed:
    """One packed conversation."""

    name: str
    steps: int
    cut: int
    """Characters of each text that are in the page."""
    data: str


@dataclass(frozen=True)
class Inspected:
    """Conversations of the inspector."""

    conversations: Sequence[Packed]
    of: int
    """Number of conversations in the run."""
    model: str
    """Model whose cache is meant by cached."""

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the conversations."""
        return frozenset(packed.name for packed in self.conversations)


def check(run: Run, named: Sequence[str]) -> None:
    """Raise RunError for a conversation that is not in the run, before any work is done for it."""
    known = dict.fromkeys(run.table("conversations").conversation)
    for name in named:
        if name not in known:
            raise RunError(f"{run.folder}: no conversation {name!r} is in this run{nearest(name, known) or ''}")


def inspected(results: Results, named: Sequence[str] = ()) -> Inspected:
    """Return the named conversations first, then the others in the order of the run, as many as fit."""
    check(results.run, named)
    table = results.run.table("conversations")
    steps = dict(zip(table.conversation, table.calls, strict=True))
    chosen: dict[str, None] = {}
    budget = _MOST_STEPS
    for name in dict.fromkeys((*named, *steps)):
        budget -= steps[name] * len(results.strategies)
        if budget < 0 and chosen:
            break
        chosen[name] = None
    tools = dict(zip(table.conversation, table.tools_tokens, strict=True))
    packed = list(_packed(results, list(chosen), tools))
    return Inspected(packed, len(steps), results.models[0])


def _packed(results: Results, names: Sequence[str], tools: dict[str, int]) -> Iterator[Packed]:
    run, read = results.run, _reads(results)
    conversations: dict[str, Inspectable] = {}
    # Lists of a piece's columns are in memory together, and take some ten times as much as what is kept of them.
    for piece in (run if len(names) == len(tools) else run.confined_to(names)).pieces(_AT_ONCE):
        tables = Tables.of(piece)
        for recorded in piece.conversations():
            conversations[recorded.id] = inspectable(
                recorded, results.strategies, tables, read, int(tools[recorded.id]), text=results.text
            )
    left = ROOM
    for packed in _fitted([conversations[name] for name in names]):
        if len(packed.data) <= left:
            left -= len(packed.data)
            yield packed


def _fitted(conversations: Sequence[Inspectable]) -> Sequence[Packed]:
    """Return conversations with the longest texts that leave room for all, or else with the shortest."""
    # Packing all for each length takes most of a second: every fourth of many shows for which there is surely no room.
    is_many = len(conversations) >= _MANY
    sample = sorted(conversations, key=lambda each: each.size, reverse=True)[2::4] if is_many else []
    share = sum(each.size for each in sample) / max(1, sum(each.size for each in conversations))
    for cut in CUTS[:-1]:
        packed: dict[str, Packed] = {}
        if _fit(sample, cut, (1 + _DOUBT) * ROOM * share, packed) and _fit(conversations, cut, ROOM, packed):
            return [packed[each.id] for each in conversations]
    return [each.packed(CUTS[-1]) for each in conversations]


def _fit(conversations: Iterable[Inspectable], cut: int, room: float, packed: dict[str, Packed]) -> bool:
    """Pack those that are not packed yet, as long as there is room. Return whether there is for all."""
    for each in conversations:
        if each.id not in packed:
            packed[each.id] = each.packed(cut)
        room -= len(packed[each.id].data)
        if room < 0:
            return False
    return True


def _reads(results: Results) -> Callable[[Key], list[int] | None]:
    """Return a function from a result to the tokens that its cache has at each step; None if it is not billed."""
    billed = results.billed
    usage, cells = billed.usages[billed.schemes[0]], billed.requests
    names, strategies = cells.steps.conversation, cells.steps.strategy
    rows = {(names.iloc[start], strategies.iloc[start]): slice(start, stop) for start, stop in pairwise(cells.bounds)}
    return lambda key: usage.read[rows[key]].tolist() if key in rows else None


@dataclass(frozen=True)
class Tables:
    """Rows of some conversations, by conversation and strategy."""

    steps: Mapping[Key, Columns]
    written: Mapping[Key, Columns]
    events: Mapping[Key, Columns]
    tokens: Mapping[str, Sequence[int]]
    failed: Mapping[Key, str]

    @classmethod
    def of(cls, run: Run) -> Tables:
        """Return the rows of a run that is confined to these conversations."""
        results = run.table("results")
        failed = results[results.status == "failed"]
        messages = run.table("messages").groupby("conversation", observed=True, sort=False).tokens
        return cls(
            _by_result(run, "steps", _STEP_COLUMNS),
            _by_result(run, "contexts", ("message", "tokens")),
            _by_result(run, "events", ("step", "event")),
            {str(name): tokens.tolist() for name, tokens in messages},
            {
                (name, str(at)): why
                for name, at, why in zip(failed.conversation, failed.strategy, failed.detail, strict=True)
            },
        )


_STEP_COLUMNS = (
    *("at", "turn", "kept", "marks", "added_from", "added_to"),
    *("tokens_full", "tokens_sent", "tokens_kept", "tools_added"),
)


def _by_result(run: Run, name: str, columns: Sequence[str]) -> dict[Key, Columns]:
    """Return the named columns of each result in a table, as lists. Its rows stand together in the table."""
    table = run.arrow(name, (*KEYS, *columns))
    # Whole columns become lists at once: many small ones take several times as long.
    keys = list(zip(*(values_of(table.column(column)) for column in KEYS), strict=True))
    lists = {column: values_of(table.column(column)) for column in columns}
    starts = [row for row, key in enumerate(keys) if not row or key != keys[row - 1]]
    return {
        keys[start]: {name: values[start:stop] for name, values in lists.items()}
        for start, stop in pairwise([*starts, len(keys)])
    }


class Texts:
    """Texts as pieces, each different piece once: a summary repeats messages and most of the summary before it."""

    def __init__(self, cut: int) -> None:
        self.pieces: dict[str, int] = {}
        self._cut = cut

    def add(self, text: str) -> list[int]:
        """Return the text up to where it is cut as runs of pieces: the number of the first piece, and how many."""
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

    def messages(self, said: _Said) -> Plain:
        """Return messages as columns. `more` is the number of characters that were cut, where any were."""
        return {
            **said.columns,
            "text": [self.add(text) for text in said.texts],
            "more": {at: len(text) - self._cut for at, text in enumerate(said.texts) if len(text) > self._cut},
        }


class _Said(NamedTuple):
    """Messages: what is the same wherever their texts are cut, and the whole texts."""

    columns: Plain
    texts: Sequence[str]

    @classmethod
    def of(cls, messages: Sequence[Message], tokens: Sequence[int], *, text: bool) -> _Said:
        columns = {
            "id": [printable(message.id) for message in messages],
            "role": [message.role for message in messages],
            "tokens": list(tokens),
        }
        return cls(_encoded(columns), [_text(message) if text else _outline(message) for message in messages])


def _encoded(values: Plain) -> Plain:
    """Return values as JSON, which takes far less memory than lists, and is made once for all cuts."""
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in values.items()}


@dataclass(frozen=True)
class Inspectable:
    """A conversation for the inspector, whose texts can be cut at any length."""

    id: str
    size: int
    """Number of its messages."""
    steps: int
    """Most steps under any strategy."""
    tools: int
    said: _Said
    probes: Sequence[Plain]
    strategies: Sequence[Plain]
    """Actions of each strategy, without the texts that it wrote."""
    written: Sequence[_Said]
    """Messages that each strategy wrote."""

    def packed(self, cut: int) -> Packed:
        """Return it with so many characters of each text."""
        data = b64encode(zlib.compress(msgspec.json.encode(self._plain(cut)), 6)).decode()
        return Packed(printable(self.id), self.steps, cut, data)

    def _plain(self, cut: int) -> Plain:
        texts = Texts(cut)
        plain = {
            "id": printable(self.id),
            "tools": self.tools,
            "cut": cut,
            "messages": texts.messages(self.said),
            "probes": self.probes,
            "strategies": [
                strategy if "failed" in strategy else {**strategy, "written": texts.messages(written)}
                for strategy, written in zip(self.strategies, self.written, strict=True)
            ],
        }
        return {**plain, "pieces": list(map(printable, texts.pieces))}


def inspectable(
    conversation: Conversation,
    strategies: Sequence[str],
    tables: Tables,
    read: Callable[[Key], Sequence[int] | None],
    tools: int,
    *,
    text: bool = True,
) -> Inspectable:
    """Return a conversation with what every strategy did in it; without `text`, nothing that was said.

    `read` gives the tokens read from a cache at each step of a result.
    """
    messages = conversation.messages
    places = {message.id: at for at, message in enumerate(messages)}
    keys = [(conversation.id, strategy) for strategy in strategies]
    written = [_written(tables.written.get(key)) for key in keys]
    actions = [
        _strategy(conversation, key, tables, places, read, own, text=text)
        for key, (own, _) in zip(keys, written, strict=True)
    ]
    return Inspectable(
        conversation.id,
        len(messages),
        max(len(strategy.get("at", ())) for strategy in actions),
        tools,
        _Said.of(messages, tables.tokens[conversation.id], text=text),
        list(_probes(conversation, places, text=text)),
        list(map(_encoded, actions)),
        [_Said.of(*own, text=text) for own in written],
    )


def _written(rows: Columns | None) -> tuple[list[Message], list[int]]:
    """Return the messages that a strategy wrote, and their tokens."""
    if rows is None:
        return [], []
    return [msgspec.json.decode(text, type=Message) for text in rows["message"]], rows["tokens"]


def _strategy(
    conversation: Conversation,
    key: Key,
    tables: Tables,
    places: Mapping[str, int],
    read: Callable[[Key], Sequence[int] | None],
    written: Sequence[Message],
    *,
    text: bool,
) -> Plain:
    """Return what a strategy did, without the texts that it wrote."""
    steps = tables.steps.get(key)
    if steps is None:
        why = printable(tables.failed.get(key, ""))
        return {"failed": (why if text else why and LEFT_OUT) or "no model was called: there are no steps"}
    events = list(_events(tables.events.get(key)))
    return {
        **{name: steps[name] for name in ("at", "turn", "kept", "marks")},
        "added": [
            [end for pair in zip(*both, strict=True) for end in pair]
            for both in zip(steps["added_from"], steps["added_to"], strict=True)
        ],
        "full": steps["tokens_full"],
        "sent": steps["tokens_sent"],
        "prefix": steps["tokens_kept"],
        "offered": {
            step: [msgspec.json.decode(tool, type=Tool).name for tool in tools]
            for step, tools in enumerate(steps["tools_added"])
            if tools
        },
        "read": read(key),
        "of": [places.get(message.id, -1) for message in written],
        "same": [at for at, message in enumerate(written) if _is_said(message, conversation, places)],
        "summarised": [
            [step, [places[name] for name in event["replaced"] if name in places]]
            for step, event in events
            if event["event"] == "summarised"
        ],
        "archived": [
            [step, places[event["message"]]]
            for step, event in events
            if event["event"] == "archived" and event["message"] in places
        ],
        "events": [[step, event["event"], _fields(event, text=text)] for step, event in events],
    }


def _is_said(message: Message, conversation: Conversation, places: Mapping[str, int]) -> bool:
    """Return whether the strategy wrote a message that equals the recorded one."""
    at = places.get(message.id)
    return at is not None and conversation.messages[at] == message


def _text(message: Message) -> str:
    calls = "".join(f"\n→ {call.name}({call.arguments})" for call in message.calls)
    media = f"\n[{media_counts(medium.kind for medium in message.media)}]" if message.media else ""
    return f"{message.text}{calls}{media}".removeprefix("\n")


def _outline(message: Message) -> str:
    """Return the tools that a message calls."""
    return "\n".join(f"→ {call.name}()" for call in message.calls)


def _events(rows: Columns | None) -> Iterator[tuple[int, Plain]]:
    """Yield the events of a result, each with its step."""
    if rows is not None:
        for step, text in zip(rows["step"], rows["event"], strict=True):
            yield step, msgspec.json.decode(text)


def _fields(event: Plain, *, text: bool) -> dict[str, str]:
    """Return each field in words; a long one or list is cut, with the number of its items."""
    fields = {}
    for name, value in event.items():
        if name == "event" or (not text and name in _QUOTING):
            continue
        if isinstance(value, list):
            shown = ", ".join(f"{item:.3g}" if isinstance(item, float) else str(item) for item in value[:_ITEMS])
            fields[name] = printable(shown[:_FIELD]) + (f" … ({len(value)} of them)" if len(value) > _ITEMS else "")
        else:
            words = " ".join(str(value)[: 2 * _FIELD].split())
            fields[name] = printable(words[:_FIELD]) + ("…" if len(words) > _FIELD else "")
    return fields


def _probes(conversation: Conversation, places: Mapping[str, int], *, text: bool) -> Iterator[Plain]:
    """Yield each question, its evidence, and the number of messages before the question."""
    for probe in conversation.probes:
        yield {
            "id": printable(probe.id),
            "question": printable(probe.question[: 2 * _FIELD]) if text else "",
            "answers": [printable(answer[: 2 * _FIELD]) for answer in probe.answers[:_ITEMS] if text],
            "evidence": [places[name] for name in probe.evidence if name in places],
            "at": places.get(probe.after, len(conversation.messages) - 1) + 1,
        }
