"""Tell what an agent did after its context was cut: which tool calls it made again, which rules and reasoning it lost.

A tool call is made **again** if an earlier one has the same tool and the same arguments, or if both name one path and
its result has the whole earlier result in it. It is `changed` if its result could have changed: it has, or a call in
between may have written what the call names; `dropped` if the earlier result was not in the context any more; else
`there`.

Nothing depends on the names of an agent's tools. A call names the paths, addresses and identifiers in its arguments,
and one that names none, such as `make`, depends on all that is written. A call may write if its tool or its arguments
have a verb of changing (`apply_patch`, `sed -i`) or several lines of text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from ctxbench.scenarios.model import Conversation, Message, ToolCall
from ctxbench.scenarios.view import Messages

from .constraints import rules_of
from .thinking import has_thinking
from .values import Value, exact_values

_PART = 40  # characters of the shortest result that a later one covers; a shorter one may stand in it by chance
_KEY = re.compile(r'"\w+"\s*:')
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_WRITES = re.compile(
    r"\b(?:(?:edit|writ|replac|insert|patch|creat|updat|delet|remov|renam|modif|append|commit|install|checkout)[a-z]*"
    r"|set|put|add|move|apply|save|reset|mv|rm|cp|tee|sed -i)\b|>>? ?(?!/dev/null)[\w./~]|\\n"
)
_RULES = re.compile(
    r"^(?:#|<|--|Contents of|Context from|Instructions)[^\n]*?"
    r"\b((?:CLAUDE|AGENTS?|GEMINI|CONVENTIONS|copilot-instructions)\.md)\b(.*?)(?:</|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A file of rules in a user's message: from the line that heads it to the end of its element."""


class Repeated(NamedTuple):
    """A tool call with the tool and the arguments of an earlier one."""

    at: int  # place of the message that makes it
    call: str  # its id
    source: int  # place of the earlier result
    result: int  # place of its own result
    is_changed: bool  # whether the result could have changed since


class Again(NamedTuple):
    """A tool call that was made again after the context was cut: as `Repeated`, and why."""

    at: int
    call: str
    source: int
    result: int
    why: Literal["changed", "dropped", "there"]


class Aftermath(NamedTuple):
    """Consequences for a conversation from the first call on whose context lacks something."""

    again: tuple[Again, ...]
    lost: dict[str, str]
    """Rules of system messages and of files such as CLAUDE.md that were said before the last cut, and that no later
    call has word for word, with the source."""
    stale: int
    """Answers with reasoning that were sent again behind a summary. Providers that bind reasoning to what precedes it
    reject or ignore it; what they clear themselves changes no such bond."""

    spared: tuple[int, ...]
    """Places of the answers that made no other calls than `dropped` ones: without the cut they would not be there."""

    @property
    def dropped(self) -> list[Again]:
        """The calls that would not have been made without the cut."""
        return [made for made in self.again if made.why == "dropped"]


def aftermath(conversation: Conversation, contexts: Iterable[Messages]) -> Aftermath:
    """Follow a conversation after its context was cut; `contexts` are those of its calls, in order."""
    messages = conversation.messages
    made = dict[int, list[Repeated]]()
    for each in repeated(conversation):
        made.setdefault(each.at, []).append(each)
    ends = {compaction.after for compaction in conversation.compactions}
    again, stale, sent, cut, rewritten, told = list[Again](), set[int](), dict[int, Message](), 0, 0, 0
    for at, context in zip(conversation.calls(), contexts, strict=True):
        if ends.intersection(message.id for message in messages[told:at]):
            sent, cut, rewritten = {}, at, at
        told = at
        spans = [(start, stop) for store, start, stop in context.spans if store is messages]
        if not cut and sum(stop - start for start, stop in spans) < at:
            cut = at
        if cut:
            sent.update((id(message), message) for message in context)
            stale |= {place for start, stop in spans for place in range(start, min(stop, rewritten))}
        for each in made.get(at, ()) if cut else ():
            is_there = any(start <= each.source < stop for start, stop in spans)
            why: Literal["changed", "dropped", "there"]
            why = "changed" if each.is_changed else "there" if is_there else "dropped"
            again.append(Again(*each[:4], why))
    rules = {rule: source for message in messages[:cut] for source, rule in _standing(message)}
    said = [" ".join(message.text.split()) for message in sent.values()]
    lost = {rule: source for rule, source in rules.items() if not any(rule in text for text in said)}
    dropped = Counter(made.at for made in again if made.why == "dropped")
    spared = tuple(at for at, number in dropped.items() if number == len(messages[at].calls))
    return Aftermath(tuple(again), lost, sum(has_thinking(messages[place]) for place in stale), spared)


def repeated(conversation: Conversation) -> Iterator[Repeated]:
    """Yield the tool calls that were made again, in order. Calls without a result are left out."""
    messages = conversation.messages
    results: dict[str, list[int]] = {}
    for at, message in enumerate(messages):
        if message.answers is not None:
            results.setdefault(message.answers, []).append(at)
    known: dict[tuple[str, bytes | str], int] = {}
    writes: list[tuple[int, str]] = []
    for at in conversation.calls():
        new: dict[tuple[str, bytes | str], int] = {}
        for call in messages[at].calls:
            key = call.name, _sorted(call.arguments)
            result = next((place for place in results.get(call.id, ()) if place > at), None)
            if result is None:
                continue
            same, text = known.get(key), messages[result].text
            paths = [(call.name, value.text) for value in _named(call) if value.kind == "path"]
            parts = [known[path] for path in paths if path in known]
            covered = [part for part in parts if len(messages[part].text) >= _PART and messages[part].text in text]
            source = same if same is not None else max(covered, default=None)
            new |= dict.fromkeys((key, *paths), result)
            if source is not None:
                is_changed = source == same and messages[source].text != text
                is_changed = is_changed or _may_touch(call, [text for place, text in writes if place > source])
                yield Repeated(at, call.id, source, result, is_changed)
        known |= new  # of calls side by side none is made again because of another
        texts = (f"{call.name} {call.arguments}" for call in messages[at].calls)
        writes += [(at, text) for text in texts if _WRITES.search(_WORD_START.sub(" ", text).lower())]


def without_calls(conversation: Conversation, again: Iterable[Again]) -> Conversation:
    """Return a conversation without some tool calls, the answers that made only these, and the time they took."""
    calls, results = {(made.at, made.call) for made in again}, {made.result for made in again}
    messages, last, clock, saved = list[Message](), dict[str, str](), None, 0.0
    for at, message in enumerate(conversation.messages):
        left = tuple(call for call in message.calls if (at, call.id) not in calls)
        took = 0.0 if clock is None or message.time is None else message.time - clock
        clock = clock if message.time is None else message.time
        if at in results or (message.calls and not left):
            saved += took
        else:
            if saved and message.time is not None:
                call = message.call
                if call is not None:
                    started, first = (None if of is None else of - saved for of in (call.started, call.first_token))
                    call = replace(call, started=started, first_token=first)
                message = replace(message, time=message.time - saved, call=call)
            messages.append(message if len(left) == len(message.calls) else replace(message, calls=left))
        last[message.id] = messages[-1].id
    # What the provider counted from a compaction on was not the whole history: the compactions stay, at their places.
    compactions = (replace(each, after=last[each.after], first_kept=None) for each in conversation.compactions)
    return replace(conversation, messages=tuple(messages), compactions=tuple(compactions), probes=(), facts=())


def _sorted(arguments: str) -> bytes:
    """Return arguments with sorted keys and without white space between them, where they are JSON."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted")
    except (msgspec.DecodeError, ValueError, RecursionError):
        return arguments.encode(errors="replace")


def _named(call: ToolCall) -> tuple[Value, ...]:
    return exact_values(_KEY.sub(" ", call.arguments))


def _may_touch(call: ToolCall, writes: list[str]) -> bool:
    """Return whether one of some calls that may write names what this call names."""
    named = {value.text for value in _named(call) if value.kind in ("path", "identifier", "url")}
    # A file may be named from another folder.
    named |= {text.rsplit("/", 1)[1] for text in named if "." in text.rsplit("/", 1)[-1] and "/" in text}
    return bool(writes) and (not named or any(name in text for name in named for text in writes))


def _standing(message: Message) -> Iterator[tuple[str, str]]:
    """Yield the rules of a system message, or of files of rules in a user's, each behind its source."""
    parts = _RULES.findall(message.text) if message.role == "user" else []
    for source, text in [("system", message.text)] if message.role == "system" else parts:
        yield from ((source, rule) for rule in rules_of(Message("", "system", text)))
