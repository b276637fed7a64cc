"""Samples of Inspect's evaluations."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import zstandard
from msgspec.structs import replace

from .. import packed
from ..errors import Place, RecordingError
from ..model import Call, Conversation, Message, Scalar, ToolCall
from ..source import LONGEST, Problems, as_text, decode, file_head, whole_file
from . import LIST, OBJECT, Fields, Reader, Recordings
from .messages import History, in_order, iso_time, role_of, texts, tool
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
                        log = Fields(decode(raw, OBJECT, place), place)
                        log.needed("eval", OBJECT)
                        task = log.text("eval.task")
                    else:
                        yield from _Sample(decode(raw, OBJECT, place), place, task, problems).conversations()


def _listed(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """Yield the log in JSON, and its samples one by one."""
    data, place = whole_file(path, problems), Place(str(path), 1)
    yield place.at("eval"), data
    samples = decode(data, dict[str, msgspec.Raw], place).get("samples", msgspec.Raw(b"null"))
    listed: list[msgspec.Raw] = (
        [] if bytes(samples) == b"null" else decode(samples, list[msgspec.Raw], place.at("samples"))
    )
    for at, raw in enumerate(listed):
        yield place.at(f"samples[{at}]"), bytes(raw)


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


class _Sample(Fields):
    """A sample: its messages and events, with what they refer to."""

    def __init__(self, record: dict[str, Any], place: Place, task: str, problems: Problems) -> None:
        super().__init__(record, place)
        self._task, self._problems = task, problems
        self._attachments = self.typed("attachments", dict[str, str]) or {}
        self._pool = self.typed("message_pool", LIST) or []
        self._spans: dict[str, Fields] = {}
        # Logs up to 2025 have steps instead of spans, which do not overlap.
        self._steps: list[str] = []

    def conversations(self) -> Recordings:
        """Yield the conversations of the agents and scorers, the first caller's under the name of the sample."""
        sample, problems = str(self.needed("id", str | int)), self._problems  # type: ignore[arg-type]
        name = numbered("/".join(part for part in (self._task, sample) if part), self.typed("epoch", int) or 1)
        meta: dict[str, Scalar] = {"task": self._task} if self._task else {}
        for score, given in (self.typed("scores", dict[str, dict[str, Any]]) or {}).items():
            if isinstance(value := given.get("value"), (str, int, float)):
                meta[f"score {score}"] = value
        requests: dict[str, list[LoggedRequest]] = {}
        for event in self.each("events"):
            with problems.collect():
                kind = event.needed("event", str)
                self._follow(kind, event)
                if kind == "model" and (request := self._request(self._resolved(event))) is not None:
                    requests.setdefault(self._owner(event.text("span_id")), []).append(request)
        main = next(iter(requests), "")
        for owner, calls in requests.items():
            for group in series(calls):
                full = name if owner == main else f"{name}/{owner or 'main'}"
                _, conversation = group.conversation(full)
                about = meta if owner == main else {**meta, "parent": name}
                yield self.place, replace(conversation, messages=in_order(conversation.messages), meta=about)
        if not requests:
            history = History(problems)
            for at, message in enumerate(self.each("messages")):
                with problems.collect():
                    history.add(self._message(self._resolved(message), f"m{at}"), message.place)
            if history.messages:
                yield self.place, Conversation(name, history.in_order(), meta=meta)

    def _follow(self, kind: str, event: Fields) -> None:
        """Enter or leave the span or step that an event begins or ends."""
        if kind == "span_begin" and event.text("id"):
            self._spans[event.text("id")] = event
        elif kind == "step" and event.at("action") == "begin":
            self._steps.append(event.text("name") if event.at("type") in _OWN else "")
        elif kind == "step" and self._steps:
            self._steps.pop()

    def _owner(self, span: str) -> str:
        """Return the name of the innermost agent or scorer around an event; empty if there is none."""
        seen: set[str] = set()
        while span in self._spans and span not in seen:
            seen.add(span)
            around = self._spans[span]
            if around.at("type") in _OWN:
                return around.text("name|type")
            span = around.text("parent_id")
        return next((name for name in reversed(self._steps) if name), "")

    def _resolved(self, fields: Fields) -> Fields:
        """Return a value with the texts that stand among the attachments. Raises RecordingError if it is too deep."""

        def resolved(value: Any) -> Any:
            if isinstance(value, str):
                return self._attachments.get(value[len(_REFERENCE) :], value) if value.startswith(_REFERENCE) else value
            if isinstance(value, list):
                return [resolved(part) for part in value]
            if isinstance(value, dict):
                # `call` repeats request and response as they were sent
                return {name: resolved(part) for name, part in value.items() if name != "call"}
            return value

        try:
            return Fields(resolved(fields.record), fields.place)
        except RecursionError:
            raise RecordingError(fields.place, "nested too deep", "flatten it") from None

    def _request(self, event: Fields) -> LoggedRequest | None:
        """Return a call; None if it was not answered."""
        if not event.typed("output.choices", LIST):
            return None
        place, output = event.place, event.place.below("output")
        sent = enumerate([*(event.typed("input", LIST) or ()), *self._pooled(event)])
        messages = tuple(self._message(Fields(sent, place.below(f"input[{at}]")), f"m{at}") for at, sent in sent)
        started, finished = iso_time(event, "timestamp"), iso_time(event, "completed")
        took = event.typed("output.time", float)
        if finished is None and started is not None and took is not None and took >= 0:
            finished = started + took
        provider, _, asked = event.text("model").rpartition("/")
        reported, model = event.typed("output.usage", OBJECT), event.text("output.model") or asked
        cost = dollars((reported or {}).get("total_cost"), output.below("usage.total_cost"), self._problems)
        call = Call(
            model,
            provider.partition("/")[0],
            usage(reported, output.below("usage"), self._problems, cost, _has_whole_prompt(reported)),
            started,
            effort=effort(event.at("config.reasoning_effort"), event.at("config.reasoning_tokens")),
            stop=event.text("output.choices.0.stop_reason"),
            requested=other_than(model, asked),
            error=event.text("output.error"),
        )
        said = Fields(event.needed("output.choices.0.message", OBJECT), output.below("choices[0].message"))
        answer = replace(self._message(said, f"m{len(messages)}"), time=finished, call=call)
        tools = event.typed("tools", list[dict[str, Any]]) or ()
        return LoggedRequest(place, messages, answer, tuple(map(tool, tools)))

    def _pooled(self, event: Fields) -> Iterator[Any]:
        """Yield the messages of a request that stand in the sample's pool."""
        place = event.place.below("input_refs")
        for first, end in event.typed("input_refs", list[tuple[int, int]]) or ():
            if not 0 <= first <= end <= len(self._pool):
                what = f"messages {first} to {end} of a pool of {len(self._pool)}"
                raise RecordingError(place, what, "correct it, or leave this event out")
            yield from (self._resolved(Fields(message, place)).record for message in self._pool[first:end])

    def _message(self, message: Fields, name: str) -> Message:
        place, role = message.place, role_of(message.needed("role", str), message.place)
        content = message.typed("content", str | list[dict[str, Any] | str])  # type: ignore[arg-type]
        if isinstance(content, list):  # reasoning stands under its own name
            content = [
                {**block, "text": block.get("reasoning")} if isinstance(block, dict) and "reasoning" in block else block
                for block in content
            ]
        text, media, thinking = texts(content, place.below("content"), self._problems)
        if message.at("error") is not None:  # it is sent in the place of the result
            text = message.text("error.message")
        calls = (
            ToolCall(call.needed("id", str), call.needed("function", str), as_text(call.at("arguments") or {}))
            for call in message.each("tool_calls")
        )
        answers, tool_name = message.text("tool_call_id") if role == "tool" else None, message.text("function")
        return Message(name, role, text, tuple(calls), answers, tool_name, thinking=thinking, media=media)


def _has_whole_prompt(reported: dict[str, Any] | None) -> bool:
    """Return whether the total says that `input_tokens` includes what was read from the cache and written to it."""
    names = ("input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
    prompt, output, total, *cached = ((reported or {}).get(name) for name in names)
    if not (isinstance(prompt, int) and isinstance(output, int) and isinstance(total, int)):
        return False
    # Of 100 tokens with 80 cached and 10 of output: a total of 110 includes the cached ones (0 < 80), one of 190 does
    # not (80 < 80 is false).
    return total - output - prompt < sum(count for count in cached if isinstance(count, int))
