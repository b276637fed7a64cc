"""Logged requests as conversations, and the usage that providers report as our `Usage`.

A request repeats the messages before it:

    request 1:  S U            answered by A1
    request 2:  S U A1 T       answered by A2        one conversation:  S U A1 T A2
    request 3:  S U            answered by B1        a second one:      S U B1

A request that leaves messages out behind the first ones, with at most two new ones in their place, and goes on with
the answer is of the same conversation: its context was compacted.

    request 4:  S X T A2 U2    answered by A3        S U A1 T A2 U2 A3, compacted before A3 to X and what follows T

Usage is recognised under all names that are in use (`data/usage.toml`). `Usage.input` is the whole prompt always, and
`Usage.output` all that was generated: reasoning that the provider counts beside the output is added (Gemini, always;
others, where their total says so, or where it exceeds the output). A value that is no count, or counts that contradict
each other, are one problem with its place; the message stays, its usage is left out. Nothing is corrected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import Place, RecordingError
from ..files import shipped
from ..model import Call, Compaction, ContextEdit, Conversation, Iteration, Mark, Message, Tool, Usage, usage_faults
from ..source import Problems
from . import Recordings, as_object

UNIQUE = 16  # characters of a provider's id that no two calls share by chance
OPEN = 8  # most conversations that a log may interleave. One more closes the one that has been idle longest

# Most messages that a compaction writes, and characters of an answer that no other conversation gives as well.
_MOST_WRITTEN, _SURE = 2, 40

# The names of each count, over all providers and recorders.
_NAMES: dict[str, list[str]] = {
    **shipped("usage"),
    **{f"cleared_{what}": [f"cleared_{what}"] for what in ("input_tokens", "tool_uses", "thinking_turns")},
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names}
_USUAL = ("standard", "global", "not_available")  # speeds and regions of inference at the usual price
# Beside these keys of OpenAI's Responses API and of Codex, `input_tokens` is the whole prompt.
_RESPONSES_API = ("input_tokens_details", "cached_input_tokens")
# Nested blocks with more counts.
_NESTED = (
    *("input_tokens_details", "prompt_tokens_details", "output_tokens_details", "completion_tokens_details"),
    *("cache_creation", "cache_creation_token_details", "cttl", "cached_tokens_details", "server_tool_use"),
)
_REMEDY = "correct it; the call counts as one that reported nothing"
_MOST_SHOWN, _LONGEST_SHOWN = 10**30, 60
# The highest plausible cost of one call in US dollars. A recorded 1e300 is damage, and would spoil every sum.
_MOST_DOLLARS = 1e12
_NOWHERE = Place("")


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One logged model call. Its messages have the ids `m0`, `m1` …, its answer, if there is one, the next id."""

    place: Place = _NOWHERE
    messages: tuple[Message, ...] = ()
    answer: Message | None = None
    tools: tuple[Tool, ...] = ()
    compactions: tuple[Compaction, ...] = ()  # compactions that the prompt names, by the API itself
    results: tuple[Message, ...] = ()  # results of tools that the provider ran within the answer
    stop: str = ""  # stop reason that stands in the answer
    marks: tuple[Mark, ...] = ()  # cache breakpoints of the prompt, at most one after each message


@dataclass(frozen=True, slots=True)
class _Edit:
    """How a request's messages differ from those of the request before it, of which some were left out."""

    common: int  # messages at the start that both have
    kept: int  # messages at the end of the earlier request that the later one repeats
    answer: int  # place of the earlier request's answer in the later one


@dataclass(slots=True)
class Series:
    """Requests of one conversation: each extends the one before it, or a compacted form of it."""

    number: int  # number of the conversation in the log, from 1, in the order of the first requests
    latest: LoggedCall
    answers: dict[int, tuple[Message, tuple[Tool, ...]]] = field(default_factory=dict)
    """Logged answers by their position in the conversation, with the tools that were offered."""
    places: list[Place] = field(default_factory=list)  # places of the requests, in their order
    _history: list[Message] = field(default_factory=list)
    _compactions: list[Compaction] = field(default_factory=list)
    # For each message of the latest request its id in the history; None for what a compaction wrote.
    _ids: list[str | None] = field(default_factory=list)

    def continues(self, request: LoggedCall) -> bool:
        """Return whether the request repeats the messages of the latest one and goes on with its answer."""
        before, now = self.latest.messages, request.messages
        if len(now) <= len(before) or now[len(before)].role != "assistant":
            return False
        return all(_same(old, new) for old, new in zip(before, now, strict=False))

    def edit(self, request: LoggedCall) -> _Edit | None:
        """Return what was left out if the request is a compacted form of the latest one, and its answer follows."""
        before, now, answer = self.latest.messages, request.messages, self.latest.answer
        pairs = zip(before, now, strict=False)
        common = next((at for at, (old, new) in enumerate(pairs) if not _same(old, new)), len(before))
        if answer is None or not common or common == len(before):
            return None
        # Of S X T A2 U2 after S U A1 T: common 1 (S), the answer A2 at 3, kept 1 (T), so 3 - 1 - 1 = 1 message was
        # written (X) and 4 - 1 - 1 = 2 were left out (U A1).
        for at in range(common, len(now)):
            if now[at].role != "assistant" or (now[at].text, now[at].calls) != (answer.text, answer.calls):
                continue
            kept = 0
            while kept < min(at, len(before)) - common and _said(before[-1 - kept]) == _said(now[at - 1 - kept]):
                kept += 1
            written, left_out = at - kept - common, len(before) - common - kept
            # A short answer such as "Done." may be of any conversation: then a message kept before it has to tell.
            if written <= _MOST_WRITTEN and left_out > written and (kept or answer.calls or len(answer.text) > _SURE):
                return _Edit(common, kept, at)
        return None

    def add(self, request: LoggedCall, edit: _Edit | None = None) -> None:
        """Add the first request, or one that `continues` the latest, or the `edit` of it that it is."""
        if edit is not None:
            self._compact(request, edit)
        elif self._compactions:
            self._extend(request.messages[len(self.latest.messages) :])
        else:
            before, self._history = self._history, list(request.messages)
            for at, message in enumerate(before):
                if message.call is not None:  # it was asked of the model of its own request
                    self._history[at] = message
            self._ids = [message.id for message in request.messages]
        self.latest = request
        self.places.append(request.place)
        if request.answer is not None:
            self.answers[len(self._history)] = self._renamed(request.answer), request.tools

    def _compact(self, request: LoggedCall, edit: _Edit) -> None:
        start = edit.answer - edit.kept
        written = request.messages[edit.common : start]
        # As above, m0 m1 m2 m3 become m0 None m3, and A2 and U2 the messages m4 and m5 of the history: the compaction
        # comes after m3, and m3 was the first that was kept.
        following = self._ids[len(self._ids) - edit.kept :]
        self._ids[edit.common :] = [*[None] * len(written), *following]
        self._extend(request.messages[edit.answer :])
        summary = "\n".join(message.text for message in written)
        self._compactions.append(Compaction(self._history[-1].id, summary, self._ids[start]))

    def _extend(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._history.append(replace(message, id=f"m{len(self._history)}"))
            self._ids.append(self._history[-1].id)

    def _renamed(self, answer: Message) -> Message:
        """Return an answer with its id in the history, and its marks at the messages' ids there."""
        if not self._compactions:
            return answer
        answer = replace(answer, id=f"m{len(self._history)}")
        if answer.call is None:
            return answer
        ids: dict[str | None, str | None] = {None: None}
        ids |= {message.id: name for message, name in zip(self.latest.messages, self._ids, strict=True) if name}
        marks = tuple(Mark(ids[mark.after], mark.ttl) for mark in answer.call.marks if mark.after in ids)
        return replace(answer, call=replace(answer.call, marks=marks))

    def conversation(self, name: str, source: str = "") -> tuple[Place, Conversation]:
        """Return the conversation and its place: the messages of all requests, and the last answer.

        Earlier answers get their `call`, time and thinking from their own logged responses.
        """
        messages = list(self._history)
        for at, (answer, tools) in self.answers.items():
            if answer.call is not None and tools != self.latest.tools:
                answer = replace(answer, call=replace(answer.call, tools=tools))
            if at == len(messages):
                results = enumerate(self.latest.results, at + 1)
                messages += (answer, *(replace(result, id=f"m{number}") for number, result in results))
            else:
                thinking = messages[at].thinking or answer.thinking
                messages[at] = replace(messages[at], call=answer.call, time=answer.time, thinking=thinking)
        name = numbered(name, self.number)
        tools, compactions = self.latest.tools, tuple(self._compactions) or self.latest.compactions
        whole = Conversation(name, tuple(messages), tools=tools, compactions=compactions, source=source)
        return self.latest.place, whole


def conversations(requests: Iterable[LoggedCall], name: str, source: str = "") -> Recordings:
    """Yield the conversations of a log, each with its place; all have the name and the source of the log."""
    for each in series(requests):
        yield each.conversation(name, source)


def series(requests: Iterable[LoggedCall], most: int = OPEN) -> Iterator[Series]:
    """Group the requests of a log by conversation; yield each conversation as soon as it is known to be over.

    `most` is the number of conversations that may be interleaved.
    """
    running: list[Series] = []  # the one with the latest request comes last
    started = 0
    for request in requests:
        for at in reversed(range(len(running))):  # if several fit, the latest one goes on
            if running[at].continues(request):
                current, edit = running.pop(at), None
                break
        else:
            said = {(message.text, message.calls) for message in request.messages if message.role == "assistant"}
            for at in reversed(range(len(running))):
                # First by a set: a log of many single calls would compare each with all before it, word by word.
                answer = running[at].latest.answer
                was_answer = answer is not None and (answer.text, answer.calls) in said
                if was_answer and (edit := running[at].edit(request)) is not None:
                    current = running.pop(at)
                    break
            else:
                started += 1
                current, edit = Series(started, request), None
                if len(running) == most:
                    yield running.pop(0)
        current.add(request, edit)
        running.append(current)
    yield from sorted(running, key=lambda conversation: conversation.number)


def asked_of(model: object, messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages of a request that is recorded alone: its model is taken to have given the answers in it."""
    if not isinstance(model, str) or not model:
        return tuple(messages)
    call = Call(model.removeprefix("models/"))  # as Gemini's requests name it
    return tuple(
        replace(message, call=call) if message.role == "assistant" and message.call is None else message
        for message in messages
    )


def mark(after: str | None, control: object) -> tuple[Mark, ...]:
    """Return the breakpoint that a recorded `cache_control` sets after a message (None = after the tools), if any."""
    if not isinstance(control, dict):
        return ()
    return (Mark(after, str(control.get("ttl") or "5m")),)


def effort(*settings: Any) -> str:
    """Return a request's reasoning settings as one text; each is a word, or an object of words and numbers."""
    values = (setting.values() if isinstance(setting, dict) else [setting] for setting in settings)
    return " ".join(str(word) for words in values for word in words if isinstance(word, (str, int)))


def numbered(name: str, number: int) -> str:
    """Return the id of the number-th conversation of a file without ids: `name`, `name.2`, `name.3` …"""
    return name if number == 1 else f"{name}.{number}"


def _same(old: Message, new: Message) -> bool:
    """Return whether two messages are equal but for the model, and the thinking, which later requests may lack."""
    return old == new or replace(old, thinking="", call=None) == replace(new, thinking="", call=None)


def _said(message: Message) -> tuple[Any, ...]:
    return message.role, message.text, message.calls, message.answers


@dataclass(slots=True)
class Responses:
    """Ids of the responses of one log or session, to read each call once."""

    problems: Problems
    _known: set[int] = field(default_factory=set)

    def new(self, name: str | None, place: Place, response: Any = None) -> bool:
        """Return whether a response has not been read before; a note counts the others. Without an id it is new.

        A short id may be made up: then all of the response has to be the same.
        """
        if not name:
            return True
        key = hash(name if len(name) >= UNIQUE else (name, msgspec.json.encode(response)))
        if key in self._known:
            self.problems.repeated[place.file] += 1
            return False
        self._known.add(key)
        return True


def usage(
    reported: Any, place: Place, problems: Problems, cost: float | None = None, whole_prompt: bool = False
) -> Usage | None:
    """Return a reported usage block in our form; None if there is none, if it is all zeros, or if it is a problem.

    `whole_prompt`: the recorder means the whole prompt by a name that providers use for the rest. Without a `cost`, the
    block's own counts (OpenRouter, Perplexity).
    """
    if reported is None:
        return None if cost is None else Usage(cost=cost)
    if cost is None and isinstance(reported, dict):
        stated, details = reported.get("cost"), as_object(reported.get("cost_details"))
        stated = stated.get("total_cost") if isinstance(stated, dict) else stated
        cost = dollars(stated, place.below("cost"), problems) if isinstance(stated, (int, float)) else None
        if cost is not None and reported.get("is_byok") is True:  # most of it is the provider's bill
            cost += dollars(details.get("upstream_inference_cost"), place.below("cost_details"), problems) or 0.0
    try:
        converted = _usage(reported, place, cost, whole_prompt)
        # Raised to be caught just below: counts that contradict each other are left out like a count that is none.
        for _, what in usage_faults(converted):
            raise RecordingError(place, what, _REMEDY)
    except RecordingError as error:
        problems.add(error)
        return None
    counts = (converted.input, converted.output, converted.cache_read, converted.cache_write, converted.cost)
    return converted if any(counts) else None  # recorders write zeros for a call stopped before any answer


def response_usage(
    reported: Any, place: Place, problems: Problems, cost: float | None = None
) -> tuple[Usage | None, tuple[Iteration, ...]]:
    """Return the usage of a response of Anthropic's, and the requests that it is made of, if it is several.

    The usage then has the prompt of the last one that the model itself answered.
    """
    used = usage(reported, place, problems, cost)
    recorded = reported.get("iterations") if isinstance(reported, dict) else None
    if not isinstance(recorded, list) or not recorded:
        return used, ()
    if len(recorded) == 1:
        # A compaction on demand reports zeros of its own, and what it read and wrote as its only iteration.
        return used or usage(recorded[0], place.below("iterations[0]"), problems, cost), ()
    iterations, last = list[Iteration](), None
    for at, part in enumerate(recorded):
        one = usage(part, place.below(f"iterations[{at}]"), problems)
        if one is not None:
            advised = part.get("type") == "advisor_message"
            iterations.append(Iteration(one, str(part.get("model") or "") if advised else ""))
            last = last if part.get("type") != "message" else one
    if used is not None and last is not None:
        used = replace(last, output=used.output, cost=used.cost, reasoning=used.reasoning)
    return used, tuple(iterations)


def tier(*reported: Any) -> str:
    """Return the service tier that a response names, or its usage block, with a speed and region that cost more."""
    blocks = [block for block in reported if isinstance(block, dict)]

    def said(*names: str) -> str:
        values = (as_object(block.get(name)).get("type", block.get(name)) for block in blocks for name in names)
        return next((value for value in values if isinstance(value, str)), "")  # Bedrock's are {type: "flex"}

    special = [word for word in (said("speed"), said("inference_geo")) if word not in _USUAL]
    return " ".join(filter(None, (said("service_tier", "serviceTier", "trafficType"), *special)))


def other_than(model: str, asked: str) -> str:
    """Return the model asked for if another one answered, else an empty text."""
    return asked if model != asked else ""


def context_edits(managed: Any, place: Place, problems: Problems) -> tuple[ContextEdit, ...]:
    """Return the edits of a prompt that a response of Anthropic's reports as its `context_management`.

    An edit whose counts are none is a problem, and is left out.
    """
    applied = managed.get("applied_edits") if isinstance(managed, dict) else None
    edits = []
    for at, edit in enumerate(applied if isinstance(applied, list) else ()):
        with problems.collect():
            block = _Block(edit, place.below(f"applied_edits[{at}]"))
            counts = (block.count(f"cleared_{what}") for what in ("input_tokens", "tool_uses", "thinking_turns"))
            edits.append(ContextEdit(str(edit.get("type") or ""), *counts))
    return tuple(edits)


def dollars(recorded: Any, place: Place, problems: Problems) -> float | None:
    """Return a recorded cost in US dollars; None if there is none, or if it is a problem."""
    if recorded is None:
        return None
    if isinstance(recorded, (int, float)) and not isinstance(recorded, bool) and 0 <= recorded < _MOST_DOLLARS:
        return float(recorded)
    problems.add(RecordingError(place, f"{_shown(recorded)} is no cost in US dollars", "correct it; it is not read"))
    return None


def _usage(reported: Any, place: Place, cost: float | None, whole_prompt: bool) -> Usage:
    block = _Block(reported, place)
    whole, rest = block.count("whole prompt"), block.count("uncached prompt")
    if whole is None and (whole_prompt or any(map(block.has, _RESPONSES_API))):
        whole, rest = rest, None
    read, written = block.count("cache read"), block.count("cache write")
    missed = block.count("cache miss")
    if whole is None and rest is not None:
        whole = rest + (read or 0) + (written or 0)
    # DeepSeek reports hits and misses, which are the whole prompt between them.
    if missed is not None and read is not None:
        if whole is not None and read + missed != whole:
            what = f"{read:,} tokens hit and {missed:,} missed are not the prompt's {whole:,}"
            raise RecordingError(place, what, _REMEDY)
        whole = read + missed
    output, thoughts, tool_prompt = block.count("output"), block.count("thoughts"), block.count("tool prompt")
    if whole is not None and tool_prompt is not None:
        whole += tool_prompt
    reasoning, total = block.count("reasoning"), block.count("total") if thoughts is None else None
    is_apart = thoughts is not None  # whether the output was counted without the reasoning
    if reasoning and output is not None:
        is_apart |= reasoning > output or (whole is not None and total == whole + output + reasoning)
    if is_apart:
        reasoning = reasoning if thoughts is None else thoughts
        output = (output or 0) + (reasoning or 0)
    audio = block.count("audio input"), block.count("audio output")
    kinds = ("audio read", "image input", "image output", "image read", "searches")
    others = [block.count(kind) or None for kind in kinds]  # most recorders write zeros
    return Usage(whole, output, read, written, block.count("cache write, 1h"), cost, reasoning, *audio, *others)


class _Block:
    """Counts of a usage block and of the blocks nested in it."""

    def __init__(self, reported: Any, place: Place) -> None:
        if not isinstance(reported, dict):
            raise RecordingError(place, f"expected an object of counts, got {type(reported).__name__}", _REMEDY)
        self._place = place
        # by the last part of the name, and by the full name: the full name and the recorded value
        self._counts: dict[str, tuple[str, Any]] = {}
        self._take(reported, "")
        self._recorded: dict[str, list[str]] = {}
        for name, (_, value) in self._counts.items():
            if value is not None and name in _KINDS:
                self._recorded.setdefault(_KINDS[name], []).append(name)

    def _take(self, reported: dict[str, Any], before: str) -> None:
        for name, value in reported.items():
            if isinstance(value, dict):
                if name in _NESTED:
                    self._counts.setdefault(name, (before + name, None))
                    self._take(value, f"{before}{name}.")
            elif isinstance(value, list):  # Gemini's: [{modality: AUDIO, tokenCount: 8}]
                for part in value:
                    if isinstance(part, dict) and isinstance(kind := part.get("modality"), str):
                        tokens = part.get("tokenCount", part.get("token_count"))
                        self._counts[f"{name}.{kind.rpartition('.')[2].upper()}"] = name, tokens
            elif value is not None:
                # By its last name the first one counts, but one that is not nested counts before all that are: its full
                # name is its last name, and the line below sets it again.
                self._counts.setdefault(name, (before + name, value))
                self._counts[before + name] = before + name, value

    def has(self, name: str) -> bool:
        """Return whether there is a count or block of that name."""
        return name in self._counts

    def count(self, kind: str) -> int | None:
        """Return the count of a kind, or None. Of several, a zero yields to another one, and two others must agree."""
        recorded = self._recorded.get(kind)
        if recorded is None or len(recorded) == 1:
            return None if recorded is None else self._checked(recorded[0])
        present = {name: self._checked(name) for name in sorted(recorded, key=_NAMES[kind].index)}
        counts = {name: count for name, count in present.items() if count}
        if len(set(counts.values())) > 1:
            several = " and ".join(f"{self._counts[name][0]} {count:,}" for name, count in counts.items())
            raise RecordingError(self._place, f"{several} are to be the same", _REMEDY)
        return next(iter(counts.values()), 0)

    def _checked(self, name: str) -> int:
        at, value = self._counts[name]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
            where = self._place.at(f"{self._place.field}.{at}".removeprefix("."))
            raise RecordingError(where, f"{_shown(value)} is no number of tokens", _REMEDY)
        return value


def _shown(value: object) -> str:
    """Return a recorded value as text that fits a line."""
    if isinstance(value, int) and abs(value) >= _MOST_SHOWN:
        return f"a number of some {value.bit_length() * 3 // 10:,} digits"
    return repr(value)[:_LONGEST_SHOWN]
