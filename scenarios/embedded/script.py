"""Write a conversation: messages with ids and a clock, and the probes.

script = Script("load/en-1", language="en", start="2026-03-02T09:00:00")
script.user("How long are audit logs kept?")
search = script.call("search_docs", {"query": "audit log retention"})
script.assistant("", [search])
page = script.result(search, long_text)
script.wait(7200)
script.probe("For how many days are audit logs kept?", ["400 days", "400"], [page], "single_hop")
conversation = script.done()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..model import Conversation, Message, Probe, Role, Tool, ToolCall


class Script:
    """Conversation being written. Every method that adds a message returns its id."""

    def __init__(self, name: str, *, language: str, start: str, tools: Sequence[Tool] = ()) -> None:
        """Start a conversation at an ISO time in UTC; `name` becomes its id."""
        self._name, self._language, self._tools = name, language, tuple(tools)
        self._now = datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp()
        self._messages: list[Message] = []
        self._probes: list[Probe] = []
        self._calls = 0

    def wait(self, seconds: float) -> None:
        """Let time pass. Five minutes and an hour are the lifetimes of common prompt caches."""
        self._now += seconds

    def system(self, text: str) -> str:
        """Add a system message."""
        return self._say("system", text, 0)

    def user(self, text: str) -> str:
        """Add a user's message. The time before it grows with its length."""
        return self._say("user", text, 20 + len(text) / 12)

    def assistant(self, text: str, calls: Sequence[ToolCall] = ()) -> str:
        """Add an assistant's message: one model call, as long as its text takes to generate."""
        return self._say("assistant", text, 1.5 + len(text) / 250, calls=tuple(calls))

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolCall:
        """Return a tool call with an id of its own, for `assistant(…, calls=[…])`."""
        self._calls += 1
        return ToolCall(f"call_{self._calls:04d}", name, msgspec.json.encode(dict(arguments)).decode())

    def result(self, call: ToolCall, text: str) -> str:
        """Add the result of a tool call."""
        return self._say("tool", text, 0.4 + len(text) / 50_000, answers=call.id, name=call.name)

    def probe(self, question: str, answers: Sequence[str], evidence: Sequence[str], category: str) -> None:
        """Ask a question with its gold after the last message; an `unanswerable` one has none."""
        name = f"p{len(self._probes)}"
        probe = Probe(name, question, tuple(answers), tuple(evidence), category, after=self._messages[-1].id)
        is_answerable = category != "unanswerable"
        self._probes.append(msgspec.structs.replace(probe, answerable=is_answerable, time=self._now))

    def done(self) -> Conversation:
        """Return the finished conversation."""
        return Conversation(
            id=self._name,
            messages=tuple(self._messages),
            tools=self._tools,
            probes=tuple(self._probes),
            source=f"embedded:{self._name}",
            licence="Apache-2.0",
            language=self._language,
        )

    def _say(self, role: Role, text: str, seconds: float, **fields: Any) -> str:
        self._now += round(seconds, 3)
        message = Message(f"m{len(self._messages)}", role, text, time=round(self._now, 3), **fields)
        self._messages.append(message)
        return message.id
