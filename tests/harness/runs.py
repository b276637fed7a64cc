"""Small runs for tests: a recording of many conversations, a plan, and the bytes that come of it."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ctxbench.harness.engine.plan import Plan, RunInputs
from ctxbench.scenarios.model import Conversation
from tests.builders import answering, calling, talk

STRATEGIES = ("none", "window(max_tokens=400)", "last_turn")


def recording(folder: Path, conversations: int = 40, turns: int = 12, size: int = 20) -> Path:
    """A JSONL file of conversations, each a little different; tool results have twice `size` words."""
    path = folder / "some.jsonl"
    with path.open("wb") as file:
        for number in range(conversations):
            said = talk(("system", "You help."))
            messages = list(said.messages)
            for turn in range(turns):
                messages += [
                    talk(("user", f"question {number} {turn}"), name="x").messages[0],
                    calling("c", f"call{turn}"),
                    answering("r", f"call{turn}", f"result {number * turn} " * size),
                    talk(("assistant", f"answer {turn}")).messages[0],
                ]
            named = tuple(msgspec.structs.replace(each, id=f"m{at}") for at, each in enumerate(messages))
            file.write(Conversation(f"c{number}", named).to_json() + b"\n")
    return path


def bytes_of(folder: Path) -> dict[str, str]:
    """A digest of every file of a run but the timings."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and "timings" not in path.parts]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def plan(*names: object, strategies: tuple[str, ...] = STRATEGIES, **more: Any) -> Plan:
    return Plan(RunInputs(tuple(map(str, names))), strategies, **more)


def fail(monkeypatch: pytest.MonkeyPatch, kind: type[Any], said: str) -> None:
    """Make strategies of a kind raise in the conversations whose first user message starts so."""
    whole = kind.start

    def start(self: Any, services: object) -> object:
        view = whole(self, services)

        def failing(context: Any) -> object:
            if context.messages[1].text.startswith(said):
                raise IndexError("list index out of range")
            return view(context)

        return failing

    monkeypatch.setattr(kind, "start", start)


def processes(name: str) -> list[int]:
    """The processes that call themselves so."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if command.startswith(name.encode()):
                found.append(int(entry.name))
    return found
