"""A scripted agent that reads files and edits them. What it no longer sees it reads again: no model, no chance.

`python -m tests.live_agent FOLDER` writes its runs of sixteen tasks: `before`, with the whole history, and `after`,
with all tool results masked but the last two. They are the worked example of docs/validity.md.
"""

from __future__ import annotations

import sys
from itertools import takewhile
from pathlib import Path

from ctxbench.metrics.tokens import PRIMING, TokenCounter
from ctxbench.scenarios.model import Call, Conversation, Message, ToolCall, Usage
from ctxbench.strategies.chain import parse
from tests.strategies.stubs import played

MASKED = "swe_agent(n=2)"
MODEL = "gpt-4o"
FILES = 5
_START = 1_790_000_000.0  # seconds since 1970
_COUNTER = TokenCounter()


def work(task: int, strategy: str) -> Conversation:
    """Return the run of a task under a strategy: read all files, then write each limit, which its file says."""
    messages = [
        Message(
            "m0", "user", f"Task {task}: raise the limit in each of {FILES} files by one.", time=_START + 1000 * task
        )
    ]

    def sees(text: str) -> bool:
        return any(text in message.text for message in _sent(messages, strategy))

    def call(tool: str, arguments: str, result: str) -> None:
        _answer(messages, strategy, ToolCall(f"c{len(messages)}", tool, arguments))
        messages.append(
            Message(f"m{len(messages)}", "tool", result, answers=messages[-1].calls[0].id, time=_now(messages))
        )

    def read(file: int) -> None:
        lines = "\n".join(f"option_{line} = {line * 7 + task}" for line in range(40 + 10 * task))
        call("read", f'{{"path": "src/module_{file}.py"}}', f"LIMIT_{file} = {task * 100 + file}\n{lines}")

    for file in range(FILES):
        read(file)
    for file in range(FILES):
        if not sees(f"LIMIT_{file} = "):
            read(file)
        edit = f'{{"path": "src/module_{file}.py", "text": "LIMIT_{file} = {task * 100 + file + 1}"}}'
        call("edit", edit, f"module_{file}: edited")
    _answer(messages, strategy, None)
    return Conversation(f"task-{task}", tuple(messages), meta={"task": f"task-{task}", "success": True})


def _now(messages: list[Message]) -> float:
    return (messages[0].time or 0.0) + 5.0 * len(messages)


def _sent(messages: list[Message], strategy: str) -> list[Message]:
    """Return what the strategy sends of the history."""
    history = Conversation("talk", (*messages, Message("next", "assistant", "…")))
    return list(played(parse(strategy), history)[-1].context.messages)


def _answer(messages: list[Message], strategy: str, made: ToolCall | None) -> None:
    sent = _sent(messages, strategy)
    prompt = sum(map(_COUNTER.message, sent)) + PRIMING
    # The provider's cache: what the prompt before began with too, from 1,024 tokens on, in steps of 128.
    before = max((at for at, one in enumerate(messages) if one.role == "assistant"), default=0)
    shared = takewhile(
        lambda pair: pair[0] == pair[1], zip(sent, _sent(messages[:before], strategy) if before else (), strict=False)
    )
    same = sum(_COUNTER.message(one) for one, _ in shared)
    cached = same // 128 * 128 if same >= 1024 else 0
    message = Message(f"m{len(messages)}", "assistant", "" if made else "Done.", calls=(made,) if made else ())
    call = Call(MODEL, usage=Usage(input=prompt, output=_COUNTER.message(message), cache_read=cached))
    messages.append(Message(message.id, "assistant", message.text, message.calls, call=call, time=_now(messages)))


def write(folder: Path, tasks: int = 16) -> None:
    """Write the runs of some tasks, a file each."""
    for name, strategy in (("before", "none"), ("after", MASKED)):
        (folder / name).mkdir(parents=True)
        for task in range(tasks):
            (folder / name / f"task-{task:02}.jsonl").write_bytes(work(task, strategy).to_json() + b"\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
