"""What broke the prefix of a prompt, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxbench.harness.bill.requests import RunRequests, breaks
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation, Message
from tests.harness.runs import plan

SAID = tuple(Message(f"{role[0]}{at}", role, f"{role} {at}") for at in range(3) for role in ("user", "assistant"))
NOTE = Message("n", "user", "a note")

SOURCE = """
from dataclasses import dataclass
from ctxbench.scenarios.model import Message, Tool
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context

NOTE, OTHER = Message("n", "user", "a note"), Message("n", "user", "another note")

@dataclass(frozen=True)
class Sends:
    what: str = ""

    def start(self, services):
        def view(context):
            said = tuple(context.messages)
            first = len(said) == 1
            sent = {
                "dropped": said if first else said[1:],
                "inserted": said if first else (NOTE, *said),
                "replaced": said if first else (NOTE, *said[1:]),
                "rewritten": (NOTE if first else OTHER, *said),
                "taken back": (NOTE, *said) if first else said,
            }.get(self.what, said)
            tools = (Tool("load", "loads", "{}"),) if self.what == "tools" and not first else ()
            return Context(Messages.of(sent), (), tools)

        return view
"""


@pytest.mark.parametrize("cause", ["dropped", "inserted", "replaced", "rewritten", "taken back", "tools"])
def test_causes(cause: str, tmp_path: Path) -> None:
    """The second call does one thing to the first message; all of the first prompt is lost."""
    (tmp_path / "sends.py").write_text(SOURCE)
    (tmp_path / "t.jsonl").write_bytes(Conversation("t", SAID[:4]).to_json() + b"\n")
    strategy = f"{tmp_path / 'sends.py'}:Sends(what={cause!r})"
    execute(plan(tmp_path / "t.jsonl", strategies=(strategy,)), tmp_path / "run")
    found = breaks(RunRequests(load(tmp_path / "run")))
    sent = [NOTE, SAID[0]] if cause in ("rewritten", "taken back") else [SAID[0]]
    lost = sum(map(TokenCounter().message, sent))
    assert found[["step", "kept", "lost", "before", "cause"]].to_numpy().tolist() == [[1, 0, lost, lost, cause]]


def test_what_was_reported_with_it(tmp_path: Path) -> None:
    """The strategy's own events of that step stand beside what happened; a history that grows breaks nothing."""
    said = [Message("s", "system", "Be kind.")]
    for turn in range(12):
        said += [Message(f"u{turn}", "user", f"word {turn} " * 50), Message(f"a{turn}", "assistant", "yes " * 50)]
    (tmp_path / "t.jsonl").write_bytes(Conversation("t", tuple(said)).to_json() + b"\n")
    execute(plan(tmp_path / "t.jsonl", strategies=("none", "summary(threshold=8)")), tmp_path / "run")
    found = breaks(RunRequests(load(tmp_path / "run")))
    assert set(found.strategy) == {"summary(threshold=8)"}
    assert set(found.cause) == {"replaced", "rewritten"}
    assert set(found.actions) == {"called, summarised"}
    assert (found.kept == 1).all()
