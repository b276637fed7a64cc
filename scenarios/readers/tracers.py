"""Tracers and gateways whose spans are plain objects: each dialect says where the parts of a model call stand.

A path such as `metadata.model` goes down by keys and numbers, into JSON that stands as text too; of several, separated
by `|`, the first that holds something counts. `Tracer.span` is the one reader of them all, and a dialect overrides only
what is no matter of places. All files of a folder are read together. What is not declared is never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import msgspec

from ..errors import Place
from ..model import Call
from ..source import Problems, as_text, convert, decode, loads
from . import OBJECT, Fields, Reader, Recordings, anywhere, as_object, decoded, text_of
from .messages import epoch_seconds, iso_seconds
from .otel import AGENT, offered_tools, reported_counts, seconds_of, span_kind, tree_of
from .prompts import exchange
from .requests import dollars, effort, other_than, tier, usage
from .spans import CACHED, Kind, TraceSpan, conversations, counted, number, sound, span_records, spans_of
from .stored_chats import metadata_counts

_Objects = Iterator[tuple[Place, dict[str, Any]]]


@dataclass(frozen=True)
class Tracer(Reader):
    """A dialect. Every text here is the path of a part of the span; empty = the dialect does not have it."""

    folder = True
    name: ClassVar[str]
    pages: ClassVar[tuple[str, ...]] = ()  # names of the lists in a page of spans

    id, trace, parent = "id", "trace_id", "parent_id"
    ids: ClassVar[Any] = str  # type of these three
    kind = ""
    kinds: ClassVar[Mapping[str, Kind]] = {"": "llm"}
    """Kinds of spans by what stands at `kind`; all others are of kind `other`."""
    agent = agents_name = thread = ""  # a span of kind `agent` has its name at `agents_name`
    start = end = first_token = ""
    prompt = answer = tools = ""
    names: ClassVar[tuple[str, str] | None] = None  # names of prompt and answer in errors; None = their paths
    model = requested = provider = effort = tier = request_id = response = ""
    usage = counts = cost = ""
    """Usage as a provider reports it, or else prompt, answer, read, written, total and reasoning tokens
    (`spans.counted`), with blanks between them."""
    cached = "unknown"  # where these have the cached tokens, as `spans.counted` says
    counted_at = ""  # field that errors name for bad counts; empty = that which holds the first of them
    error = ""  # text of an error; a call that has one and no answer failed
    failures: ClassVar[tuple[str, ...]] = ()
    """Paths of the status, and the values that mean failure; empty = an error does."""
    stopped = ""  # stop reason where it does not stand in the answer
    from_cache = ""  # mark of an answer from a cache of answers: no model was asked, nobody was billed
    wait, unit = "", 1.0  # else than `first_token`: the time from the start to it, in parts of a second

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from conversations(spans_of(files, self.spans, problems), problems, self.name)

    def spans(self, path: Path, problems: Problems) -> Iterator[TraceSpan]:
        """Yield the spans of a file; one that cannot be read is a problem."""
        for place, record in self.records(path, problems):
            yield from sound(partial(self.span, Fields(record, place), problems), place, problems)

    def records(self, path: Path, problems: Problems) -> _Objects:
        """Yield the objects of a file that are spans."""
        for place, raw in span_records(path, problems):
            with problems.collect():
                yield from self.unpacked(decode(raw, OBJECT, place), place, problems)

    def unpacked(self, record: dict[str, Any], place: Place, problems: Problems) -> _Objects:
        """Yield the spans of a record: those in the lists of `pages` where it is a page of an API, else the record."""
        pages = [name for name in self.pages if isinstance(record.get(name), list)]
        if not pages:
            yield place, record
        for page, at, one in ((name, *numbered) for name in pages for numbered in enumerate(record[name])):
            where = place.below(f"{page}[{at}]")
            with problems.collect():
                yield where, convert(one, OBJECT, where)

    def span(self, fields: Fields, problems: Problems) -> TraceSpan:
        """Return one span, a model call with what was asked and answered. Raises RecordingError."""
        place, kind = fields.place, self.kind_of(fields)
        own = fields.needed(self.id, self.ids)
        trace, parent = (str(fields.typed(paths, self.ids) or "") for paths in (self.trace, self.parent))
        started, ended = self.moment(self.start, fields), self.ended(fields)
        agent, thread = self.agent_of(fields, kind), self.thread_of(fields)
        if kind != "llm":
            return TraceSpan(place, str(own), trace, parent, kind, agent, thread, ended, call=Call(started=started))
        first = self.prompt.partition("|")[0], self.answer.partition("|")[0]
        prompt, answer, tools = (fields.get(paths) for paths in (self.prompt, self.answer, self.tools))
        said = exchange(prompt, answer, place, problems, self.name, tools=tools, names=self.names or first)
        model, failed, wait = fields.text(self.model), self.failed(fields), number(fields.at(self.wait))
        cost = dollars(number(fields.get(self.cost)), place.below(self.cost.partition("|")[0]), problems)
        reported, where = self.reported(fields)
        if self.had_answer(fields):
            problems.unknown(f"{self.name}: usage of an answer from a cache of answers, which nobody billed", place)
            reported = cost = None
        call = Call(
            model=model,
            provider=fields.text(self.provider),
            usage=usage(reported, place.below(where), problems, cost),
            started=started,
            effort=effort(*map(fields.at, self.effort.split("|"))),
            stop="error" if failed and said.answer is None else fields.text(self.stopped),
            request_id=fields.text(self.request_id),
            tier=tier(*map(as_object, map(fields.at, self.tier.split("|")))),
            requested=other_than(model, fields.text(self.requested) or model),
            first_token=_after(started, wait, self.unit) or self.moment(self.first_token, fields),
            error=as_text(fields.get(self.error) or ""),
        )
        response, cached = fields.text(self.response), reported.get(CACHED, "") if isinstance(reported, dict) else ""
        return TraceSpan(place, str(own), trace, parent, kind, agent, thread, ended, said, call, response, cached)

    def kind_of(self, fields: Fields) -> Kind:
        """Return the kind of a span."""
        return self.kinds.get(fields.text(self.kind), "other")

    def agent_of(self, fields: Fields, kind: Kind) -> str:
        """Return the agent that a span is, or that its call was made by."""
        return fields.text(self.agents_name if kind == "agent" else self.agent)

    def moment(self, paths: str, fields: Fields) -> float | None:
        """Return a time in seconds; by default it stands as ISO text, or as a number of any unit."""
        path = fields.first(paths)
        if isinstance(time := number(fields.at(path)), (int, float)):
            return epoch_seconds(time, fields.below(path))
        time = fields.typed(path, str)
        return None if time is None else iso_seconds(time, fields.place.below(path))

    def ended(self, fields: Fields) -> float | None:
        """Return when the span ended."""
        return self.moment(self.end, fields)

    def thread_of(self, fields: Fields) -> str:
        """Return the session that a span names; empty without one."""
        return fields.text(self.thread)

    def failed(self, fields: Fields) -> bool:
        """Return whether the call failed, if nothing was answered."""
        paths, *values = self.failures or (self.error,)
        return any(fields.at(path) in values for path in paths.split("|")) if values else bool(fields.get(paths))

    def had_answer(self, fields: Fields) -> bool:
        """Return whether the answer came from a cache of answers."""
        return str(number(fields.get(self.from_cache))).lower() not in ("none", "", "0", "false", str(UUID(int=0)))

    def reported(self, fields: Fields) -> tuple[Any, str]:
        """Return the usage of a call, and the field that errors name."""
        paths = self.counts.split()
        where = self.counted_at or (self.usage.partition("|")[0] or paths[0].rpartition(".")[0])
        return fields.get(self.usage) or counted(*map(fields.at, paths), cached_at=self.cached), where


def _after(started: float | None, wait: Any, unit: float = 1.0) -> float | None:
    """Return the time so long after the start, if both were recorded."""
    return started + wait / unit if started is not None and isinstance(wait, (int, float)) else None


def _with(span: TraceSpan, **changes: Any) -> TraceSpan:
    """Return a span whose call has other fields."""
    return replace(span, call=msgspec.structs.replace(span.call, **changes))


class Braintrust(Tracer):
    """Braintrust's rows, of its API (`{events}`, `{data}`) and exports.

    Source: www.braintrust.dev/docs/reference/api, github.com/braintrustdata/braintrust-sdk; without a recorded sample.
    Whether `prompt_tokens` includes what was read from the cache differs by provider and version (`spans.counted`).
    """

    about = "Braintrust logs (API JSON, exports as JSON or JSON Lines)"
    shapes = anywhere(
        (".span_id", ".root_span_id", ".span_attributes", ".input", ".output"), under=("", "[]", ".events[]", ".data[]")
    )
    name, pages = "braintrust", ("events", "data")
    id, trace, parent = "span_id", "root_span_id", "span_parents.0"
    kind, kinds = "span_attributes.type", {"llm": "llm", "tool": "tool"}
    thread = "|".join(
        f"metadata.{key}" for key in ("session_id", "thread_id", "conversation_id", "sessionId", "threadId")
    )
    start, end = "metrics.start", "metrics.end"
    prompt, answer, tools = "input", "output", "metadata.tools"
    model, provider, effort, error = "metadata.model", "metadata.provider", "metadata.reasoning_effort", "error"
    counts = (
        "metrics.prompt_tokens metrics.completion_tokens metrics.prompt_cached_tokens "
        "metrics.prompt_cache_creation_tokens metrics.tokens metrics.completion_reasoning_tokens"
    )
    cost, from_cache, wait = "metrics.estimated_cost", "metrics.cached", "metrics.time_to_first_token"


class Weave(Tracer):
    """W&B Weave's calls, of its API (`{calls}`, JSON Lines) and exports.

    Source: github.com/wandb/weave, `weave/trace_server/trace_server_interface.py`; without a recorded sample. A call
    with usage is a model call, but Weave adds the usage of a call to those around it: the innermost counts. Usage is
    that of the response, as the provider reported it, else that of the summary.
    """

    about = "W&B Weave calls (API or export, JSON or JSON Lines)"
    shapes = anywhere((".id", ".trace_id", ".op_name", ".started_at", ".inputs"), under=("", "[]", ".calls[]"))
    name, pages, thread = "weave", ("calls",), "thread_id"
    start, end = "started_at", "ended_at"
    prompt, answer, error = "inputs", "output", "exception"
    model, request_id, tier, effort = "output.model", "output.id", "output", "inputs.reasoning_effort|inputs.reasoning"

    def kind_of(self, fields: Fields) -> Kind:
        return "llm" if as_object(fields.at("summary.usage")) else "other"

    def span(self, fields: Fields, problems: Problems) -> TraceSpan:
        span, models = super().span(fields, problems), list(as_object(fields.at("summary.usage")))
        return _with(span, model=models[0]) if models and not span.call.model else span

    def reported(self, fields: Fields) -> tuple[Any, str]:
        [(model, summed), *others] = as_object(fields.at("summary.usage")).items()
        if others:
            return None, ""  # the sum over several models is of no call, and this one is around them
        told = map(fields.at, ("output.usage", "output.usage_metadata", "output.usageMetadata"))
        own = next((counts for counts in told if isinstance(counts, dict)), None)
        return (own, "output.usage") if own else (summed, f"summary.usage.{model}")


class Helicone(Tracer):
    """Requests that Helicone logged, with their bodies: its exports (JSON, JSON Lines, CSV) and the answers of its API.

    Source: docs.helicone.ai (`/v1/request/query-clickhouse`), `npx @helicone/export --include-body`; without a recorded
    sample. The session is the thread. Usage is that of the response, else the columns.
    """

    about = "Helicone requests with their bodies (exports, API)"
    shapes = anywhere(
        (".request_id", ".request_created_at", ".request_body", ".response_body"), under=("", "[]", ".data[]")
    )
    name, pages = "helicone", ("data",)
    id, trace, parent = "request_id", "request_id", ""
    start, end = "request_created_at", "response_created_at"
    prompt, answer = "request_body", "response_body"
    model, requested = "response_model|model|request_model", "request_model"
    usage = "response_body.usage|response_body.usageMetadata"
    counts = "prompt_tokens completion_tokens prompt_cache_read_tokens prompt_cache_write_tokens total_tokens"
    cost, request_id, tier = "costUSD", "response_body.id", "response_body|response_body.usage"
    from_cache, wait, unit = "cache_reference_id", "time_to_first_token", 1000.0

    def thread_of(self, fields: Fields) -> str:
        named = {**as_object(fields.at("properties")), **as_object(fields.at("request_properties"))}
        return text_of(next((named[key] for key in named if key.lower() == "helicone-session-id"), ""))

    def failed(self, fields: Fields) -> bool:
        status = number(fields.at("response_status"))
        return isinstance(status, int) and not 0 <= status < 400

    def span(self, fields: Fields, problems: Problems) -> TraceSpan:
        return _with(super().span(fields, problems), provider=fields.text("provider").lower())


class LitellmProxy(Tracer):
    """Spend logs of LiteLLM's proxy: rows of its table `LiteLLM_SpendLogs`, as `/spend/logs` or an export gives them.

    Source: github.com/BerriAI/litellm, `litellm/proxy/spend_tracking/spend_tracking_utils.py`; on written examples
    alone. Prompts are there with `store_prompts_in_spend_logs`, in `proxy_server_request`, in older versions in
    `messages`. What LiteLLM itself logs to files and buckets (`StandardLoggingPayload`) is read alike. The proxy
    cuts long texts: such a row, what the proxy answered from its own cache, and what is no chat are counted in the
    notes. Keys, users and addresses are never read.
    """

    about = "LiteLLM proxy spend logs (rows of LiteLLM_SpendLogs)"
    shapes = anywhere(
        (".request_id", ".call_type", ".spend", ".startTime", ".response"),
        (".id", ".call_type", ".response_cost", ".startTime", ".response", ".messages"),
        under=("", "[]", ".data[]"),
    )
    name, pages = "litellm_proxy", ("data",)
    id, trace, parent, thread = "request_id|id", "request_id|id", "", "session_id|metadata.session_id|trace_id"
    start, end, first_token = "startTime", "endTime", "completionStartTime"
    prompt, answer = "proxy_server_request.body|proxy_server_request|messages", "response"
    names = ("", "response")
    model, provider, cost = "model", "custom_llm_provider", "spend|response_cost"
    usage = "metadata.usage_object|response.usage"
    counts = (
        "prompt_tokens completion_tokens metadata.additional_usage_values.cache_read_input_tokens "
        "metadata.additional_usage_values.cache_creation_input_tokens total_tokens"
    )
    request_id, tier = "response.id|request_id|id", "response|response.usage"
    error = "metadata.error_information.error_message|error_str"
    failures = ("status|metadata.status", "failure")

    def kind_of(self, fields: Fields) -> Kind:
        others = ("embedding", "rerank", "moderation", "image", "speech", "transcription")
        is_chat = not any(kind in fields.text("call_type") for kind in others)
        return "llm" if is_chat and str(fields.at("cache_hit")).lower() != "true" else "other"

    def span(self, fields: Fields, problems: Problems) -> TraceSpan:
        if self.kind_of(fields) == "other":
            is_cached = str(fields.at("cache_hit")).lower() == "true"
            what = "answer from the proxy's own cache" if is_cached else f"call of type {fields.at('call_type')!r}"
            problems.unknown(f"litellm_proxy: {what}", fields.place)
        elif any("litellm_truncated" in as_text(fields.get(part)) for part in (self.prompt, self.answer)):
            problems.unknown("litellm_proxy: request or response that the proxy cut", fields.place)
        return super().span(fields, problems)


class OpenAIAgents(Tracer):
    """Traces of OpenAI's Agents SDK: traces and spans as its exporters write them, JSON Lines or batches `{data}`.

    Source: github.com/openai/openai-agents-python, `src/agents/tracing`; without a recorded sample. A span of type
    `generation` has its whole prompt. The SDK's own exporter leaves out the prompts of spans of type `response`, which
    the notes count; those that an exporter adds are read. A trace is the root of its spans, its group is the thread.
    """

    about = "OpenAI Agents SDK traces (spans as its exporters write them)"
    shapes = anywhere((".object", ".id", ".trace_id", ".span_data", ".span_data.type"), under=("", "[]", ".data[]"))
    name, pages = "openai_agents", ("data",)
    parent, thread = "parent_id|trace_id", "group_id"
    kind, agents_name = "span_data.type", "span_data.name"
    kinds: ClassVar = {"generation": "llm", "response": "llm", "agent": "agent", "function": "tool"}
    start, end = "started_at", "ended_at"
    prompt, answer, tools = "span_data.input", "span_data.output|span_data.response", "span_data.model_config.tools"
    model, error = "span_data.model|span_data.response.model", "error"
    request_id, response, tier = "span_data.response.id", "span_data.response_id", "span_data.response"
    usage, effort = "span_data.usage|span_data.response.usage", "span_data.model_config.reasoning.effort"

    def span(self, fields: Fields, problems: Problems) -> TraceSpan:
        if fields.at("object") == "trace":
            fields.record |= {"trace_id": fields.at("id"), "parent_id": ""}
        provider = "openai" if fields.at("span_data.type") == "response" else ""
        return _with(super().span(fields, problems), provider=provider, error="")


class DatadogLLM(Tracer):
    """Spans of Datadog's LLM Observability, as they are sent (`{data: {attributes: {spans}}}`, `{spans}`) or exported.

    Source: docs.datadoghq.com/llm_observability, github.com/DataDog/dd-trace-py, `ddtrace/llmobs`; without a recorded
    sample. Exported spans have the fields of `meta` beside the others, under `attributes`, and their kind in
    `span_kind`. Input tokens include what was read from a cache.
    """

    about = "Datadog LLM Observability spans (as sent, or from the Export API)"
    shapes = (
        *anywhere(
            (".span_id", ".trace_id", ".parent_id", ".start_ns", ".meta"),
            under=("", "[]", ".spans[]", "[].spans[]", ".data.attributes.spans[]"),
        ),
        *anywhere(
            (".span_id", ".trace_id", ".parent_id", ".span_kind", ".input"),
            under=(".data[].attributes", "[].attributes", ".attributes"),
        ),
    )
    name, id, ids, thread, agents_name = "datadog_llm", "span_id", str | int, "session_id", "name"
    kind, kinds = "span_kind|kind|dotted_kind|span.kind", {"llm": "llm", "agent": "agent", "tool": "tool"}
    start, failures = "start_ns", ("status", "error")
    prompt, answer, tools = "input.messages|input.value", "output.messages|output.value", "tool_definitions"
    model, provider = "model_name", "model_provider"
    counts = (
        "metrics.input_tokens metrics.output_tokens metrics.cache_read_input_tokens metrics.cache_write_input_tokens "
        "metrics.total_tokens metrics.reasoning_output_tokens"
    )
    cached = "within"

    def unpacked(self, record: Any, place: Place, problems: Problems, session: str = "") -> _Objects:
        """Yield the spans in a request to the API, in an answer of it, or the span itself; with the session around."""
        with problems.collect():
            held = convert(record, OBJECT, place)
            session = text_of(held.get("session_id")) or session
            for name in ("data", "spans", "attributes"):
                inner = held.get(name)
                if isinstance(inner, list):
                    for at, one in enumerate(inner):
                        yield from self.unpacked(one, place.below(f"{name}[{at}]"), problems, session)
                    return
                if isinstance(inner, dict) and name != "spans":
                    yield from self.unpacked(inner, place.below(name), problems, session)
                    return
            root = {"parent_id": ""} if str(held.get("parent_id")) in ("undefined", "0") else {}
            whole = {**held, **as_object(held.get("meta")), **root, "session_id": session}
            yield place, {**whole, "dotted_kind": whole.get("span.kind")}

    def moment(self, paths: str, fields: Fields) -> float | None:
        return seconds_of(fields.at(paths), fields.place.below(paths))

    def ended(self, fields: Fields) -> float | None:
        return _after(self.moment(self.start, fields), fields.typed("duration", float), unit=1e9)


class LangSmith(Tracer):
    """Runs of LangSmith, as its API and exports give them, or batches `{post, patch}` of its clients.

    Source: github.com/langchain-ai/langsmith-sdk, `python/langsmith/schemas.py`. A batch posts a run at its start and
    patches it with outputs at its end; both are joined by `id`. Usage is `usage_metadata`, whose input is the whole
    prompt; else that of the wrapped client's response, else the run's own token counts. The cost is LangSmith's own
    estimate. A run's own `session_id` names a project, and is not read.
    """

    about = "LangSmith runs (API JSON, exports as JSON Lines, batches of its clients)"
    shapes = anywhere(
        (".id", ".run_type", ".inputs", ".start_time", ".trace_id"), under=("", "[]", ".runs[]", ".post[]", "[].post[]")
    )
    name, pages, parent = "langsmith", ("runs", "post", "patch"), "parent_run_id"
    kind, kinds = "run_type", {"llm": "llm", "tool": "tool"}
    agent = "extra.metadata.lc_agent_name"
    thread = "extra.metadata.thread_id|extra.metadata.session_id|extra.metadata.conversation_id"
    start, end, first_token = "start_time", "end_time", "first_token_time"
    prompt, answer = "inputs", "outputs"
    tools = "extra.invocation_params.tools|extra.invocation_params.functions"
    model = (
        "outputs.model|message.response_metadata.model_name|outputs.llm_output.model_name|"
        "extra.metadata.ls_model_name|extra.invocation_params.model"
    )
    requested, provider = "extra.invocation_params.model", "extra.metadata.ls_provider"
    effort = "extra.invocation_params.reasoning_effort|extra.invocation_params.reasoning"
    cost, error, response = "total_cost", "error", "outputs.id"
    tier = "outputs|message.response_metadata"
    stopped = "message.response_metadata.finish_reason|message.response_metadata.stop_reason"
    counts = (
        "prompt_tokens completion_tokens prompt_token_details.cache_read - total_tokens "
        "completion_token_details.reasoning"
    )
    cached = "within"

    def records(self, path: Path, problems: Problems) -> _Objects:
        begun: dict[str, tuple[Place, dict[str, Any]]] = {}
        for place, run in super().records(path, problems):
            name = str(run.get("id"))
            if place.field.rpartition(".")[2].startswith("post["):
                begun[name] = place, run
            else:
                first, fields = begun.pop(name, (place, {}))
                yield first, fields | {key: value for key, value in run.items() if value is not None}
        yield from begun.values()

    def span(self, fields: Fields, problems: Problems) -> TraceSpan:
        first = fields.at("outputs.generations")
        while isinstance(first, list):
            first = first[0] if first else None
        message = as_object(as_object(first).get("message"))  # LangChain's, of an answer
        fields.record["message"] = as_object(message.get("kwargs")) or message
        return super().span(fields, problems)

    def had_answer(self, fields: Fields) -> bool:  # LangChain writes this cost for what its own cache answered
        return as_object(fields.get("outputs.usage_metadata|message.usage_metadata")).get("total_cost") == 0

    def reported(self, fields: Fields) -> tuple[Any, str]:
        metadata = fields.get("outputs.usage_metadata|message.usage_metadata")
        if isinstance(metadata, dict):
            return metadata_counts(metadata, fields.at("message.response_metadata.usage")), self.answer
        own = fields.get("outputs.usage|outputs.llm_output.token_usage")
        return own or super().reported(fields)[0], self.answer


class Langfuse(Tracer):
    """Langfuse traces: `{trace, observations}`, a trace of the API with its observations, or lists and lines of either.

    Source: github.com/langfuse/langfuse, `packages/shared/src/domain` and the public API. The export to blob storage
    has the same names with underscores, and traces and observations in files of their own.

    - `metadata` has the span's attributes where it came by OpenTelemetry: tools and names of agents are read from them.
    - The session of the trace, or LangGraph's `thread_id`, is the thread. A trace is the root of its observations.
    - The kinds of tokens in `usageDetails` add up to the total: the prompt is all that is not output. Where they do
      not, what was read from a cache is part of `input`. The cost is Langfuse's own estimate.
    - LangSmith's tracer of the Claude Agent SDK logs `{"content": "role"}` for a prompt of several messages: what the
      prompt was is lost, and each call is a conversation.
    """

    about = "Langfuse traces and observations (API JSON, exports as JSON or JSON Lines)"
    shapes = anywhere(
        (".id", ".traceId", ".type", ".parentObservationId", ".startTime"),
        (".id", ".trace_id", ".type", ".parent_observation_id", ".start_time"),
        # The columns of a table of observations without parents.
        (".id", ".traceId", ".type", ".startTime", ".input"),
        (".id", ".trace_id", ".type", ".start_time", ".input"),
        (".id", ".sessionId", ".timestamp", ".bookmarked", ".tags"),
        (".id", ".session_id", ".timestamp", ".bookmarked", ".tags"),
        under=("", "[]", ".data[]", ".observations[]", "[].observations[]"),
    )
    name, kind, agents_name = "langfuse", "type", "name"
    kinds: ClassVar = {"GENERATION": "llm", "AGENT": "agent", "TOOL": "tool"}
    trace, thread = "traceId|trace_id", "sessionId|session_id|metadata.thread_id"
    parent = f"parentObservationId|parent_observation_id|{trace}"
    start, end = "startTime|start_time", "endTime|end_time"
    first_token = "completionStartTime|completion_start_time"
    prompt, answer, cost = "input", "output", "costDetails.total|cost_details.total"
    tools, failures = "offered", ("level", "ERROR")
    model = "model|providedModelName|provided_model_name"
    request_id, tier = "output.id", "output|output.response_metadata"

    def unpacked(self, record: dict[str, Any], place: Place, problems: Problems) -> _Objects:
        """Yield a trace and its observations, the observations of a page of the API, or a single one."""
        several = next((key for key in ("observations", "data") if isinstance(record.get(key), list)), "")
        root, where = (record, place) if "trace" not in record else (record["trace"], place.below("trace"))
        if "trace" not in record and "type" in record:
            yield place, record
        elif root is not record or several != "data":
            with problems.collect():
                held = convert(root, OBJECT, where)
                yield where, {**held, "traceId": held.get("id"), "parentObservationId": "", "type": "TRACE"}
        for at, one in enumerate(record[several] if several else ()):
            where = place.below(f"{several}[{at}]")
            with problems.collect():
                yield from self.unpacked(convert(one, OBJECT, where), where, problems)

    def kind_of(self, fields: Fields) -> Kind:
        told = span_kind(self._attributes(fields))
        return self.kinds.get(fields.text("type")) or ("other" if told == "llm" else told)

    def agent_of(self, fields: Fields, kind: Kind) -> str:
        return self._attributes(fields).text(AGENT) or (fields.text("name") if kind == "agent" else "")

    def span(self, fields: Fields, problems: Problems) -> TraceSpan:
        attributes = tree_of(fields.at("metadata.attributes"), fields.place)
        fields.record |= {"attributes": attributes.record, "offered": offered_tools(attributes)}
        error = fields.text("statusMessage|status_message") if self.failed(fields) else ""
        span = super().span(fields, problems)
        return _with(span, error=error) if span.kind == "llm" else span

    def reported(self, fields: Fields) -> tuple[Any, str]:
        # Langfuse adds cached tokens that OpenTelemetry's input includes already.
        told = reported_counts(self._attributes(fields))
        if isinstance(told, dict) and any("cache" in name and count for name, count in told.items()):
            return told, "metadata.attributes"
        where, details = "usageDetails", decoded(fields.get("usageDetails|usage_details|usage"))
        if not isinstance(details, dict):
            return details, where
        numbers = {name: count for name, count in details.items() if isinstance(count, int) and name != "total"}
        read, written, thought = (
            next((numbers[key] for key in keys if key in numbers), None) for keys in (_READ, _WRITTEN, _REASONING)
        )
        total = details.get("total")
        # input 20, input_cache_read 80, output 10 and total 110 are kinds that add up: a prompt of 100. With input 100
        # they do not, so the 80 are a part of it.
        if total != sum(numbers.values()):
            counts = counted(details.get("input"), details.get("output"), read, written, total, thought)
            return counts, where
        kinds = ("output", "completion")
        output = sum(count for name, count in numbers.items() if name.startswith(kinds) or name in _REASONING)
        shown = output if "output" in details else None
        return counted(total - output, shown, read, written, total, thought, cached_at="added"), where

    def _attributes(self, fields: Fields) -> Fields:
        return Fields(fields.at("attributes"), fields.place)


_READ = ("input_cache_read", "input_cached_tokens", "cache_read_input_tokens", "prompt_details.cache_read")
_WRITTEN = ("input_cache_creation", "cache_creation_input_tokens", "prompt_details.cache_write")
_REASONING = ("output_reasoning_tokens", "output_reasoning", "reasoning_tokens", "completion_details.reasoning")


class MlflowTraces(Tracer):
    """MLflow traces: `Trace.to_json()`, traces as artifacts, and rows of `mlflow.search_traces`.

        {info: {trace_id, trace_metadata: {"mlflow.trace.session"}}, data: {spans: [{span_id, parent_span_id, name,
          start_time_unix_nano, attributes: {"mlflow.spanType", "mlflow.spanInputs", "mlflow.chat.tokenUsage" …}}]}}
        {spans: […]} · {trace: the first form as text} · MLflow 2: spans {context: {span_id}, parent_id, start_time …}

    Source: github.com/mlflow/mlflow, `mlflow/entities/span.py` and `mlflow/tracing/constant.py` (version 3.17). Each
    attribute is JSON text. Token counts include what was read from and written to a cache.
    """

    checked = "MLflow 3.17"
    about = "MLflow traces (Trace.to_json, trace artifacts, rows of search_traces)"
    shapes = anywhere(
        (".info", ".data.spans[].attributes", ".data.spans[].attributes.mlflow.spanType"),
        (".spans", ".spans[].attributes", ".spans[].attributes.mlflow.spanType"),
        (".trace", ".trace_id", ".trace_metadata"),
    )
    name, id, trace = "mlflow_traces", "span_id|context.span_id", "trace_id|context.trace_id"
    parent, agents_name, thread = "parent_span_id|parent_id", "name", "session|session_id"
    kind, kinds = "spanType", {"LLM": "llm", "CHAT_MODEL": "llm", "AGENT": "agent", "TOOL": "tool"}
    start, end = "start_time_unix_nano|start_time", "end_time_unix_nano|end_time"
    prompt, answer, tools = "spanInputs", "spanOutputs", "chat_tools"
    names = ("attributes.mlflow.spanInputs", "attributes.mlflow.spanOutputs")
    model, provider, cost = "spanOutputs.model|llm_model|spanInputs.model", "llm_provider", "llm_cost.total_cost"
    counts = (
        "chat_tokenUsage.input_tokens chat_tokenUsage.output_tokens chat_tokenUsage.cache_read_input_tokens "
        "chat_tokenUsage.cache_creation_input_tokens chat_tokenUsage.total_tokens"
    )
    cached = "within"
    counted_at = "attributes.mlflow.chat.tokenUsage"
    failures = ("status_code|status.code", "ERROR", "STATUS_CODE_ERROR")

    def unpacked(self, record: dict[str, Any], place: Place, problems: Problems) -> _Objects:
        record = as_object(record.get("trace")) or record
        information, data = as_object(record.get("info")), as_object(record.get("data"))
        metadata = as_object(information.get("trace_metadata", record.get("trace_metadata")))
        session, at = text_of(metadata.get("mlflow.trace.session")), "data.spans" if "spans" in data else "spans"
        spans = convert(decoded(data.get("spans", record.get("spans"))), list[Any], place.below(at))
        for n, one in enumerate(spans):
            where = place.below(f"{at}[{n}]")
            with problems.collect():
                span = convert(one, OBJECT, where)
                told = convert(span.get("attributes", {}), OBJECT, where.below("attributes"))
                # `mlflow.chat.tokenUsage` as `chat_tokenUsage`: a dot in a path leads down
                flat = {key.removeprefix("mlflow.").replace(".", "_"): _plain(told[key]) for key in told}
                yield where, {**flat, **span, "session": session}

    def moment(self, paths: str, fields: Fields) -> float | None:
        return seconds_of(fields.get(paths), fields.place.below(paths.partition("|")[0]))

    def reported(self, fields: Fields) -> tuple[Any, str]:
        counts, where = super().reported(fields)
        hour = fields.at("chat_tokenUsage.cache_creation_input_tokens_above_1hr")
        return counts and counts | ({} if hour is None else {"ephemeral_1h_input_tokens": hour}), where


def _plain(value: Any) -> Any:
    """Return the value of an attribute, which is JSON text, often of a text."""
    try:
        return loads(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return value
