"""Traces as conversations: the span tree that all readers of traces share.

A dialect (`otel.py`, `tracers.py`) reads its files into spans. `conversations` makes conversations of them:

    agent planner                        planner:  S U A1 T A2        (A1 and A2 are its model calls)
      llm  S U            -> A1
      tool search                        searcher: S' U' B1           meta["parent"] = planner's conversation
        agent searcher
          llm  S' U'      -> B1
      llm  S U A1 T       -> A2

- Model calls of one thread (a session or conversation id, else the trace), in the order of their start, are grouped by
  their prompts as in `requests.py`: a call whose prompt repeats an earlier one and goes on with its answer continues
  that conversation, and any other one begins the next (`<thread>.2` …), parallel calls among them. Names of agents do
  not group: tracers give a new one to each run.
- The conversations of a thread's first agent have the thread's name, those of others are `<thread>/<agent>`.
- A model call is often seen twice, by the framework and by the client library below it. Of model calls inside each
  other, with no agent or tool between them, the innermost counts; what it lacks comes from the one around it.
- A call without a prompt, a failed call without an answer and usage, and a failed attempt whose prompt was answered
  later, are counted in the notes.

Spans of one session may stand in any of the files, so none is complete before all are read. Until then prompts and
answers are on disk: memory holds about two kilobytes for each span, and the text of one thread.
"""

from __future__ import annotations

import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from ..errors import Place, RecordingError
from ..model import STOPPED, Call, Conversation, Mark, Message, Scalar, Tool
from ..source import Problems, records
from . import Recordings
from .messages import in_order
from .requests import LoggedCall, Responses, numbered, series

T = TypeVar("T")
Kind = Literal["llm", "agent", "tool", "other"]
_NOTHING_LOGGED, _NO_CALL = LoggedCall(), Call()


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One span of a trace. Only spans of kind `llm` have an exchange and a call."""

    place: Place  # differs from that of any other span
    id: str
    trace: str = ""
    parent: str = ""
    kind: Kind = "other"
    agent: str = ""  # name of the agent that this span is, or that its call was made by
    thread: str = ""  # session or conversation id. Empty = that of the span around it
    end: float | None = None
    exchange: LoggedCall = _NOTHING_LOGGED
    call: Call = _NO_CALL  # its `started` is the start of the span
    response: str = ""  # the provider's id of the response
    cached: str = ""  # where the counts of the call have its cached tokens, as `counted` says


def conversations(spans: Iterable[TraceSpan], problems: Problems, format_name: str) -> Recordings:
    """Yield the conversations of all traces, in the order of their first calls."""
    with tempfile.TemporaryFile() as file:
        values = _Values(file)
        tree = _Tree(spans, values, problems, format_name)
        responses = Responses(problems)
        calls: dict[Place, _ModelCall] = {}
        threads: dict[str, list[_ModelCall]] = {}
        by_scope: dict[tuple[str, str], list[TraceSpan]] = {}
        # In the order of their start; one without a time stays behind the one before it.
        calls_made, starts = list(tree.calls()), list[float]()
        for call in calls_made:
            starts.append(call.span.call.started if call.span.call.started is not None else (starts or [0.0])[-1])
        ordered = [calls_made[at] for at in sorted(range(len(starts)), key=starts.__getitem__)]
        # Tracers estimate the usage of failed attempts from the prompt: usage does not tell that one was billed.
        answered = {(tree.thread(call.span), call.prompt): at for at, call in enumerate(ordered) if not call.failed}
        for at, call in enumerate(ordered):
            span = call.span
            # The last answered call with this prompt in the thread: only attempts before it were made again.
            made_again = at < answered.get((tree.thread(span), call.prompt), 0)
            if call.failed and (span.call.usage is None or made_again):
                problems.unknown(f"{format_name}: failed model call", span.place)
            elif not call.prompt:
                problems.unknown(f"{format_name}: model call without its prompt", span.place)
            elif responses.new(span.response or span.call.request_id, span.place, (call.prompt, call.answer)):
                calls[span.place] = call
                threads.setdefault(tree.thread(span), []).append(call)
                by_scope.setdefault(tree.scopes(span)[0], []).append(span)
        names: dict[Place, str] = {}
        chats: list[tuple[str, Place, Place, int]] = []
        for thread, members in threads.items():
            first_agent = tree.agent_name(members[0].span)
            numbers: Counter[str] = Counter()
            for requests in series(map(partial(_request, values=values, read={}), members), most=len(members)):
                agent_name = tree.agent_name(calls[requests.places[0]].span)
                base = thread if agent_name in ("", first_agent) else f"{thread}/{agent_name}"
                numbers[base] += 1
                requests.number = numbers[base]
                names |= dict.fromkeys(requests.places, numbered(base, requests.number))
                place, conversation = requests.conversation(base)
                chats.append((agent_name, requests.places[0], place, values.put(conversation)))
        order = {place: at for at, place in enumerate(calls)}
        for agent_name, first, place, stored in sorted(chats, key=lambda chat: order[chat[1]]):
            conversation = values.get(stored, Conversation)
            meta: dict[str, Scalar] = {"agent": agent_name} if agent_name else {}
            around = tree.scopes(calls[first].span)[1:]
            callers = next((by_scope[scope] for scope in around if scope in by_scope), [])
            if callers:
                started = [caller for caller in callers if order[caller.place] < order[first]]
                parent = names[(started or callers)[-1 if started else 0].place]
                if parent != conversation.id:
                    meta["parent"] = parent
            yield place, msgspec.structs.replace(conversation, messages=in_order(conversation.messages), meta=meta)


def number(cell: Any) -> Any:
    """Return the number that a table holds as text; anything else as it is."""
    if not isinstance(cell, str):
        return cell
    try:
        return msgspec.json.decode(cell, type=int | float)
    except msgspec.DecodeError:
        return cell


CACHED = "cached_at"  # where the cached tokens are: beside the input, within it by the tracer's rule, or as below
_READ_AS = {
    "unknown": "input that may leave out the cached tokens, read as with them",
    "added": "input that may have the cached tokens, read as without them since the sums of its counts say so",
}


def counted(
    whole: Any = None,
    output: Any = None,
    read: Any = None,
    written: Any = None,
    total: Any = None,
    reasoning: Any = None,
    *,
    cached_at: str = "unknown",
) -> dict[str, Any] | None:
    """Return counts under the names that `requests.usage` knows; None if there are none.

    Tracers disagree on whether the input includes what was read from or written to a cache. An input smaller than the
    cached tokens cannot include them, and does not where the total is input, cached tokens and output. What one call
    of a file tells so is true of its other calls (`_Tree`): none of the two has to show in each.
    """
    whole, output, read, written, total, reasoning = map(number, (whole, output, read, written, total, reasoning))
    counts = {"prompt_tokens": whole, "completion_tokens": output, "cache_read_tokens": read}
    counts = {name: count for name, count in {**counts, "cache_write_tokens": written}.items() if count is not None}
    numbers = [count if isinstance(count, int) else 0 for count in (whole, output, read, written, total)]
    cached = numbers[2] + numbers[3]
    # Input 100, output 10, 80 read from the cache: a total of 190 counts them beside the input, one of 110 within it.
    if whole is not None and cached:
        if cached > numbers[0] or numbers[4] == numbers[0] + numbers[1] + cached:
            cached_at = "beside"
        if cached_at == "beside":
            counts["input_tokens"] = counts.pop("prompt_tokens")
        counts[CACHED] = cached_at
    if counts and reasoning is not None:
        counts |= {"reasoning_tokens": reasoning} | ({} if total is None else {"total_tokens": total})
    return counts or None


def span_records(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """Yield the records of a file. Their places differ, also if an array stands on one line."""
    latest = None
    for number, (place, raw) in enumerate(records(path, problems)):
        yield (place.at(f"[{number}]") if place == latest else place), raw
        latest = place


def sound(make: Callable[[], TraceSpan], place: Place, problems: Problems) -> Iterator[TraceSpan]:
    """Yield the span that is made; one that cannot be read is a problem."""
    try:
        yield make()
    except RecordingError as error:
        problems.add(error)
    except RecursionError:
        problems.add(RecordingError(place, "nested too deep", "flatten it"))


def spans_of(
    files: Sequence[Path], read: Callable[[Path, Problems], Iterable[TraceSpan]], problems: Problems
) -> Iterator[TraceSpan]:
    """Yield the spans of all files, by a function of one. A file that cannot be read costs only itself.

    A file without a model call, and without a span of a trace that has one, is no recording.
    """
    others: dict[Path, list[str]] = {}
    traces: set[str] = set()
    for path in files:
        found, calls, before = list[str](), 0, len(problems.errors)
        with problems.collect():
            for span in read(path, problems):
                found.append(span.trace)
                if span.kind == "llm":
                    calls += 1
                    traces.add(span.trace)
                yield span
        if not calls and len(problems.errors) == before:
            others[path] = found
    for path, found in others.items():
        if traces.isdisjoint(found):
            problems.ignored.append(f"{path}: no model call among its {len(found):,} spans")


@dataclass(frozen=True, slots=True)
class _ModelCall:
    """A model call whose exchange is on disk: numbers of values, 0 for none."""

    span: TraceSpan  # without its exchange
    prompt: int  # its last message; each stands behind the one before it
    answer: int
    tools: int
    stop: str
    marks: tuple[Mark, ...]
    results: int

    @property
    def failed(self) -> bool:
        """Whether it was stopped before it had an answer."""
        return not self.answer and self.span.call.stop in STOPPED


class _Values:
    """Values on disk, numbered from 1. Equal values behind the same one have one number: prompts repeat each other.

    S U and S U A T are 1 S, 2 U behind 1, 3 A behind 2, 4 T behind 3: the two prompts are the numbers 2 and 4.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._numbers: dict[bytes, int] = {}
        self._before, self._ends = array("q", [0]), array("q", [0])

    def put(self, value: Any, before: int = 0) -> int:
        """Return the number of a value behind another one."""
        # JSON, because msgpack has no integers of more than 64 bits, which a recording may have. The salt ties a value
        # to the one before it: the same message behind another prompt is another value.
        data = msgspec.json.encode(value)
        key = blake2b(data, digest_size=16, salt=before.to_bytes(16)).digest()
        number = self._numbers.setdefault(key, len(self._before))
        if number == len(self._before):
            self._before.append(before)
            self._file.seek(self._ends[-1])
            self._file.write(data)
            self._ends.append(self._ends[-1] + len(data))
        return number

    def get(self, number: int, kind: type[T]) -> T:
        start, end = self._ends[number - 1], self._ends[number]
        self._file.seek(start)
        return msgspec.json.decode(self._file.read(end - start), type=kind)

    def chain(self, number: int) -> list[int]:
        """Return the numbers of all values up to this one."""
        numbers = []
        while number:
            numbers.append(number)
            number = self._before[number]
        return numbers[::-1]


def _request(call: _ModelCall, values: _Values, read: dict[int, Message]) -> LoggedCall:
    """Return a model call as a logged request. An answer that was not recorded is an empty message.

    `read` holds the messages that were read for earlier calls: series compare them, fastest if they are the same.
    """
    span, numbers = call.span, values.chain(call.prompt)
    read |= {number: values.get(number, Message) for number in numbers if number not in read}
    answer = values.get(call.answer, Message) if call.answer else Message(f"m{len(numbers)}", "assistant")
    recorded = msgspec.structs.replace(
        span.call, stop=span.call.stop or call.stop, marks=call.marks, request_id=span.call.request_id or span.response
    )
    answer = msgspec.structs.replace(answer, call=recorded, time=span.end)
    tools = values.get(call.tools, tuple[Tool, ...]) if call.tools else ()
    results = values.get(call.results, tuple[Message, ...]) if call.results else ()
    return LoggedCall(span.place, tuple(read[number] for number in numbers), answer, tools, results=results)


class _Tree:
    """All spans, by trace and id; what the model calls among them say is put on disk."""

    def __init__(self, spans: Iterable[TraceSpan], values: _Values, problems: Problems, format_name: str) -> None:
        self._spans: dict[tuple[str, str], TraceSpan] = {}
        self._calls: dict[tuple[str, str], _ModelCall] = {}
        for logged in spans:
            key, said, span = _key(logged), logged.exchange, replace(logged, exchange=_NOTHING_LOGGED)
            call = None
            if span.kind == "llm":
                prompt = 0
                for message in said.messages:  # each behind the one before it
                    prompt = values.put(message, prompt)
                answer = values.put(said.answer, prompt) if said.answer is not None else 0
                tools = values.put(said.tools) if said.tools else 0
                results = values.put(said.results) if said.results else 0
                call = _ModelCall(span, prompt, answer, tools, said.stop, said.marks, results)
            earlier = self._spans.get(key)
            if earlier is not None:
                earlier_call = self._calls.pop(key, None)
                if earlier_call is not None:
                    earlier_call = replace(earlier_call, span=span)
                if replace(earlier, place=span.place) != span or earlier_call != call:
                    problems.unknown(f"{format_name}: earlier state of a span that stands twice", earlier.place)
                elif call is not None:
                    problems.repeated[span.place.file] += 1
            self._spans[key] = span
            if call is not None:
                self._calls[key] = call
        self._settle(problems, format_name)

    def _settle(self, problems: Problems, format_name: str) -> None:
        """Read the input of all calls in one way that one file has of Claude, whose API counts unlike all others."""
        calls = {key: call for key, call in self._calls.items() if call.span.cached and call.span.call.usage}
        kinds = {key: (call.span.place.file, "claude" in call.span.call.model.lower()) for key, call in calls.items()}
        beside = {kinds[key] for key, call in calls.items() if call.span.cached == "beside"}
        for key, call in calls.items():
            span, used = call.span, call.span.call.usage
            if span.cached not in ("beside", "added") and kinds[key] in beside:
                assert used is not None
                whole = (used.input or 0) + (used.cache_read or 0) + (used.cache_write or 0)
                made = msgspec.structs.replace(span.call, usage=msgspec.structs.replace(used, input=whole))
                self._calls[key] = replace(call, span=replace(span, call=made))
                what = "input, read as without the cached tokens, which another call of the file cannot include"
            elif kinds[key][1] and span.cached in _READ_AS:
                what = _READ_AS[span.cached]
            else:
                continue
            problems.unknown(f"{format_name}: {what}", span.place)

    def calls(self) -> Iterator[_ModelCall]:
        """Yield the innermost model calls, with what only the calls around them have."""
        wrappers = dict[tuple[str, str], list[TraceSpan]]()
        for key in (key for key in self._spans if key in self._calls):  # the model calls up to the next agent or tool
            inside = takewhile(lambda each: each.kind not in ("agent", "tool"), self._ancestors(self._spans[key]))
            wrappers[key] = [each for each in inside if each.kind == "llm"]
        outer = {_key(wrapper) for around in wrappers.values() for wrapper in around}
        inner: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for key, around in wrappers.items():
            # Of the innermost calls alone: one in the middle is around another call, and takes its place there.
            for wrapper in () if key in outer else around:
                inner.setdefault(_key(wrapper), []).append(key)
        # Of several attempts the framework around them reports the one that did not fail.
        sound = {at: [key for key in keys if not self._calls[key].failed] or keys for at, keys in inner.items()}
        for key, around in wrappers.items():
            if key not in outer:
                call = self._calls[key]
                for at in map(_key, around):
                    if sound[at] == [key]:
                        call = _completed(call, self._calls[at])
                yield call

    def thread(self, span: TraceSpan) -> str:
        """Return the thread of a call: its own, else of a span around it, else its trace, else the name of its file."""
        threads = (each.thread for each in (span, *self._ancestors(span)))
        return next(filter(None, threads), "") or span.trace or Path(span.place.file).stem

    def agent_name(self, span: TraceSpan) -> str:
        """Return the name of the agent that made a call; empty if none is recorded."""
        agents = (each.agent for each in self._ancestors(span) if each.kind == "agent")
        return span.agent or next(agents, "")

    def scopes(self, span: TraceSpan) -> list[tuple[str, str]]:
        """Return the keys of the agents and tools around a span, innermost first, then the key of its trace."""
        return [*(_key(each) for each in self._ancestors(span) if each.kind in ("agent", "tool")), (span.trace, "")]

    def _ancestors(self, span: TraceSpan) -> Iterator[TraceSpan]:
        # Spans of a damaged trace may be each other's parents.
        seen = {span.id}
        above = self._spans.get((span.trace, span.parent))
        while above is not None and above.id not in seen:
            seen.add(above.id)
            yield above
            above = self._spans.get((above.trace, above.parent))


def _key(span: TraceSpan) -> tuple[str, str]:
    return span.trace, span.id


def _completed(inner: _ModelCall, outer: _ModelCall) -> _ModelCall:
    """Return a call with the prompt, answer, tools and usage of the call around it where it has none."""
    call, wrapper = inner.span.call, outer.span.call
    call = msgspec.structs.replace(
        call,
        usage=call.usage or wrapper.usage,
        model=call.model or wrapper.model,
        tier=call.tier or wrapper.tier,
        first_token=wrapper.first_token if call.first_token is None else call.first_token,
    )
    span = replace(inner.span, call=call, agent=inner.span.agent or outer.span.agent)
    if not inner.prompt and not inner.answer:
        return replace(outer, span=span)
    return replace(
        inner,
        span=span,
        answer=inner.answer or (outer.answer if inner.prompt == outer.prompt else 0),
        tools=inner.tools or outer.tools,
        stop=inner.stop or outer.stop,
    )
