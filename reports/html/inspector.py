"""Conversations in the page for its inspector, packed: as many as there is room for.

Each is JSON, deflated, in base64: the page unpacks what is looked at. Where they do not fit, the texts of all are cut
shorter; what still does not fit is left to `ctxbench show`.
"""

from __future__ import annotations

import operator
import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from ctxbench.harness.folder.run import KEYS, Run, values_of
from ctxbench.harness.folder.schema import LEFT_OUT
from ctxbench.scenarios.errors import printable
from ctxbench.scenarios.media import media_counts
from ctxbench.scenarios.model import Conversation, Message, Tool

from ..results import Results

ROOM = 970_000  # characters in the page for all conversations
CUTS = (2000, 700, 240)  # characters of a message's text, more than a line has: as many as leave room for all

# Steps that are looked at while too little fits, and those of which lists are in memory at a time.
_MOST_STEPS, _AT_ONCE = 150_000, 20_000
_FIELD, _ITEMS = 120, 4  # characters of an event's field, and items of a list in it, that are in the page
_QUOTING = ("why", "instead")  # fields of events that may quote what was said
_PIECE = re.compile(r"[^\n.!?;。！？；]*[\n.!?;。！？；]*")

Plain = dict[str, Any]
Key = tuple[str, str]  # a conversation and a strategy
_Actions = dict[tuple[str, tuple[tuple[str, str], ...]], int]  # number of each: strategies that are alike do the same
_Said = tuple[Plain, Sequence[str]]  # messages: what is the same wherever their texts are cut, and the whole texts


class Packed(NamedTuple):
    """One packed conversation."""

    name: str
    steps: int
    cut: int  # characters of each text that are in the page
    data: str


_Pack = Callable[[int], Packed]  # function that packs a conversation with texts cut at a length


class Inspected(NamedTuple):
    """Conversations of the inspector."""

    conversations: Sequence[Packed]
    of: int  # number of conversations in the run
    model: str  # model whose cache is meant by cached


def inspected(results: Results) -> Inspected:
    """Return the conversations in the order of the run, as many as fit."""
    made, packed, considered = list[_Pack](), list[Packed](), 0
    for pack in _conversations(results):
        one, left = pack(CUTS[-1]), ROOM - _size(packed)
        considered += one.steps * len(results.strategies)
        if len(one.data) <= left:
            made.append(pack)
            packed.append(one)
        elif left < ROOM / 2 or considered > _MOST_STEPS:  # one that has no room by itself keeps none out
            break
    conversations = len(results.run.table("conversations"))
    # Longer texts where all have room for them.
    for cut in CUTS[:-1] if len(packed) == conversations else ():
        longer = list[Packed]()
        while len(longer) < len(made) and _size(longer) <= ROOM:
            longer.append(made[len(longer)](cut))
        if _size(longer) <= ROOM:
            packed = longer
            break
    return Inspected(packed, conversations, results.models[0])


def _conversations(results: Results) -> Iterator[_Pack]:
    """Yield the function that packs each conversation, in the order of the run; nothing is read ahead but a piece."""
    table = results.run.table("conversations")
    tools = dict(zip(table.conversation, table.tools_tokens.tolist(), strict=True))
    # Lists of a piece's columns are in memory together, and take some ten times as much as what is kept of them.
    for piece in results.run.pieces(_AT_ONCE):
        rows = _Rows(piece, results)
        for recorded in piece.conversations():
            yield rows.conversation(recorded, tools[recorded.id])


def _size(packed: Sequence[Packed]) -> int:
    return sum(len(one.data) for one in packed)


def _packed(
    name: str, steps: int, plain: Plain, said: _Said, strategies: Sequence[tuple[Plain, _Said]], cut: int
) -> Packed:
    """Return a conversation with so many characters of each text: what needs no cutting, its messages, and the actions
    and the messages of each strategy.

    Texts are runs of pieces, each different piece once: a summary repeats messages and most of the summary before.
    """
    pieces: dict[str, int] = {}

    def runs(text: str) -> list[int]:
        """Return the number of the first piece of each run, and how many it has."""
        found: list[int] = []
        for piece in filter(None, _PIECE.findall(text[:cut].replace("\t", "    ").replace("\r\n", "\n"))):
            number = pieces.setdefault(piece, len(pieces))
            if found and number == found[-2] + found[-1]:
                found[-1] += 1
            else:
                found += (number, 1)
        return found

    def messages(said: _Said) -> Plain:
        columns, texts = said
        more = {at: len(text) - cut for at, text in enumerate(texts) if len(text) > cut}
        return {**columns, "text": list(map(runs, texts)), "more": more}

    whole = {**plain, "id": name, "cut": cut, "messages": messages(said)}
    whole["strategies"] = [
        did if "failed" in did else {**did, "written": messages(written)} for did, written in strategies
    ]
    data = msgspec.json.encode({**whole, "pieces": list(map(printable, pieces))})
    return Packed(name, steps, cut, b64encode(zlib.compress(data, 9)).decode())


def _encoded(values: Plain) -> Plain:
    """Return values as JSON, which takes far less memory than lists, and is made once for all cuts."""
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in values.items()}


_AS_STORED = ("at", "turn", "kept", "marks")
_STEP_COLUMNS = (*_AS_STORED, "added_from", "added_to", "tokens_full", "tokens_sent", "tokens_kept", "tools_added")


class _Rows:
    """Rows of some conversations of a run, by conversation and strategy."""

    def __init__(self, run: Run, results: Results) -> None:
        self._results, self._text = results, results.text
        self._actions: _Actions = {}
        failed = run.table("results")
        failed = failed[failed.status == "failed"]
        self._failed = dict(zip(zip(failed.conversation, failed.strategy, strict=True), failed.detail, strict=True))
        messages = run.table("messages").groupby("conversation", observed=True, sort=False).tokens
        self._tokens = {str(name): tokens.tolist() for name, tokens in messages}
        self._steps = _by_result(run, "steps", _STEP_COLUMNS)
        self._written = _by_result(run, "contexts", ("message", "tokens"))
        self._events = _by_result(run, "events", ("step", "event"))
        # The tokens that the cache has at each step of each result that is billed.
        billed = results.billed
        self._read = billed.cached(billed.schemes[0])
        self._billed = {(name, strategy): rows for name, strategy, rows in billed.requests.results}

    def conversation(self, recorded: Conversation, tools: int) -> _Pack:
        """Return a function that packs a conversation, and what every strategy did in it, with texts cut at a length.

        Where no text may be shown, nothing that was said is in it. `tools` are the tokens of its recorded tools.
        """
        places = {message.id: at for at, message in enumerate(recorded.messages)}
        strategies, most = [], 0
        self._actions.clear()
        for strategy in self._results.strategies:
            key = (recorded.id, strategy)
            rows = self._written.get(key, {"message": [], "tokens": []})
            written = [msgspec.json.decode(text, type=Message) for text in rows["message"]]
            did = self._strategy(recorded, key, places, written)
            most = max(most, len(did.get("at", ())))
            strategies.append((_encoded(did), self._said(written, rows["tokens"])))
        said = self._said(recorded.messages, self._tokens[recorded.id])
        plain = {"tools": tools, "probes": list(_probes(recorded, places, text=self._text))}
        plain["actions"] = [[kind, dict(fields)] for kind, fields in self._actions]
        return partial(_packed, printable(recorded.id), most, plain, said, strategies)

    def _said(self, messages: Sequence[Message], tokens: Sequence[int]) -> _Said:
        columns = {
            "id": [printable(message.id) for message in messages],
            "role": [message.role for message in messages],
            "tokens": list(tokens),
        }
        return _encoded(columns), [_text(message, text=self._text) for message in messages]

    def _strategy(
        self, conversation: Conversation, key: Key, places: Mapping[str, int], written: Sequence[Message]
    ) -> Plain:
        """Return what a strategy did, without the texts that it wrote. Its events are numbers of actions."""
        steps = self._steps.get(key)
        if steps is None:
            why = printable(self._failed.get(key, ""))
            return {"failed": (why if self._text else why and LEFT_OUT) or "no model was called: there are no steps"}
        rows = self._events.get(key, {"step": [], "event": []})
        events = list(zip(rows["step"], map(msgspec.json.decode, rows["event"]), strict=True))
        recorded = [places.get(message.id, -1) for message in written]
        originals = [conversation.messages[at] if at >= 0 else None for at in recorded]
        return {
            **{name: steps[name] for name in _AS_STORED},
            "added": [
                [end for pair in zip(*both, strict=True) for end in pair]
                for both in zip(steps["added_from"], steps["added_to"], strict=True)
            ],
            "full": steps["tokens_full"],
            "sent": steps["tokens_sent"],
            # Mostly the whole prompt before, of which the cache has all: the differences take far less room.
            "prefix": list(map(operator.sub, steps["tokens_kept"], (0, *steps["tokens_sent"]))),
            "offered": {
                step: [msgspec.json.decode(tool, type=Tool).name for tool in tools]
                for step, tools in enumerate(steps["tools_added"])
                if tools
            },
            "read": (self._read[self._billed[key]] - steps["tokens_kept"]).tolist() if key in self._billed else None,
            "of": recorded,
            # Messages that the strategy wrote as they were recorded.
            "same": [number for number, pair in enumerate(zip(originals, written, strict=True)) if pair[0] == pair[1]],
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
            "events": [[step, self._action(event)] for step, event in events],
        }

    def _action(self, event: Plain) -> int:
        action = event["event"], tuple(_fields(event, text=self._text))
        return self._actions.setdefault(action, len(self._actions))


def _by_result(run: Run, name: str, columns: Sequence[str]) -> dict[Key, dict[str, list[Any]]]:
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


def _text(message: Message, *, text: bool) -> str:
    """Return what a message says and calls; without `text` only the tools that it calls."""
    if not text:
        return "\n".join(f"→ {call.name}()" for call in message.calls)
    calls = "".join(f"\n→ {call.name}({call.arguments})" for call in message.calls)
    media = f"\n[{media_counts(medium.kind for medium in message.media)}]" if message.media else ""
    return f"{message.text}{calls}{media}".removeprefix("\n")


def _fields(event: Plain, *, text: bool) -> Iterator[tuple[str, str]]:
    """Yield each field in words; long ones are cut, with the number of items. Summaries are among the messages."""
    for name, value in event.items():
        if name in ("event", "summary") or (not text and name in _QUOTING):
            continue
        if isinstance(value, list):
            shown = ", ".join(f"{item:.3g}" if isinstance(item, float) else str(item) for item in value[:_ITEMS])
            more = f" … ({len(value)} of them)" if len(value) > _ITEMS else ""
        else:
            shown = " ".join(str(value)[: 2 * _FIELD].split())
            more = "…" if len(shown) > _FIELD else ""
        yield name, printable(shown[:_FIELD]) + more


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
