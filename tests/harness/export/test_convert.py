"""Conversations in formats of others: what is read back, what is counted as not carried, and the command."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxbench.cli.export import TargetFormat
from ctxbench.harness.export.convert import convert
from ctxbench.harness.export.formats import LINE_FORMATS
from ctxbench.harness.export.losses import losses
from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import (
    Call,
    Compaction,
    ContextEdit,
    Conversation,
    Fact,
    Iteration,
    Mark,
    Media,
    Message,
    Probe,
    Tool,
    ToolCall,
    Usage,
    check,
    usage_faults,
)
from ctxbench.scenarios.read import find, parse_format, read
from ctxbench.scenarios.source import Problems
from tests.builders import messages
from tests.examples import examples
from tests.harness.command import ctxbench

FOREIGN = [name for name in LINE_FORMATS if name != "ctxbench"]

_WHOLE = {"probe", "fact", "compaction", "licence", "language", "meta value", "image"}
_WHOLE |= {"first token time", "error text", "context edit"}
_CALLS = {"model name", "provider name", "cost", "token usage", "start time", "reasoning effort", "stop reason"}
_REPORTED = {"request id", "service tier", "requested model", "reasoning token count"}
_CALLS |= {"inner request", "per-call tool list", "cache mark"} | _REPORTED
# What each format may lose. All else it always carries.
MAY_LOSE = {
    "openai": _WHOLE | _CALLS | {"time"},
    "anthropic": _WHOLE
    | {"time", "start time", "cost", "provider name", "speaker name", "role", "inner request"}
    | {"argument text", "argument format"}
    # of an answer that opens the conversation, before any request
    | (_CALLS - {"cache mark"}),
    "otlp": _WHOLE | {"time", "start time", "message", "inner request", "tool", "role"} | (_CALLS - {"cache mark"}),
    "atif": _WHOLE
    | {"time", "start time", "speaker name", "role", "argument text", "argument format"}
    | {"inner request", "per-call tool list", "cache mark", "model name", "provider name"}
    | _REPORTED,
    "sharegpt": _WHOLE
    | _CALLS
    | {"time", "thinking text", "speaker name", "tool result link"}
    | {"text", "argument format"},
}

ARGUMENTS = [
    '{"a":1}',
    '{"path": "/srv/a.csv", "n": 1.50}',
    "{}",
    "",
    "*** Begin Patch",
    "[1, 2]",
    '"text"',
    "null",
    '{"say": "</tool_call>"}',
    '{\n  "a": 1\n}',
    '{"n": 123456789012345678901234567890}',
    '{"a": 1, "a": 2}',
]
TOOLS = [
    (),
    (Tool("read", "Read a file", '{"type":"object"}'),),
    (Tool("read"), Tool("write", "", '{"type":"object","properties":{"path":{"type":"string"}}}')),
]


@st.composite
def usages(draw: st.DrawFn) -> Usage | None:
    """Draw what a provider may report, counts that are missing among them."""
    count = st.none() | st.integers(1, 10**6)
    read, written = draw(count), draw(count)
    whole = draw(st.none() | st.just((read or 0) + (written or 0) + draw(st.integers(1, 999))))
    hour = None if written is None else draw(st.none() | st.integers(0, written))
    output = draw(count)
    reasoning = None if output is None else draw(st.none() | st.integers(0, output))
    usage = Usage(whole, output, read, written, hour, draw(st.sampled_from([None, 0.25, 1e-05])), reasoning)
    assert not [*usage_faults(usage)]
    return None if usage == Usage() else usage


@st.composite
def recorded(draw: st.DrawFn) -> Conversation:
    """Draw a conversation with whatever a recording may have."""
    clock, made = 1.7e9, list[Message]()
    tools = draw(st.sampled_from(TOOLS))
    for message in draw(messages(12)):
        clock += draw(st.sampled_from([0.0, 0.125, 61.0]))
        message = replace(
            message,
            time=draw(st.sampled_from([None, clock])),
            name=draw(st.sampled_from(["", "ada"])),
            media=draw(st.sampled_from([(), (), (Media("image", 4, 3), Media("image"))])),
        )
        if message.role == "assistant":
            arguments = st.sampled_from(ARGUMENTS)
            made_calls = tuple(ToolCall(call.id, call.name, draw(arguments)) for call in message.calls)
            marks = tuple(
                Mark(earlier.id, draw(st.sampled_from(["5m", "1h"]))) for earlier in made if draw(st.booleans())
            )
            call = Call(
                model=draw(st.sampled_from(["", "claude-sonnet-5", "meta/llama"])),
                provider=draw(st.sampled_from(["", "anthropic", "openai"])),
                usage=draw(usages()),
                started=draw(st.sampled_from([None, clock])),
                marks=marks,
                tools=draw(st.sampled_from([None, None, *TOOLS])),
                effort=draw(st.sampled_from(["", "high"])),
                stop=draw(st.sampled_from(["", "stop", "tool_calls"])),
                request_id=draw(st.sampled_from(["", "req_1", f"req_{len(made)}"])),
                tier=draw(st.sampled_from(["", "standard"])),
                requested=draw(st.sampled_from(["", "auto"])),
            )
            message = replace(
                message,
                calls=made_calls,
                thinking=draw(st.sampled_from(["", "First I look.\nThen I act."])),
                call=draw(st.sampled_from([None, call])),
            )
        made.append(message)
    last = made[-1].id
    conversation = Conversation(
        "any",
        tuple(made),
        tools=tools,
        probes=draw(st.sampled_from([(), (Probe("p", "Which?", ("this",), (last,)),)])),
        facts=draw(st.sampled_from([(), (Fact("so it is", last),)])),
        compactions=draw(st.sampled_from([(), (Compaction(last, "all of it"),)])),
        language=draw(st.sampled_from(["", "en"])),
        meta=draw(st.sampled_from([{}, {"agent": "coder"}, {"reward": 1.0}])),
    )
    check(conversation, Place("drawn"))
    return conversation


def converted(
    conversations: list[Conversation], name: str, detected: bool = False
) -> tuple[Counter[str], list[Conversation]]:
    """Write conversations in a format; return what is not carried, and the conversations that are read again."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "any.jsonl"
        counts = convert(conversations, name, path).not_carried
        problems = Problems()
        found = find([path], problems, None if detected else LINE_FORMATS[name].reader) if path.exists() else []
        return counts, [*read(found, problems)]


def without_ids(conversation: Conversation) -> Conversation:
    """Return a conversation with the ids of its positions, and without what readers add or may write otherwise."""
    places = {message.id: f"m{at}" for at, message in enumerate(conversation.messages)}
    names: dict[str, tuple[str, str]] = {}
    made: list[Message] = []
    for at, message in enumerate(conversation.messages):
        answered = names.get(message.answers or "", (None, ""))
        calls = tuple(replace(call, id=f"m{at}c{number}") for number, call in enumerate(message.calls))
        names |= {call.id: (f"m{at}c{number}", call.name) for number, call in enumerate(message.calls)}
        call = message.call or Call()
        marks = tuple(sorted((replace(mark, after=places.get(mark.after or "")) for mark in call.marks), key=str))
        tools = conversation.tools if call.tools is None else call.tools
        call = replace(call, marks=marks, tools=tools, usage=call.usage or Usage())
        is_added = message.role == "tool" and message.name == answered[1]
        made.append(
            replace(
                message,
                id=f"m{at}",
                calls=calls,
                answers=answered[0],
                call=call if message.role == "assistant" else None,
                name="" if is_added else message.name,
            )
        )
    meta = {name: value for name, value in conversation.meta.items() if name != "agent" or value != "unknown"}
    return replace(conversation, id="any", messages=tuple(made), source="", meta=meta)


def same_provider(conversation: Conversation) -> Conversation:
    """Return a conversation without providers, which a format of one provider adds."""
    said = [
        replace(each, call=replace(each.call, provider="")) if each.call is not None else each
        for each in conversation.messages
    ]
    return replace(conversation, messages=tuple(said))


def reduced(conversation: Conversation, kinds: set[str]) -> Conversation:
    """Return a conversation without what is of these kinds."""
    made = []
    for message in conversation.messages:
        call = message.call
        if call is not None:
            call = replace(call, request_id="", tier="", requested="")
            if call.usage is not None and "reasoning token count" in kinds:
                call = replace(call, usage=replace(call.usage, reasoning=None))
            call = Call() if kinds >= _CALLS else replace(call, started=None, provider="", tools=None)
            if call.usage is not None and "cost" in kinds:
                call = replace(call, usage=replace(call.usage, cost=None))
            if "cache mark" in kinds:
                call = replace(call, marks=())
            if "model name" in kinds:
                call = replace(call, model="")
        made.append(
            replace(
                message,
                call=call,
                time=None,
                media=(),
                name="" if "speaker name" in kinds else message.name,
                thinking="" if "thinking text" in kinds else message.thinking,
                text=message.text.strip() if "text" in kinds else message.text,
            )
        )
    return Conversation("any", tuple(made), tools=conversation.tools)


@pytest.mark.parametrize("name", FOREIGN)
@examples(40, ignored=[HealthCheck.too_slow])
@given(conversation=recorded())
def test_what_comes_back_is_the_same_but_for_what_is_counted(name: str, conversation: Conversation) -> None:
    """A format loses nothing but its kinds, counts are those of what is read back, and without any it is all there."""
    for original in (conversation, reduced(conversation, MAY_LOSE[name])):
        counts, again = converted([original], name)
        assert counts.keys() <= MAY_LOSE[name]
        assert counts == losses(original, again[0] if again else None)
        if not counts:
            assert same_provider(without_ids(again[0])) == same_provider(without_ids(original))


def agent() -> Conversation:
    """A conversation with a prompt, parallel calls, thinking, usage and a cache mark, worked out by hand."""
    usage = Usage(input=1000, output=20, cache_read=600, cache_write=300, cache_write_1h=100)
    calls = (ToolCall("call_1", "read", '{"path": "a"}'), ToolCall("call_2", "read", '{"path": "b"}'))
    asked = Call("claude-sonnet-5", "anthropic", usage, 1.7e9 + 2, (Mark("s"),), stop="tool_use", effort="high")
    said = (
        Message("s", "system", "You read files.", time=1.7e9),
        Message("u", "user", "Compare a and b.", time=1.7e9 + 1),
        Message("a", "assistant", "", calls, time=1.7e9 + 3, thinking="Both at once.", call=asked),
        Message("r1", "tool", "1", answers="call_1"),
        Message("r2", "tool", "2", answers="call_2"),
        Message("b", "assistant", "They differ.", call=Call("claude-sonnet-5", "anthropic", Usage(1400, 9))),
        Message("v", "user", "Thanks."),
    )
    return Conversation("agent", said, tools=(Tool("read", "Read a file", '{"type":"object"}'),))


NOT_CARRIED = {
    "openai": {
        "time": 3,
        "model name": 2,
        "provider name": 2,
        "token usage": 2,
        "start time": 1,
        "stop reason": 1,
        "reasoning effort": 1,
        "cache mark": 1,
    },
    "anthropic": {"time": 3, "start time": 1},
    "otlp": {"time": 2, "message": 1},
    "atif": {"argument format": 2, "start time": 1, "cache mark": 1},
}
NOT_CARRIED["sharegpt"] = {**NOT_CARRIED["openai"], "thinking text": 1}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_each_format_does_not_carry(name: str) -> None:
    """Of an agent's conversation each format loses what it has no place for, counted by kind, and nothing else."""
    counts, [again] = converted([agent()], name)
    assert counts == NOT_CARRIED[name]
    assert [message.text for message in again.messages] == [m.text for m in agent().messages[: len(again.messages)]]
    assert again.tools == agent().tools


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_written_is_known_by_its_content(name: str) -> None:
    """A file of several conversations is read again without being told its format, each conversation as it was."""
    several = [replace(agent(), id=f"agent-{number}") for number in range(3)]
    several[1] = replace(several[1], messages=several[1].messages[:3])
    counts, again = converted(several, name, detected=True)
    _, fixed = converted(several, name)
    assert again == [replace(one, source=other.source) for one, other in zip(fixed, again, strict=True)]
    alone = [converted([one], name)[0] for one in several]
    assert counts == sum(alone, Counter())
    assert len(again) == 3


def lines(conversation: Conversation, name: str) -> list[dict[str, Any]]:
    """The lines of a conversation in a format."""
    return [json.loads(line) for line in LINE_FORMATS[name].write(conversation)]


def test_openai_is_the_form_of_requests() -> None:
    """A chat has roles, contents, calls with their arguments as text, and results that name their calls."""
    [chat] = lines(agent(), "openai")
    assert chat["messages"][2]["tool_calls"][0] == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "read", "arguments": '{"path": "a"}'},
    }
    assert chat["messages"][3] == {"role": "tool", "content": "1", "tool_call_id": "call_1"}
    assert chat["tools"][0]["function"]["parameters"] == {"type": "object"}


def test_anthropic_has_a_line_per_call_and_results_in_one_turn() -> None:
    """Requests repeat what was said; parallel results are one turn; input tokens are what no cache has."""
    first, second, whole = lines(agent(), "anthropic")
    assert first["request"]["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert first["response"]["usage"] == {
        "cache_read_input_tokens": 600,
        "cache_creation_input_tokens": 300,
        "output_tokens": 20,
        "input_tokens": 100,
        "cache_creation": {"ephemeral_1h_input_tokens": 100},
    }
    assert first["response"]["content"][0]["type"] == "thinking"
    assert [block["tool_use_id"] for block in second["request"]["messages"][2]["content"]] == ["call_1", "call_2"]
    assert whole["messages"][-1] == {"role": "user", "content": [{"type": "text", "text": "Thanks."}]}


def test_anthropic_keeps_inner_requests() -> None:
    """A call of several requests has them in `usage.iterations`, those of another model with its name."""
    parts = (Iteration(Usage(100, 5)), Iteration(Usage(50, 7), "claude-opus-5"), Iteration(Usage(130, 9)))
    call = Call("claude-sonnet-5", "anthropic", Usage(130, 14), iterations=parts)
    said = (Message("u", "user", "Go."), Message("a", "assistant", "Done.", call=call))
    counts, [again] = converted([Conversation("any", said)], "anthropic")
    assert not counts
    assert again.messages[1].call == call


CALL_VALUES: dict[str, Any] = {
    "usage": Usage(input=9),
    "started": 1.0,
    "marks": (Mark("u"),),
    "tools": (Tool("read"),),
    "iterations": (Iteration(Usage(1)),),
    "first_token": 2.0,
    "edits": (ContextEdit("clear_tool_uses", 100),),
}


@pytest.mark.parametrize("field", Call.__struct_fields__)
def test_nothing_of_a_call_is_lost_in_silence(field: str) -> None:
    """Every field of a call is named where the copy has it not, new fields too."""

    def said(call: Call) -> Conversation:
        return Conversation("c", (Message("u", "user", "Go."), Message("a", "assistant", "Done.", call=call)))

    assert losses(said(Call(**{field: CALL_VALUES.get(field, "high")})), said(Call()))


@pytest.mark.parametrize("field", Usage.__struct_fields__)
def test_nothing_of_usage_is_lost_in_silence(field: str) -> None:
    """The same of every count."""

    def said(usage: Usage) -> Conversation:
        call = Call(usage=usage)
        return Conversation("c", (Message("u", "user", "Go."), Message("a", "assistant", "Done.", call=call)))

    assert losses(said(Usage(**{field: 7})), said(Usage()))


def test_otlp_has_a_trace_per_conversation_and_a_span_per_call() -> None:
    """Spans of a conversation share its trace id and have the attributes of the GenAI conventions."""
    first, second = lines(agent(), "otlp")
    spans = [line["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for line in (first, second)]
    assert spans[0]["traceId"] == spans[1]["traceId"]
    assert (len(spans[0]["traceId"]), len(spans[0]["spanId"])) == (32, 16)
    assert (spans[0]["startTimeUnixNano"], spans[0]["endTimeUnixNano"]) == (
        "1700000002000000000",
        "1700000003000000000",
    )
    values = {attribute["key"]: attribute["value"] for attribute in spans[0]["attributes"]}
    assert values["gen_ai.usage.input_tokens"] == {"intValue": "1000"}
    assert values["gen_ai.response.finish_reasons"] == {"arrayValue": {"values": [{"stringValue": "tool_use"}]}}
    prompt = json.loads(values["gen_ai.input.messages"]["stringValue"])
    assert prompt[1] == {"role": "user", "parts": [{"type": "text", "content": "Compare a and b."}]}
    [answer] = json.loads(values["gen_ai.output.messages"]["stringValue"])
    assert [part["type"] for part in answer["parts"]] == ["reasoning", "tool_call", "tool_call"]


def test_otlp_is_what_its_protocol_defines() -> None:
    """Every line is a `TracesData` of OTLP: the protocol's own parser knows all of its fields."""
    traces = pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    for line in LINE_FORMATS["otlp"].write(agent()):
        parsed = json_format.Parse(line, traces.TracesData())
        [span] = parsed.resource_spans[0].scope_spans[0].spans
        assert span.name == "chat claude-sonnet-5"
        assert span.kind == traces.Span.SPAN_KIND_CLIENT


def test_atif_has_results_in_the_step_of_their_calls() -> None:
    """Steps are numbered from 1, an answer's step has its results and metrics, and the totals are their sums."""
    [trajectory] = lines(agent(), "atif")
    assert [step["step_id"] for step in trajectory["steps"]] == [1, 2, 3, 4, 5]
    step = trajectory["steps"][2]
    assert step["tool_calls"][1] == {"tool_call_id": "call_2", "function_name": "read", "arguments": {"path": "b"}}
    assert step["observation"]["results"][1] == {"source_call_id": "call_2", "content": "2"}
    assert (step["timestamp"], step["metrics"]["cached_tokens"]) == ("2023-11-14T22:13:23.000000Z", 600)
    assert trajectory["final_metrics"]["total_prompt_tokens"] == 2400


def test_sharegpt_has_calls_alone_or_behind_their_text() -> None:
    """Calls without a text are one turn, several as a list; behind a text they stand in it as Hermes writes them."""
    [share] = lines(agent(), "sharegpt")
    assert share["system"] == "You read files."
    assert [turn["from"] for turn in share["conversations"]] == [
        *("human", "function_call", "observation", "observation", "gpt", "human")
    ]
    assert json.loads(share["conversations"][1]["value"])[1] == {"name": "read", "arguments": {"path": "b"}}
    spoken = Message("a", "assistant", "I look.", (ToolCall("c", "read", '{"path": "a"}'),))
    [share] = lines(Conversation("any", (Message("u", "user", "Go."), spoken)), "sharegpt")
    assert share["conversations"][1]["value"].startswith(
        'I look.\n<tool_call>\n{"name":"read","arguments":{"path": "a"}}'
    )


SAMPLES = {
    "tool calls": "tau-bench",
    "thinking and usage": "oh-my-pi",
    "parallel calls": "copilot-cli",
    "steps": "atif",
    "dialogues with probes": "locomo",
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("sample", SAMPLES)
def test_recordings_come_back(sample: str, name: str, recordings: Path) -> None:
    """Recordings of different kinds lose nothing in a format but what it may lose, and all that is counted."""
    problems = Problems()
    for number, conversation in enumerate(read(find([recordings / SAMPLES[sample]], problems), problems)):
        if number == 3:
            break
        counts, [again] = converted([conversation], name)
        assert counts.keys() <= MAY_LOSE[name]
        kept = conversation.messages[: len(conversation.messages) - counts["message"]]
        assert len(again.messages) == len(kept)
        assert sum(one.text != two.text for one, two in zip(kept, again.messages, strict=True)) == counts["text"]


def test_the_command_names_every_format() -> None:
    """`--as` offers the line formats and the data set, and each is read by a reader that there is."""
    assert {target.value for target in TargetFormat} == {*LINE_FORMATS, "dataset"}
    assert all(parse_format(form.reader) for form in LINE_FORMATS.values())


def test_convert_from_end_to_end(tmp_path: Path) -> None:
    """Losses are said on standard error and in `--json`; the same input is the same bytes, also packed."""
    (tmp_path / "agent.jsonl").write_bytes(agent().to_json() + b"\n")
    done = ctxbench("convert", "agent.jsonl", "--to", "o.jsonl", "--as", "openai", "--json", cwd=tmp_path)
    assert "1 conversation written to o.jsonl" in done.stderr
    assert "not carried by openai: 3 times, 2 model names, 2 provider names" in done.stderr
    assert json.loads(done.stdout) == {
        "conversations": 1,
        "format": "openai",
        "not_carried": NOT_CARRIED["openai"],
    }
    plain = (tmp_path / "o.jsonl").read_bytes()
    for name in ("o.jsonl.gz", "p.jsonl.gz", "o.jsonl.zst"):
        ctxbench("convert", "agent.jsonl", "--to", name, "--as", "openai", cwd=tmp_path)
    assert gzip.decompress((tmp_path / "o.jsonl.gz").read_bytes()) == plain
    assert (tmp_path / "o.jsonl.gz").read_bytes() == (tmp_path / "p.jsonl.gz").read_bytes()
    assert zstandard.decompress((tmp_path / "o.jsonl.zst").read_bytes(), 1 << 20) == plain
    assert ctxbench("convert", "agent.jsonl", "--to", "-", "--as", "openai", cwd=tmp_path).stdout.encode() == plain
    again = ctxbench("convert", "o.jsonl.gz", "--to", "again.jsonl", cwd=tmp_path)
    assert "not carried" not in again.stderr
    assert ctxbench("convert", "o.jsonl", "--to", "x", "--as", "prose", cwd=tmp_path, code=2).stderr


def test_convert_to_a_data_set(tmp_path: Path) -> None:
    """A data set has the whole recording, so nothing is lost, and a folder of somebody else is left as it is."""
    pytest.importorskip("datasets")
    (tmp_path / "agent.jsonl").write_bytes(agent().to_json() + b"\n")
    done = ctxbench("convert", "agent.jsonl", "--to", "set", "--as", "dataset", cwd=tmp_path)
    assert "not carried" not in done.stderr
    assert "1 conversations with 7 messages, from agent.jsonl" in (tmp_path / "set/README.md").read_text()
    problems = Problems()
    [again] = read(find([tmp_path / "set"], problems, "huggingface"), problems)
    assert again.digest() == agent().digest()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("precious")
    refused = ctxbench("convert", "agent.jsonl", "--to", "mine", "--as", "dataset", cwd=tmp_path, code=2)
    assert "name another folder with --to" in refused.stderr
    named = ctxbench("convert", "agent.jsonl", "--to", "set.jsonl.gz", "--as", "dataset", cwd=tmp_path, code=2)
    assert "a data set is a folder: name one without .gz" in named.stderr


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A format that carries none of the conversations leaves no file; JSON and a conversation cannot share a stream."""
    alone = Conversation("any", (Message("u", "user", "Is anybody there?"),))
    (tmp_path / "alone.jsonl").write_bytes(alone.to_json() + b"\n")
    done = ctxbench("convert", "alone.jsonl", "--to", "x.jsonl", "--as", "otlp", cwd=tmp_path, code=2)
    assert "otlp carries none of these conversations" in done.stderr
    assert not (tmp_path / "x.jsonl").exists()
    both = ctxbench("convert", "alone.jsonl", "--to", "-", "--as", "openai", "--json", cwd=tmp_path, code=2)
    assert "name a file or folder" in both.stderr


def test_a_recording_is_never_its_own_target(tmp_path: Path) -> None:
    """A file that is read, under any name or in a folder that is read, is refused and stays as it was."""
    folder = tmp_path / "talks"
    folder.mkdir()
    recorded = folder / "agent.jsonl"
    recorded.write_bytes(agent().to_json() + b"\n")
    (tmp_path / "link.jsonl").symlink_to(recorded)
    before = recorded.read_bytes()
    for source, target in (
        ("talks/agent.jsonl", "talks/agent.jsonl"),
        ("talks/agent.jsonl", "link.jsonl"),
        ("talks", "talks/agent.jsonl"),
    ):
        done = ctxbench("convert", source, "--to", target, "--as", "openai", cwd=tmp_path, code=2)
        assert "is one of the recordings that are read" in done.stderr
        assert recorded.read_bytes() == before
