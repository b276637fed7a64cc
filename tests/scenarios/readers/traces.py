"""What the tests of readers of traces share: a file in, conversations, errors and notes out."""

import json
from pathlib import Path
from typing import Any

from ctxbench.scenarios.model import Conversation, Usage
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems

CALL = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}
PROMPT: list[dict[str, Any]] = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "What is it?"}]
CALLED = {"role": "assistant", "content": "", "tool_calls": [CALL]}
LATER = [*PROMPT, CALLED, {"role": "tool", "tool_call_id": "t1", "content": "a cat"}]
SAID = {"role": "assistant", "content": "A cat."}
SHOWN = [
    ("system", "Be short."),
    ("user", "What is it?"),
    ("assistant", "look(t1)"),
    ("tool", "a cat"),
    ("assistant", "A cat."),
]


def load(folder: Path, *files: Any, name: str = "trace") -> tuple[list[Conversation], Problems]:
    """The conversations of these files: text is written as it is, a list of lines as JSON Lines, all else as JSON."""
    for at, content in enumerate(files):
        if isinstance(content, list) and content:
            text = "".join(json.dumps(line) + "\n" for line in content)
        else:
            text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}{at}.json").write_text(text)
    problems = Problems()
    return list(read(find([folder], problems), problems)), problems


def shown(conversation: Conversation) -> list[tuple[str, str]]:
    """Role and text of every message; calls as `name(id)`."""
    return [
        (message.role, message.text + "".join(f"{call.name}({call.id})" for call in message.calls))
        for message in conversation.messages
    ]


def usages(conversation: Conversation) -> list[Usage | None]:
    """Usage of every call."""
    messages = (conversation.messages[at] for at in conversation.calls())
    return [message.call.usage if message.call else None for message in messages]
