"""The files of a run: the manifest, the tables, and what each column means.

A context is stored as what changed since the step before: `kept` messages stay, then come the spans
[added_from, added_to). They count messages by number: those of the recording from 0, after them those that the strategy
wrote (table `contexts`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from ...metrics.structure import FAULTS
from ...scenarios.errors import Place

_NAME = pa.dictionary(pa.int32(), pa.string())
_PLACES = pa.list_(pa.int32())
_TEXTS = pa.list_(pa.string())

COLUMNS: Mapping[str, Mapping[str, tuple[pa.DataType, str]]] = {
    "conversations": {
        "conversation": (pa.string(), "its id, unique in the run"),
        "digest": (pa.string(), "SHA-256 of the content, wherever it was read"),
        "source": (pa.string(), "the file, with the line for line formats; empty for a scenario"),
        "licence": (pa.string(), "of the recording, where it says"),
        "language": (pa.string(), "ISO 639-1 code, where the recording says"),
        "messages": (pa.int32(), "how many were recorded"),
        "calls": (pa.int32(), "how often the recorded model was called: the steps under each strategy"),
        "probes": (pa.int32(), "how many questions with a known answer it has"),
        "tokens": (pa.int64(), "of all its messages, each once"),
        "tools_tokens": (pa.int32(), "of the tool schemas"),
        "meta": (pa.string(), "what else the recording says of the whole, as JSON"),
    },
    "messages": {
        "conversation": (_NAME, "id of the conversation"),
        "at": (pa.int32(), "its place in the conversation, from 0"),
        "id": (pa.string(), "its id in the recording"),
        "role": (_NAME, "system, user, assistant or tool"),
        "tokens": (pa.int32(), "of the message in the run's encoding, with what the chat format adds"),
        "time": (pa.float64(), "when it was complete, in seconds since 1970"),
        "model": (_NAME, "the recorded model that answered with it"),
        "usage_input": (pa.int64(), "tokens of the whole prompt as the provider reported them, cached ones included"),
        "usage_output": (pa.int64(), "tokens of the answer as the provider reported them"),
        "usage_cache_read": (pa.int64(), "tokens that the provider read from its cache"),
        "usage_cache_write": (pa.int64(), "tokens that the provider wrote to its cache"),
        "usage_cost": (pa.float64(), "what the call was recorded to have cost"),
        "compacted": (pa.bool_(), "the recorded agent had replaced the start of its context before this message"),
    },
    "steps": {
        "conversation": (_NAME, "id of the conversation"),
        "strategy": (_NAME, "the strategy as text"),
        "step": (pa.int32(), "the model call's number in the conversation, from 0"),
        "at": (pa.int32(), "recorded messages before the call: all that the strategy knew"),
        "turn": (pa.int32(), "user messages among them"),
        "kept": (pa.int32(), "first messages that are those of the step before; 0 if other tools were offered"),
        "added_from": (_PLACES, "where each stretch of messages sent after the kept ones begins"),
        "added_to": (_PLACES, "where it ends; this message is not in it"),
        "marks": (_PLACES, "places in the context, from 0, of the messages with a cache breakpoint after them"),
        "tools_added": (pa.list_(pa.string()), "names of the tools that the strategy offers beside the recorded ones"),
        "messages_sent": (pa.int32(), "messages of the context"),
        "tokens_full": (pa.int64(), "of the request with the whole history: messages, tool schemas, start of reply"),
        "tokens_sent": (pa.int64(), "of the request that the strategy made, counted the same way"),
        "tokens_kept": (pa.int64(), "of tokens_sent, what a prefix cache could reuse at most: tools, kept messages"),
        "over_budget": (pa.int64(), "tokens of the messages over the strategy's own budget; 0 if it has none"),
        **{name: (pa.int32(), about) for name, about in FAULTS.items()},
    },
    "contexts": {
        "conversation": (_NAME, "id of the conversation"),
        "strategy": (_NAME, "the strategy as text"),
        "number": (pa.int32(), "of this message among those that the strategy wrote here, from 0"),
        "tokens": (pa.int32(), "of the message"),
        "message": (pa.string(), "the message as JSON"),
    },
    "events": {
        "conversation": (_NAME, "id of the conversation"),
        "strategy": (_NAME, "the strategy as text"),
        "step": (pa.int32(), "as in steps"),
        "kind": (_NAME, "what the strategy did: called, summarised, dropped … (strategies/events.py)"),
        "input_tokens": (pa.int64(), "of a model call that the strategy made"),
        "output_tokens": (pa.int64(), "of its reply"),
        "cost": (pa.float64(), "of it in US dollars, where the price is known; offline models cost 0"),
        "about": (pa.int64(), "of a summariser's call: tokens of the messages that its reply stands for"),
        "shown": (pa.int64(), "tokens of those that it was shown"),
        "event": (pa.string(), "the whole event as JSON"),
    },
    "grounding": {
        "conversation": (_NAME, "id of the conversation"),
        "strategy": (_NAME, "the strategy as text"),
        "step": (pa.int32(), "as in steps"),
        "of": (_NAME, "call: arguments of the recorded tool calls; answer: values in the recorded final answer"),
        "kind": (_NAME, "identifier, number, date, path, url, name, or text for any other short argument"),
        "values": (pa.int32(), "how many of them had been said by a user or a tool before"),
        "kept": (pa.int32(), "how many of those are in the context sent"),
    },
    "survival": {
        "conversation": (_NAME, "id of the conversation"),
        "strategy": (_NAME, "the strategy as text"),
        "kind": (_NAME, "what kind of fact: a value as in grounding, decision or constraint"),
        "age": (pa.int32(), "rounds of summarising since the fact was replaced; 0 = the first summary of it"),
        "values": (pa.int32(), "facts that were followed to that age"),
        "kept": (pa.int32(), "how many of those the summary still had"),
    },
    "probes": {
        "conversation": (_NAME, "id of the conversation"),
        "strategy": (_NAME, "the strategy as text; last_turn and evidence_only stand here as bounds, run or not"),
        "number": (pa.int32(), "of the probe in the conversation's list, from 0"),
        "probe": (pa.string(), "its id"),
        "category": (_NAME, "what kind of question, in the recording's own word"),
        "answerable": (pa.bool_(), "whether what it asks for was said"),
        "at": (pa.int32(), "recorded messages before the question"),
        "step": (pa.int32(), "the newest step at or before it; null if there is none"),
        "failed": (pa.string(), "why nothing was sent; what follows the evidence is then null"),
        "evidence": (_TEXTS, "ids of the messages that the answer rests on, those alone that had been said"),
        "kept": (pa.int32(), "first messages that are those of that step"),
        "added_from": (_PLACES, "as in steps; -1 = the question, -2, -3 … what is in `written`"),
        "added_to": (_PLACES, "where each stretch ends; this message is not in it"),
        "written": (_TEXTS, "messages that the strategy wrote for this probe alone, as JSON"),
        "written_tokens": (_PLACES, "tokens of each"),
        "marks": (_PLACES, "as in steps"),
        "tools": (_TEXTS, "the tools offered, as JSON; null if they are the recording's"),
        "events": (_TEXTS, "what the strategy did for the question, as JSON: in no bill, and not in `events`"),
        "loadable": (_TEXTS, "ids of the messages that are not sent as they were said, and an archive or a tier has"),
        "loadable_by": (_TEXTS, "what the model would ask a tool for, each; empty if it is offered none"),
        "recalled": (_TEXTS, "ids of the messages recalled, best first; null if the strategy recalled nothing"),
        "tokens_full": (pa.int64(), "of the request with the whole history and the question"),
        "tokens_sent": (pa.int64(), "of the request that the strategy made"),
        "evidence_state": (_TEXTS, "of each message of the evidence: verbatim, part, summary, loadable, absent"),
        "evidence_share": (pa.list_(pa.float64()), "of each its text, what is sent word for word"),
        "evidence_tokens": (pa.int64(), "of all that is sent of the evidence word for word"),
        "evidence_place": (pa.float64(), "where that is in what is sent, 0 = start, 1 = end; null if there is none"),
        "answer": (pa.bool_(), "whether an accepted answer is there word for word; null if none had been said so"),
    },
    "timings": {
        "conversation": (_NAME, "id of the conversation"),
        "strategy": (_NAME, "the strategy as text"),
        "step": (pa.int32(), "as in steps, and in the same order"),
        "latency_ns": (pa.int64(), "how long the strategy itself took, in nanoseconds"),
        "model_wait_ns": (pa.int64(), "how long it waited for models, in nanoseconds"),
    },
    "results": {
        "conversation": (pa.string(), "id of the conversation"),
        "strategy": (_NAME, "the strategy as text"),
        "status": (pa.string(), "ok or failed"),
        "detail": (pa.string(), "why it failed"),
        "steps": (pa.int32(), "steps measured; 0 if it failed"),
        "budget": (pa.int64(), "tokens that the strategy promised to stay within, if it did"),
        "repeats": (pa.bool_(), "whether a second replay sent the same; null where there was none"),
    },
}
"""Each table's columns: the type, and what it means. What is not known is null."""

SCHEMAS: Mapping[str, pa.Schema] = {
    table: pa.schema([(name, kind) for name, (kind, _) in columns.items()]) for table, columns in COLUMNS.items()
}

FORMAT = 6
"""Number of the run folder's layout. This version reads no other."""
USUAL_MODEL = "gpt-4o"
"""Whose context window counts where the recording does not say which model was called."""


class ManifestPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The question that a run answers. Two runs with equal plans on equal recordings have equal results."""

    names: tuple[str, ...]
    """Scenarios and paths, as they were given."""
    form: str | None
    """The format that every file was read as; None = each as its own."""
    turns: int | None
    """User turns of generated conversations; None = the scenario's own."""
    seed: int
    strategies: tuple[str, ...]
    """The strategies as text."""
    encoding: str
    model: str
    """The model whose context window overflows are counted against; empty = the recorded ones (`run.windows`)."""
    probes: bool
    """Whether the run asked the probes."""
    summariser: str
    embedder: str


class LeftOutRecording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation that could not be read, and so is in no table."""

    file: str
    line: int
    """Line in the file, from 1; 0 = the whole file."""
    field: str
    """As `messages[3].role`; empty = the whole conversation."""
    what: str
    remedy: str

    def __str__(self) -> str:
        """Return the place, the problem and the remedy on one line."""
        return f"{Place(self.file, self.line, self.field)}: {self.what}{f' ({self.remedy})' if self.remedy else ''}"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `manifest.json`. Until the run is complete, the fields with a default are not written."""

    format: int
    plan: ManifestPlan
    window: int
    """Context window of the plan's model, or of `USUAL_MODEL` where it names none, in tokens."""
    versions: dict[str, str]
    """Versions of ctxbench, Python, libraries, the model map, and the packages of the strategies."""
    complete: bool
    conversations: int = 0
    shards: int = 0
    digest: str = ""
    """SHA-256 over the recordings of all shards, in order."""
    problems: tuple[LeftOutRecording, ...] = ()
    ignored: tuple[str, ...] = ()
    """Files below the inputs that are no recordings."""
    notes: tuple[str, ...] = ()
