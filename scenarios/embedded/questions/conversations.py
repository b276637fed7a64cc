"""Conversations written by hand, each a file `data/<language>_<subject>.toml`. They have no seed and no length.

A file has the system prompt, the tools with the names of their parameters, the sessions and the probes. A message is a
table of one line. It has a label if it is the evidence of a probe:

    system = "You are a support desk."

    [tools.find_order]
    description = "Returns an order."
    parameters = ["order"]

    [[sessions]]
    start = "2026-03-02T09:12:00"
    messages = [
        { user = "Where is order 17?", label = "question" },
        { call = "find_order", arguments = { order = "17" }, result = "On its way, with Postnord.", label = "order" },
        { assistant = "It is on its way." },
    ]

    [[probes]]
    question = "Who carries order 17?"
    answers = ["Postnord"]
    evidence = ["order"]
    category = "single_hop"

The first accepted answer stands in the evidence word for word, unless the probe has `computed = true`. All probes are
asked at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...model import Conversation, Tool
from ..forms import table
from ..script import Script

CONVERSATIONS = (
    "en/support", "zh/support", "en/assistant", "zh/assistant", "en/ops", "zh/ops", "en/trip", "zh/banquet",
    "en/stock", "zh/library",
)  # fmt: skip


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    description: str
    parameters: list[str]


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A message of the user or the assistant, or a tool call with its result: then the label is the result's."""

    user: str = ""
    assistant: str = ""
    call: str = ""
    arguments: dict[str, str] = {}
    result: str = ""
    label: str = ""


class _Session(msgspec.Struct, forbid_unknown_fields=True):
    start: str
    messages: list[_Line]


class _Question(msgspec.Struct, forbid_unknown_fields=True):
    question: str
    category: str
    answers: list[str] = []
    evidence: list[str] = []
    computed: bool = False


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    system: str
    tools: dict[str, _Tool]
    sessions: list[_Session]
    probes: list[_Question]


def make_all() -> Iterator[Conversation]:
    """Yield every conversation, in the order of CONVERSATIONS."""
    return (make(name) for name in CONVERSATIONS)


def make(name: str) -> Conversation:
    """Return the conversation `questions/<name>`."""
    language, subject = name.split("/")
    text = msgspec.convert(table(__package__, f"{language}_{subject}"), _Text)
    tools = [_tool(tool, definition) for tool, definition in text.tools.items()]
    script = Script(f"questions/{name}", language=language, start=text.sessions[0].start, tools=tools)
    script.system(text.system)
    ids: dict[str, str] = {}
    for session in text.sessions:
        script.until(session.start)
        for line in session.messages:
            message = _say(script, line)
            if line.label:
                ids[line.label] = message
    for probe in text.probes:
        evidence = [ids[label] for label in probe.evidence]
        script.probe(probe.question, probe.answers, evidence, probe.category, computed=probe.computed)
    return script.done()


def _say(script: Script, line: _Line) -> str:
    if line.call:
        return script.tool_call(line.call, line.arguments, line.result)
    return script.user(line.user) if line.user else script.assistant(line.assistant)


def _tool(name: str, definition: _Tool) -> Tool:
    properties = {parameter: {"type": "string"} for parameter in definition.parameters}
    schema = msgspec.json.encode({"type": "object", "properties": properties}).decode()
    return Tool(name, definition.description, schema)
