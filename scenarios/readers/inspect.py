"""Samples of Inspect's evaluations."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from .. import packed
from ..errors import Place, RecordingError
from ..model import Call, Conversation, Message, Scalar, ToolCall
from ..source import LONGEST, Problems, as_text, convert, decode, file_head, whole_file
from . import LIST, OBJECT, Fields, Reader, Recordings, text_of
from .messages import History, in_order, iso_seconds, role_of, texts, tool
from .requests import LoggedRequest, dollars, effort, numbered, other_than, series, usage

_LARGEST = 16 * LONGEST
_ZSTANDARD = 93  # the number of the method in zip archives, which Python 3.14 knows first
_REFERENCE = "attachment://"
# Raised for damaged archives, by where the damage is.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError, struct.error),
    *(EOFError, OSError, RuntimeError, ValueError),
)
# Kinds of spans whose calls are conversations of their own.
_OWN = ("agent", "scorer", "scorers")


class _Log(msgspec.Struct):
    eval: dict[str, Any]
    samples: list[msgspec.Raw] | None = None


class _Sample(msgspec.Struct):
    id: str | int
    epoch: int = 1
    messages: list[Any] = []
    events: list[Any] = []
    attachments: dict[str, str] = {}
    message_pool: list[Any] = []
    scores: dict[str, dict[str, Any]] | None = None


class _SampleCall(msgspec.Struct):
    id: str
    function: str
    arguments: Any = None


class _SampleMessage(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any] | str] = ""
    tool_calls: list[_SampleCall] | None = None
    tool_call_id: str | None = None
    function: str | None = None
    error: dict[str, Any] | None = None


class _Event(msgspec.Struct):
    event: str
    span_id: str | None = None
    id: str | None = None
    parent_id: str | None = None
    action: str | None = None
    type: str | None = None
    name: str | None = None


class Inspect(Reader):
    """Logs of Inspect, the UK AI Security Institute's evaluation framework: `.eval` (a zip archive) and `.json`.

        {eval: {task, model}, samples: [{id, epoch, messages, scores, attachments: {hash: text},
          events: [{event: "model", model, input, tools, config, output: {choices, usage, time}, timestamp}]}]}

    Source: inspect.aisi.org.uk/eval-logs, github.com/UKGovernmentBEIS/inspect_ai. An archive has `header.json` and a
    file `samples/<id>_epoch_<n>.json` per sample, compressed by deflate or zstd.

    - Every `model` event is a call with its whole request; those that extend each other are one conversation, as in
      logs of requests. Calls of another agent, or of a scorer, are conversations of their own:
      `<task>/<sample>/<name>`.
    - Messages may stand in `message_pool`, to which `input_refs` refer by ranges, and long texts in `attachments`.
    - `input_tokens` holds what was read from the cache or not, by version and provider: `total_tokens` tells.
    - Answers from Inspect's own cache have no usage: nobody was billed.
    - A sample without events has its last messages alone, without usage.
    """

    about = "Inspect logs (.eval and .json)"
    shapes = (frozenset({".eval", ".eval.task", ".samples", ".samples[].epoch", ".samples[].messages[].role"}),)

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is an archive of Inspect."""
        return path.suffix.lower() == ".eval" and head.startswith(b"PK")

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            archived = file_head(path, 2) == b"PK"
            task = ""
            for place, raw in _archived(path, problems) if archived else _listed(path, problems):
                with problems.collect():
                    if place.field in ("header.json", "eval"):
                        task = Fields(decode(raw, _Log, place).eval, place).text("task")
                    else:
                        yield from _conversations(decode(raw, _Sample, place), task, place, problems)


def _listed(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """Yield the log in JSON, and its samples one by one."""
    data = whole_file(path, problems)
    yield Place(str(path), 1, "eval"), data
    for at, raw in enumerate(decode(data, _Log, Place(str(path), 1)).samples or ()):
        yield Place(str(path), 1, f"samples[{at}]"), bytes(raw)


def _archived(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """Yield the header of an archive, then its samples, in the order of their names."""
    place, remedy = Place(str(path)), "the file was cut off or changed: copy it again"
    try:
        with packed.opened(path) as packed_file, packed.seekable(packed_file) as file, zipfile.ZipFile(file) as archive:
            problems.consumed += packed.size_of(path)
            infos = archive.infolist()
            for info in sorted(infos, key=lambda info: (info.filename != "header.json", info.filename)):
                if info.filename == "header.json" or info.filename.startswith("samples/"):
                    try:
                        yield place.at(info.filename), _member(archive, info)
                    except _DAMAGED as error:
                        problems.add(RecordingError(place.at(info.filename), f"cannot be unpacked: {error}", remedy))
    except _DAMAGED as error:
        raise RecordingError(place, f"no zip archive: {error}", remedy) from None


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a file in an archive. Raises ValueError if they are too many."""
    if info.compress_type == _ZSTANDARD:
        stored = archive.fp
        assert stored is not None, "the archive is open"
        # The local header has the lengths of name and extra field at 26 and 28, and both behind them; the extra field
        # may be of another length than in the directory, so it has to be read here.
        stored.seek(info.header_offset + 26)
        names = int.from_bytes(stored.read(2), "little") + int.from_bytes(stored.read(2), "little")
        stored.seek(names, 1)
        with zstandard.ZstdDecompressor().stream_reader(stored.read(info.compress_size)) as reader:
            data = reader.read(_LARGEST + 1)
    else:
        with archive.open(info) as file:
            data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"over {_LARGEST >> 20} MiB")
    return data


def _conversations(sample: _Sample, task: str, place: Place, problems: Problems) -> Recordings:
    name = numbered("/".join(part for part in (task, str(sample.id)) if part), sample.epoch)
    meta: dict[str, Scalar] = {"task": task} if task else {}
    for score, given in (sample.scores or {}).items():
        if isinstance(value := given.get("value"), (str, int, float)):
            meta[f"score {score}"] = value
    requests: dict[str, list[LoggedRequest]] = {}
    spans = _Spans()
    for at, recorded in enumerate(sample.events):
        where = place.below(f"events[{at}]")
        with problems.collect():
            event = convert(recorded, _Event, where)
            spans.follow(event)
            if event.event == "model":
                request = _request(Fields(_resolved(recorded, sample, where), where), sample, problems)
                if request is not None:
                    requests.setdefault(spans.owner(event.span_id), []).append(request)
    main = next(iter(requests), "")
    for owner, calls in requests.items():
        for group in series(calls):
            full = name if owner == main else f"{name}/{owner or 'main'}"
            _, conversation = group.conversation(full)
            about = meta if owner == main else {**meta, "parent": name}
            yield place, msgspec.structs.replace(conversation, messages=in_order(conversation.messages), meta=about)
    if not requests and sample.messages:
        history = History(problems)
        for at, recorded in enumerate(sample.messages):
            where = place.below(f"messages[{at}]")
            with problems.collect():
                message = convert(_resolved(recorded, sample, where), _SampleMessage, where)
                history.add(_message(message, f"m{at}", where, problems), where)
        if history.messages:
            yield place, Conversation(name, history.in_order(), meta=meta)


@dataclass(slots=True)
class _Spans:
    """Spans of a sample: who made a call. Logs up to 2025 have steps instead, which do not overlap."""

    _known: dict[str, _Event] = field(default_factory=dict)
    _steps: list[str] = field(default_factory=list)

    def follow(self, event: _Event) -> None:
        """Enter or leave the span or step that an event begins or ends."""
        if event.event == "span_begin" and event.id:
            self._known[event.id] = event
        elif event.event == "step" and event.action == "begin":
            self._steps.append((event.name or "") if event.type in _OWN else "")
        elif event.event == "step" and self._steps:
            self._steps.pop()

    def owner(self, span: str | None) -> str:
        """Return the name of the innermost agent or scorer around an event; empty if there is none."""
        seen: set[str] = set()
        while span in self._known and span not in seen:
            seen.add(span)
            around = self._known[span]
            if around.type in _OWN:
                return around.name or around.type or ""
            span = around.parent_id
        return next((name for name in reversed(self._steps) if name), "")


def _resolved(value: Any, sample: _Sample, place: Place) -> Any:
    """Return a value with the texts that stand among the attachments. Raises RecordingError if it is too deep."""

    def resolved(value: Any) -> Any:
        if isinstance(value, str):
            is_reference = value.startswith(_REFERENCE)
            return sample.attachments.get(value[len(_REFERENCE) :], value) if is_reference else value
        if isinstance(value, list):
            return [resolved(part) for part in value]
        if isinstance(value, dict):
            # `call` repeats request and response as they were sent
            return {name: resolved(part) for name, part in value.items() if name != "call"}
        return value

    try:
        return resolved(value)
    except RecursionError:
        raise RecordingError(place, "nested too deep", "flatten it") from None


def _request(event: Fields, sample: _Sample, problems: Problems) -> LoggedRequest | None:
    """Return a call; None if it was not answered."""
    if not event.typed("output.choices", LIST):
        return None
    place, output = event.place, event.place.below("output")
    sent = [*(event.typed("input", list[_SampleMessage]) or ()), *_pooled(event, sample)]
    messages = tuple(
        _message(message, f"m{at}", place.below(f"input[{at}]"), problems) for at, message in enumerate(sent)
    )
    times = ((event.typed(name, str), place.below(name)) for name in ("timestamp", "completed"))
    started, finished = (iso_seconds(text, where) if text else None for text, where in times)
    took = event.typed("output.time", float)
    if finished is None and started is not None and took is not None and took >= 0:
        finished = started + took
    provider, _, asked = event.text("model").rpartition("/")
    reported, model = event.typed("output.usage", OBJECT), event.text("output.model") or asked
    cost = dollars((reported or {}).get("total_cost"), output.below("usage.total_cost"), problems)
    call = Call(
        model,
        provider.partition("/")[0],
        usage(reported, output.below("usage"), problems, cost, _has_whole_prompt(reported)),
        started,
        effort=effort(event.at("config.reasoning_effort"), event.at("config.reasoning_tokens")),
        stop=event.text("output.choices.0.stop_reason"),
        requested=other_than(model, asked),
        error=event.text("output.error"),
    )
    said, where = event.needed("output.choices.0.message", _SampleMessage), output.below("choices[0].message")
    answer = _message(said, f"m{len(messages)}", where, problems)
    answer = msgspec.structs.replace(answer, time=finished, call=call)
    tools = event.typed("tools", list[dict[str, Any]]) or ()
    return LoggedRequest(place, messages, answer, tuple(map(tool, tools)))


def _pooled(event: Fields, sample: _Sample) -> Iterator[_SampleMessage]:
    """Yield the messages of a request that stand in the sample's pool."""
    place = event.place.below("input_refs")
    for first, end in event.typed("input_refs", list[tuple[int, int]]) or ():
        if not 0 <= first <= end <= len(sample.message_pool):
            what = f"messages {first} to {end} of a pool of {len(sample.message_pool)}"
            raise RecordingError(place, what, "correct it, or leave this event out")
        for message in sample.message_pool[first:end]:
            yield convert(_resolved(message, sample, place), _SampleMessage, place)


def _has_whole_prompt(reported: dict[str, Any] | None) -> bool:
    """Return whether the total says that `input_tokens` includes what was read from the cache and written to it."""
    names = ("input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
    prompt, output, total, *cached = ((reported or {}).get(name) for name in names)
    if not (isinstance(prompt, int) and isinstance(output, int) and isinstance(total, int)):
        return False
    # Of 100 tokens with 80 cached and 10 of output: a total of 110 includes the cached ones (0 < 80), one of 190 does
    # not (80 < 80 is false).
    return total - output - prompt < sum(count for count in cached if isinstance(count, int))


def _message(message: _SampleMessage, name: str, place: Place, problems: Problems) -> Message:
    role, content = role_of(message.role, place), message.content
    if isinstance(content, list):  # reasoning stands under its own name
        content = [
            {**block, "text": block.get("reasoning")} if isinstance(block, dict) and "reasoning" in block else block
            for block in content
        ]
    text, media, thinking = texts(content, place.below("content"), problems)
    if message.error is not None:  # it is sent in the place of the result
        text = text_of(message.error.get("message"))
    calls = (ToolCall(call.id, call.function, as_text(call.arguments or {})) for call in message.tool_calls or ())
    return Message(
        name,
        role,
        text,
        tuple(calls),
        answers=(message.tool_call_id or "") if role == "tool" else None,
        name=message.function or "",
        thinking=thinking,
        media=media,
    )
