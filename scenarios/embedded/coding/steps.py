"""Steps that several kinds of turn in the coding scenario share."""

from __future__ import annotations

from .module import Constant, Module
from .output import grep
from .session import Session, ToolUse


def shell(command: str, output: str) -> ToolUse:
    """A command, and what it prints."""
    return "bash", {"command": command}, output


def some_module(s: Session) -> Module:
    """One that was seen before, or a new one."""
    return s.world.known() if len(s.world.modules) > 3 and s.rng.random() < 0.45 else s.world.fresh()


def read_file(s: Session, module: Module, near: str) -> ToolUse:
    """Read a module whole, or, some of the time, only the lines around a place."""
    lines = module.text.split("\n")
    if len(lines) < 160 or s.rng.random() < 0.55:
        return "read_file", {"path": module.path}, module.text
    at = next(number for number, line in enumerate(lines) if near in line)
    start = max(1, at - 20 - int(s.rng.random() * 40))
    end = min(len(lines), start + 110 + int(s.rng.random() * 120))
    return "read_file", {"path": module.path, "start": start, "end": end}, "\n".join(lines[start - 1 : end])


def grep_for(s: Session, module: Module, pattern: str, path: str) -> ToolUse:
    """Search a folder for a pattern that the module has."""
    return "grep", {"pattern": pattern, "path": path}, grep(s.world, module, pattern)


def commit_change(s: Session, module: Module, subject: str, key: str) -> str:
    """Commit what was changed; returns the id of the result's message."""
    made = s.world.commit(s.now, subject, module, author=0)
    text = f"[main {made.id}] {subject}\n Date: {s.now:%Y-%m-%d %H:%M:%S} +0000\n 2 files changed, "
    text += f"{3 + int(s.rng.random() * 30)} insertions(+), {1 + int(s.rng.random() * 6)} deletions(-)"
    return s.tool(key, "bash", {"command": f"git commit -am '{subject}'"}, text)


def offer_constant(s: Session, module: Module, constant: Constant, read: str) -> None:
    """A question on the value of a constant that was read."""
    s.look_at(module)
    s.look_at_constant(constant)
    s.offer("single_hop", "q_const", s.amount(constant, constant.value), [read], about=[constant.name])
