"""A conversation under every strategy as plain values: all that the inspector needs to show any of its steps.

The page rebuilds contexts from the context log, as `harness.log.rebuild` does, and says what became of each message as
`harness.fates` does. So a step costs what changed in it, and no context is in the page twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from ...harness.loading import Run
from ...scenarios.model import Conversation, Message
from ..words import printable

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
        cells = run.table("cells")
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
