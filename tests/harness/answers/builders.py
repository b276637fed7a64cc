"""Recordings with questions, for tests of answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxbench.harness.engine.plan import Plan, RunInputs
from ctxbench.scenarios.model import Conversation, Message, Probe

STRATEGIES = ("none", "window(max_tokens=60)")


def asked(name: str, port: int) -> Conversation:
    """A fact, much else, and what is asked of it; the fourth probe cannot be answered."""
    said = [("user", f"The staging port is {port}. The deploy is on 14 March 2026."), ("assistant", "I noted that.")]
    for turn in range(4):
        said += [("user", f"Line {turn}: nothing of note happens here, as on most days."), ("assistant", "I see.")]
    messages = tuple(Message(f"m{at}", role, text) for at, (role, text) in enumerate(said))  # type: ignore[arg-type]
    probes = (
        Probe("port", "What is the staging port?", (str(port),), ("m0",), "single_hop"),
        Probe("day", "When is the deploy?", ("14 March 2026", "March 14, 2026"), ("m0",), "temporal"),
        Probe("last", "Which line was the last?", ("Line 3", "3"), ("m8",), "single_hop"),
        Probe("none", "Who repaired the elevator?", (), (), "unanswerable", answerable=False),
    )
    return Conversation(name, messages, probes=probes)


def talks(folder: Path, conversations: int = 5) -> Path:
    """A file of some."""
    path = folder / "talks.jsonl"
    path.write_bytes(b"".join(asked(f"c{at}", 9000 + 7 * at).to_json() + b"\n" for at in range(conversations)))
    return path


def plan(path: Path, strategies: Sequence[str] = STRATEGIES, **more: Any) -> Plan:
    return Plan(RunInputs((str(path),)), tuple(strategies), **more)
