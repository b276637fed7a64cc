"""Logs of requests to model APIs with their responses, a call a record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import msgspec

from ..errors import Place, RecordingError
from ..model import Call
from ..source import Problems, decode, records
from . import LIST, OBJECT, Fields, Reader, Recordings, anywhere, as_object
from .exchanges import Exchange, endpoint_of, streamed_response
from .http import HttpExchanges, logged_request
from .messages import decoded_body, iso_seconds, iso_time
from .requests import LoggedCall, Responses, conversations, dollars, series


class _CallLog(Reader):
    """A log with a request and its response in each record: a dialect says where they stand."""

    name: ClassVar[str]

    def pair(self, log: Fields, problems: Problems) -> tuple[Fields, Fields, dict[str, Any]]:
        """Return the request of a record, its response, and what else `logged_request` is to know of the call."""
        raise NotImplementedError

    def requests(self, files: Sequence[Path], problems: Problems) -> Iterator[LoggedCall]:
        """Yield the calls of some files, each response once."""
        responses = Responses(problems)
        for path in files:
            with problems.collect():  # the file has no records; the others of its folder may
                for place, raw in records(path, problems):
                    with problems.collect():
                        asked, answered, about = self.pair(Fields(decoded_body(raw, place), place), problems)
                        if responses.new(answered.text("id"), answered.place, answered.record):
                            yield logged_request(asked, answered, responses, self.name, **about)


class AnthropicMessages(_CallLog):
    """Anthropic Messages API requests: `{system, tools, messages, …}`, or logs of them, `{"request", "response"}`.

    Source: docs.anthropic.com/en/api/messages. One JSON object, an array, or JSON Lines; requests of one file that
    extend each other are one conversation. Cache breakpoints of a request (`cache_control`) are stored with its answer,
    so only logs have them. A message with several marked blocks gets one breakpoint, after it; a mark on the whole
    request is one after its last message. A block `compaction` holds the summary by which the API replaces all messages
    before it, and `usage.iterations` the requests of a response that is several. The form has no times. Sampling
    options and headers are not read, images only counted.
    """

    about, name = "Anthropic Messages API requests, alone or as {request, response} logs", "anthropic_messages"
    shapes = (
        *anywhere(
            (".messages", ".messages[].role", ".system"),
            (".messages", ".messages[].role", ".tools[].input_schema"),
            (".messages", ".messages[].role", ".messages[].content[].type", ".messages[].content[].tool_use_id"),
            under=("", "[]", ".request", "[].request"),
        ),
        *anywhere((".request.messages[].role", ".response.content", ".response.stop_reason")),
    )

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            yield from conversations(self.requests([path], problems), path.stem)

    def pair(self, log: Fields, problems: Problems) -> tuple[Fields, Fields, dict[str, Any]]:  # noqa: ARG002
        asked, answered = log, Fields({}, log.place)
        if log.typed("request", OBJECT) is not None:
            asked = Fields(log.at("request"), log.below("request"))
            answered = Fields(log.typed("response", OBJECT) or {}, log.below("response"))
        asked.needed("messages", LIST)
        return asked, answered, {"call": Call(provider="anthropic")}


_OPTIONS = ("tools", "thinking", "reasoning_effort")


class LitellmLog(_CallLog):
    """LiteLLM request logs as OpenHands writes them, a call a file: `{messages, response, kwargs, timestamp, cost}`.

    Source: github.com/OpenHands/OpenHands, `llm_completions/<task>/*.json`. Each request repeats the messages before
    it, so a folder's files make one conversation; where the list starts again, the next begins (`<folder>`,
    `<folder>.2` …). `timestamp` is when the answer was complete (`response.created` is the same in whole seconds), so
    only answers have a time, and no call has a start. `cache_control` stands on a content block, or on the message if
    that is a tool's; a message with several marked blocks gets one breakpoint, after it. `cost` is LiteLLM's estimate,
    which in that version charged cached tokens in full. Headers and keys (`kwargs.extra_headers` …) are never read.
    """

    about, name = "LiteLLM request logs, one call a file (OpenHands' llm_completions)", "litellm_log"
    shapes = (frozenset({".messages", ".messages[].role", ".response", ".response.choices"}),)
    folder = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        if files:
            ordered = sorted(files, key=_first_stamp)
            folder = files[0].resolve().parent
            yield from conversations(self.requests(ordered, problems), folder.name, str(files[0].parent))

    def pair(self, log: Fields, problems: Problems) -> tuple[Fields, Fields, dict[str, Any]]:
        log.needed("messages", LIST)
        log.needed("response.choices", LIST)
        options = {name: log.at(f"kwargs.{name}") for name in _OPTIONS}
        asked = Fields({"messages": log.at("messages"), **options}, log.place)
        time, cost = log.typed("timestamp", float), dollars(log.at("cost"), log.below("cost"), problems)
        answered = Fields(log.at("response"), log.below("response"))
        return asked, answered, {"call": Call(), "time": time, "cost": cost}


class _Stamp(msgspec.Struct):  # the rest is not decoded
    timestamp: float | None = None


def _first_stamp(path: Path) -> float:
    """Return the time of a file's first answer. A damaged file gives 0; its errors come when it is read."""
    try:
        for place, raw in records(path, Problems()):
            return decode(raw, _Stamp, place).timestamp or 0.0
    except RecordingError:
        pass
    return 0.0


_EPISODE = re.compile(r"episode-(\d+)")


class TerminalBench(_CallLog):
    """Terminal-Bench trials: LiteLLM's record of each call, `<trial>/agent-logs/episode-<n>/debug.json`.

        {model, messages, original_response: the provider's response as JSON text, optional_params, start_time}

    Source: github.com/laude-institute/terminal-bench, `terminal_bench/llms/lite_llm.py`, by its code; tested on written
    examples alone. Its agents that call models through LiteLLM (Terminus) write it. Requests of one trial that extend
    each other are one conversation, with the trial's name; `prompt.txt` and `response.txt` beside a record repeat it.

    - The response is in the provider's own form: OpenAI's, which most speak, or Anthropic's.
    - `start_time` has no zone and is taken as UTC. Keys and headers (`litellm_params` …) are never read.
    - Newer runs of the benchmark (Harbor) are ATIF trajectories.
    """

    about, name = "Terminal-Bench trials (LiteLLM's records, one call a file)", "terminal_bench"
    shapes = (
        frozenset({".messages", ".messages[].role", ".model", ".original_response", ".litellm_call_id"}),
        frozenset({".messages", ".messages[].role", ".model", ".original_response", ".optional_params"}),
    )
    folder = True

    @staticmethod
    def folder_of(path: Path) -> Path:
        """Return the folder of a record's trial; the folder it stands in if that is no episode."""
        folder = path.parent
        return next((above.parent for above in folder.parents if above.name == "agent-logs"), folder)

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        if files:
            trial = self.folder_of(files[0])
            episodes = ((_EPISODE.fullmatch(path.parent.name), path) for path in files)
            ordered = sorted(((int(name[1]) if name else 0, path) for name, path in episodes), key=itemgetter(0))
            logged = self.requests([path for _, path in ordered], problems)
            yield from conversations(logged, trial.name, str(trial))

    def pair(self, log: Fields, problems: Problems) -> tuple[Fields, Fields, dict[str, Any]]:  # noqa: ARG002
        provider, _, model = log.needed("model", str).rpartition("/")
        log.needed("messages", LIST)
        where, text = log.below("original_response"), log.needed("original_response", str)
        answered = Fields(decoded_body(text.encode(), where), where)
        options = {name: log.at(f"optional_params.{name}") for name in _OPTIONS}
        asked = Fields({"messages": log.at("messages"), **options}, log.place)
        provider = log.typed("custom_llm_provider", str) or provider
        return asked, answered, {"call": Call(model, provider, started=iso_time(log, "start_time"))}


_BEDROCK = "https://bedrock-runtime.amazonaws.com/model"
_GEMINI = "https://generativelanguage.googleapis.com/v1beta/models"


class ApiCalls(Reader):
    """Logged calls of model APIs: requests with their responses, on lines, in an array, or one in a file.

        {request, response}   OpenAI's chats and Responses, Gemini's contents, Bedrock's Converse, Ollama's chats; those
                              of one file that extend each other are one conversation
        {schemaType: "ModelInvocationLog", timestamp, requestId, modelId, operation,
          input: {inputBodyJson: request}, output: {outputBodyJson: response}}
                              Bedrock's log of invocations, which it writes to S3 and CloudWatch

    Sources: the APIs' references, docs.aws.amazon.com/bedrock (model-invocation-logging), github.com/ollama/ollama
    `docs/api.md`; tested on written examples alone. Requests and responses are read as those of `http.py`. Pairs of
    Anthropic's are read by `anthropic_messages`, requests alone by `provider_requests`.

    - The provider of a chat is not recorded: whoever speaks OpenAI's form may have answered.
    - Bodies over 100 KB are objects of their own in S3 (`inputBodyS3Path`): such calls are counted in the notes.
    """

    about = "{request, response} logs of OpenAI, Gemini, Bedrock and Ollama; Bedrock's invocation log"
    shapes = anywhere(
        (".request", ".response", ".request.messages[].role", ".response.choices"),
        (".request", ".response", ".request.messages[].role", ".response.output.message.role", ".response.stopReason"),
        (".request", ".response", ".request.messages[].role", ".response.message.role", ".response.done"),
        (".request", ".response", ".request.contents", ".response.candidates"),
        (".request", ".response", ".request.input", ".response.output"),
        (".schemaType", ".modelId", ".input", ".output"),
    )

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            yield from conversations(_api_requests(path, problems), path.stem)


def _api_requests(path: Path, problems: Problems) -> Iterator[LoggedCall]:
    recording = HttpExchanges(problems)
    for place, raw in records(path, problems):
        with problems.collect():
            record = decode(raw, OBJECT, place)
            exchange = _invocation(record, place) if "modelId" in record else _pair(record, place)
            if exchange is None:
                problems.unknown("api_calls: call without its request or its response", place)
            else:
                yield from recording.logged(exchange)


def _pair(record: dict[str, Any], place: Place) -> Exchange | None:
    request, response = as_object(record.get("request")), as_object(record.get("response"))
    names = place.below("request"), place.below("response")
    if not request or not response:
        return None
    model = quote(str(request.get("modelId") or request.get("model") or response.get("modelVersion") or ""))
    if "contents" in request:
        return _exchange(f"{_GEMINI}/{model}:generateContent", "generate", request, response, *names)
    if "input" in request:
        return _exchange("https://api.openai.com/v1/responses", "responses", request, response, *names)
    if "done" in response:  # Ollama's
        counts = {"prompt_tokens": response.get("prompt_eval_count"), "completion_tokens": response.get("eval_count")}
        choice = {"message": response.get("message"), "finish_reason": response.get("done_reason")}
        response = {"choices": [choice], "model": response.get("model") or "", "usage": counts}
    elif "choices" not in response:
        return _exchange(f"{_BEDROCK}/{model}/converse", "converse", request, response, *names)
    return _exchange("", "chat", request, response, *names)


def _invocation(record: dict[str, Any], place: Place) -> Exchange | None:
    """Return a call of Bedrock's log. The events of a streamed response are those of the model's own API."""
    request = as_object(as_object(record.get("input")).get("inputBodyJson"))
    names = place.below("input.inputBodyJson"), place.below("output.outputBodyJson")
    response = as_object(record.get("output")).get("outputBodyJson")
    if isinstance(response, list):
        response = streamed_response([msgspec.json.encode(event) for event in response], names[1])
    if not request or not isinstance(response, dict):
        return None
    endpoint = "converse" if str(record.get("operation")).startswith("Converse") else "invoke"
    url, time = f"{_BEDROCK}/{quote(str(record['modelId']))}/{endpoint}", record.get("timestamp")
    started = iso_seconds(time, place.below("timestamp")) if isinstance(time, str) else None
    return _exchange(url, endpoint, request, response, *names, started)


def _exchange(
    url: str, endpoint: str, request: Any, response: Any, asked: Place, answered: Place, started: float | None = None
) -> Exchange:
    bodies = msgspec.json.encode(request), msgspec.json.encode(response)
    return Exchange(url, endpoint, *bodies, asked, answered, started, None)


_API = "https://api.openai.com"


class OpenAIBatch(Reader):
    """OpenAI's batches: JSON Lines of requests, and those of their responses, joined by `custom_id`.

        {custom_id, method, url, body: request}                                the input
        {id, custom_id, response: {status_code, request_id, body}, error}      the output

    Source: platform.openai.com/docs/guides/batch; tested on written examples alone. The files of a folder are read
    together. Requests and responses are those of `http.py`. Each is a conversation of its own, named by its
    `custom_id`. Requests and responses without the other are counted in the notes, and so are those that failed.
    """

    about = "OpenAI batches (JSON Lines of requests and of responses)"
    shapes = (frozenset({".custom_id", ".url", ".body"}), frozenset({".custom_id", ".response", ".response.body"}))
    folder = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        asked: dict[str, Fields] = {}
        answered: dict[str, Fields] = {}
        for path in files:
            with problems.collect():
                for place, raw in records(path, problems):
                    with problems.collect():
                        line = Fields(decode(raw, OBJECT, place), place)
                        name, status = line.needed("custom_id", str), line.typed("response.status_code", int)
                        if line.at("body") is not None:
                            asked.setdefault(name, line)
                        elif line.at("response") is not None and status in (None, 200) and not line.at("error"):
                            line.needed("response.body", OBJECT)
                            answered.setdefault(name, line)
                        else:
                            problems.unknown("openai_batch: request that failed", place)
        exchanges = HttpExchanges(problems)
        for name, line in asked.items():
            url = line.text("url")
            endpoint = endpoint_of(url)
            if name not in answered or endpoint is None:
                problems.unknown("openai_batch: request without a response of a model", line.place)
                continue
            told = answered.pop(name)
            places = line.place.at("body"), told.place.at("response.body")
            answer = {**told.needed("response.body", OBJECT), "service_tier": "batch"}  # the bodies have `default`
            exchange = _exchange(_API + url, endpoint, line.at("body"), answer, *places)
            for group in series(exchanges.logged(exchange)):
                yield group.conversation(name)
        for told in answered.values():
            problems.unknown("openai_batch: response without its request", told.place)
