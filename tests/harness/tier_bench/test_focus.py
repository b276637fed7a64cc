"""`lab tiers focus` measures conversations that are worked by hand, and runs as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxbench.harness.tier_bench.bench import BenchSetup
from ctxbench.harness.tier_bench.focus import BOUND, WHOLE, rows
from ctxbench.metrics.tokens import PRIMING, TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Conversation, Message, Probe
from tests.harness.command import ctxbench

COUNTER = TokenCounter()


def asked(*probes: Probe) -> Conversation:
    """Ten turns of 12 tokens a message or so; the gate is said in the first."""
    said = [Message("m0", "user", "The flight to Lisbon leaves from gate B12."), Message("m1", "assistant", "Noted.")]
    for at in range(2, 20, 2):
        said += [
            Message(f"m{at}", "user", f"Number {at}: the weather is nice."),
            Message(f"m{at + 1}", "assistant", "Yes."),
        ]
    return Conversation("talk", tuple(said), probes=probes)


def table(folder: Path, conversation: Conversation, limit: int, *specs: str) -> dict[str, dict[str, Any]]:
    """Return the row of each strategy."""
    run = BenchSetup(folder).run([conversation], (WHOLE, *specs))
    return {row["strategy"]: row for row in rows(run, limit)}


def test_evidence_is_kept_if_its_message_is_sent(tmp_path: Path) -> None:
    """Asked at the end: the window has lost the first message, the whole history has it; in turn three both do."""
    first, window = Probe("p", "Lisbon gate?", ("B12",), ("m0",)), "window(max_tokens=60, reserve=0.0)"
    late = table(tmp_path, asked(first), 60, window)
    assert [late[name]["context_recall"].mean for name in (WHOLE, BOUND, window)] == [1.0, 1.0, 0.0]
    assert [late[name]["answer_in_context"] for name in (WHOLE, window)] == [1.0, 0.0]
    early = table(tmp_path, asked(Probe("p", "Lisbon gate?", ("B12",), ("m0",), after="m3")), 60, window)
    assert early[window]["context_recall"].mean == early[window]["answer_in_context"] == 1.0


def test_the_bound_is_what_fits(tmp_path: Path) -> None:
    """Of two pieces of evidence one fits beside the question: half. Not more by any strategy within the limit."""
    probe = Probe("p", "Lisbon?", (), ("m0", "m18"))
    conversation = asked(probe)
    question = COUNTER.message(Message("", "user", probe.question))
    sizes = [COUNTER.message(conversation.messages[at]) for at in (0, 18)]
    for limit, share in ((sum(sizes), 1.0), (sum(sizes) - 1, 0.5), (min(sizes), 0.5), (min(sizes) - 1, 0.0)):
        row = table(tmp_path, conversation, PRIMING + question + limit)[BOUND]
        assert row["context_recall"].mean == share


def test_tokens_are_those_of_requests(tmp_path: Path) -> None:
    """The whole history at each call, with what primes the reply; what is over the limit is counted."""
    row = table(tmp_path, asked(), 60)[WHOLE]
    said = [COUNTER.message(message) for message in asked().messages]
    sizes = [PRIMING + sum(said[:at]) for at in range(1, 20, 2)]
    assert (row["calls"], row["tokens"], row["share"]) == (10, sum(sizes), 1.0)
    assert row["over"] == sum(size > 60 for size in sizes) > 0
    assert isinstance(row["context_recall"], Missing)


def test_what_cannot_be_asked_is_not_counted(tmp_path: Path) -> None:
    """A probe whose evidence comes only after it rests on nothing."""
    probes = (Probe("b", "?", evidence=("m18",), after="m2"),)
    assert table(tmp_path, asked(*probes), 60)[WHOLE]["probes"] == 0


BROKEN = """
from dataclasses import dataclass

@dataclass(frozen=True, slots=True)
class Broken:
    def start(self, services):
        def view(context):
            if "Lisbon" in context.messages[0].text:
                raise RuntimeError("no more")
            return context
        return view
"""


def test_a_strategy_that_fails_loses_its_conversation_for_all(tmp_path: Path) -> None:
    """Strategies are compared over the conversation that all finished; the other is named with the reason."""
    (tmp_path / "broken.py").write_text(BROKEN)
    other = Conversation("other", (Message("a", "user", "Hello."), Message("b", "assistant", "Hi.")))
    (tmp_path / "talk.jsonl").write_bytes(asked().to_json() + b"\n" + other.to_json() + b"\n")
    spec = "focus(recordings='talk.jsonl', limit=4096, truncations=['importance'], beside=['broken.py:Broken'])"
    (exact,) = json.loads(ctxbench("lab", "tiers", spec, "--json", cwd=tmp_path).stdout).values()
    assert [(row["conversation"], row["why"]) for row in exact["failed"]] == [
        ("talk", "RuntimeError: no more (broken.py:9)")
    ]
    assert {row["strategy"].partition("@")[0]: row.get("calls") for row in exact["rows"]} == {
        WHOLE: 1, BOUND: None, "focus(limit=4096)": 1, "broken.py:Broken": 1,
    }  # fmt: skip


def test_the_command(tmp_path: Path) -> None:
    """A user's path: a recording, one truncation, two other strategies, as a table and as JSON."""
    probes = (Probe("p", "Lisbon gate?", ("B12",), ("m0",)),)
    (tmp_path / "talk.jsonl").write_bytes(asked(*probes).to_json() + b"\n")
    own = "focus(limit=100, system=0, functions=0)"
    spec = f"focus(recordings='talk.jsonl', limit=2100, truncations=['importance'], beside=['last_turn', '{own}'])"
    shown = ctxbench("lab", "tiers", spec, cwd=tmp_path).stdout
    assert "Focus, 2,100 tokens: 1 conversation, 10 calls, 1 probe" in shown
    assert f"\n{own} " in shown
    (exact,) = json.loads(ctxbench("lab", "tiers", spec, "--json", cwd=tmp_path).stdout).values()
    by_strategy = {row["strategy"]: row for row in exact["rows"]}
    assert list(by_strategy) == [WHOLE, BOUND, "focus(limit=2100)", "last_turn", own]
    assert [row["context_recall"]["mean"] for row in by_strategy.values()] == [1.0, 1.0, 1.0, 0.0, 1.0]
    assert by_strategy[WHOLE]["share"] == 1.0 > by_strategy[own]["share"]
