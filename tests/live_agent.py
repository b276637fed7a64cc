"""A scripted agent that reads files and edits them. What it no longer sees it reads again: no model, no chance.

`python -m tests.live_agent FOLDER` writes its runs of sixteen tasks: `before`, with the whole history, and `after`,
with all tool results masked but the last two. They are the worked example of docs/validity.md.
"""

import sys
from pathlib import Path

from msgspec.structs import replace

from ctxbench.metrics.tokens import PRIMING, TokenCounter
from ctxbench.scenarios.model import Call, Conversation, Message, ToolCall, Usage
from ctxbench.strategies.chain import parse
from tests.strategies.stubs import played

MASKED = "swe_agent(n=2)"
FILES = 5
_COUNTER = TokenCounter()


def work(task: int, strategy: str) -> Conversation:
    """Return the run of a task under a strategy: read all files, then write each limit, which its file says."""
    begun = 1_790_000_000.0 + 1000 * task
    messages = [Message("m0", "user", f"Task {task}: raise the limit in each of {FILES} files by one.", time=begun)]
    last: list[Message] = []

    def now() -> float:
        return begun + 5.0 * len(messages)

    def sent() -> list[Message]:
        history = Conversation("talk", (*messages, Message("next", "assistant", "…")))
        return list(played(parse(strategy), history)[-1].context.messages)

    def say(*calls: ToolCall) -> None:
        """Answer. The provider's cache has what the last prompt began with, from 1,024 tokens on in steps of 128."""
        prompt = sent()
        same = next((at for at, pair in enumerate(zip(prompt, last, strict=False)) if pair[0] != pair[1]), len(last))
        shared = sum(map(_COUNTER.message, prompt[:same]))
        last[:] = prompt
        answer = Message(f"m{len(messages)}", "assistant", "" if calls else "Done.", calls, time=now())
        read = shared // 128 * 128 if shared >= 1024 else 0
        usage = Usage(sum(map(_COUNTER.message, prompt)) + PRIMING, _COUNTER.message(answer), read)
        messages.append(replace(answer, call=Call("gpt-4o", usage=usage)))

    def use(tool: str, arguments: str, result: str) -> None:
        name = f"c{len(messages)}"
        say(ToolCall(name, tool, arguments))
        messages.append(Message(f"m{len(messages)}", "tool", result, answers=name, time=now()))

    def read(file: int) -> None:
        lines = "\n".join(f"option_{line} = {line * 7 + task}" for line in range(40 + 10 * task))
        use("read", f'{{"path": "src/module_{file}.py"}}', f"LIMIT_{file} = {task * 100 + file}\n{lines}")

    for file in range(FILES):
        read(file)
    for file in range(FILES):
        if not any(f"LIMIT_{file} = " in message.text for message in sent()):
            read(file)
        text = f"LIMIT_{file} = {task * 100 + file + 1}"
        use("edit", f'{{"path": "src/module_{file}.py", "text": "{text}"}}', f"module_{file}: edited")
    say()
    return Conversation(f"task-{task}", tuple(messages), meta={"task": f"task-{task}", "success": True})


def write(folder: Path, tasks: int = 16) -> None:
    """Write the runs of some tasks, a file each."""
    for name, strategy in (("before", "none"), ("after", MASKED)):
        (folder / name).mkdir(parents=True)
        for task in range(tasks):
            (folder / name / f"task-{task:02}.jsonl").write_bytes(work(task, strategy).to_json() + b"\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
