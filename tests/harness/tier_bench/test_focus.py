"""What `bench-tier focus` measures, on conversations worked by hand, and the command as a user runs it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from ctxbench.harness.models import OFFLINE
from ctxbench.harness.tier_bench.focus import BOUND, WHOLE, FocusRow, measured, rows
from ctxbench.metrics.tokens import PRIMING, TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Conversation, Message, Probe
from ctxbench.strategies.base import StrategyContext, View
from ctxbench.strategies.chain import parse
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


def found(conversation: Conversation, limit: int, *specs: str) -> dict[str, FocusRow]:
    """The row of each way."""
    ways = {spec: parse(spec) for spec in specs}
    return {row.way: row for row in rows(list(measured([conversation], ways, limit, OFFLINE, COUNTER)))}


def test_evidence_is_kept_if_its_message_is_sent() -> None:
    """Asked at the end: the window has lost the first message, the whole history has it; in turn three both do."""
    first, window = Probe("p", "Lisbon gate?", ("B12",), ("m0",)), "window(max_tokens=60, reserve=0)"
    late = found(asked(first), 60, window)
    assert [late[name].recall.mean for name in (WHOLE, BOUND, window)] == [1.0, 1.0, 0.0]
    assert [late[name].reachable.mean for name in (WHOLE, window)] == [1.0, 0.0]
    early = found(asked(Probe("p", "Lisbon gate?", ("B12",), ("m0",), after="m3")), 60, window)
    assert early[window].recall.mean == early[window].reachable.mean == 1.0


def test_the_bound_is_what_fits() -> None:
    """Of two pieces of evidence one fits beside the question: half. Not more by any way within the limit."""
    probe = Probe("p", "Lisbon?", (), ("m0", "m18"))
    conversation = asked(probe)
    question = COUNTER.message(Message("", "user", probe.question))
    sizes = [COUNTER.message(conversation.messages[at]) for at in (0, 18)]
    for limit, share in ((sum(sizes), 1.0), (sum(sizes) - 1, 0.5), (min(sizes), 0.5), (min(sizes) - 1, 0.0)):
        row = found(conversation, PRIMING + question + limit)[BOUND]
        assert row.recall.mean == share


def test_tokens_are_those_of_requests() -> None:
    """The whole history at each call, with what primes the reply; what is over the limit is counted."""
    row = found(asked(), 60, "none")["none"]
    said = [COUNTER.message(message) for message in asked().messages]
    sizes = [PRIMING + sum(said[:at]) for at in range(1, 20, 2)]
    assert (row.calls, row.tokens, row.share) == (10, sum(sizes), 1.0)
    assert row.over == sum(size > 60 for size in sizes) > 0
    assert isinstance(row.recall, Missing)


def test_what_cannot_be_asked_is_not_counted() -> None:
    """A probe without an answer, or whose evidence comes only after it."""
    probes = (Probe("a", "?", answerable=False, evidence=("m0",)), Probe("b", "?", evidence=("m18",), after="m2"))
    assert found(asked(*probes), 60)[WHOLE].probes == 0


@dataclass(frozen=True)
class Broken:
    """Fails at the third call."""

    def start(self, desk: StrategyContext) -> View:
        def view(context):  # type: ignore[no-untyped-def]
            if len(context.messages) > 4:
                raise RuntimeError("no more")
            return context

        return view


def test_a_strategy_that_fails_loses_its_conversation_for_all() -> None:
    """Ways are compared over the same conversations; why is said."""
    cells = list(measured([asked()], {"broken": Broken(), "none": parse("none")}, 60, OFFLINE, COUNTER))
    assert [cell.failed for cell in cells] == ["", "", "RuntimeError: no more", ""]
    assert {row.calls for row in rows(cells)} == {0}


def test_the_command(tmp_path: Path) -> None:
    """A user's path: a recording, one truncation, one other way, as a table and as JSON."""
    probes = (Probe("p", "Lisbon gate?", ("B12",), ("m0",)),)
    (tmp_path / "talk.jsonl").write_bytes(asked(*probes).to_json() + b"\n")
    own = "focus(limit=100, system=0, functions=0)"
    words = ("bench-tier", "focus", "talk.jsonl", "-t", "importance", "-s", "last_turn", "-s", own, "--limit", "2100")
    shown = ctxbench(*words, cwd=tmp_path).stdout
    assert "Focus, 2,100 tokens: 1 conversation, 10 calls, 1 probe" in shown
    assert f"\n{own} " in shown
    exact = json.loads(ctxbench(*words, "--json", cwd=tmp_path).stdout)
    ways = {row["way"]: row for row in exact["rows"]}
    assert list(ways) == [WHOLE, BOUND, "focus(limit=2100)", "last_turn", own]
    assert [row["recall"][0] for row in ways.values()] == [1.0, 1.0, 1.0, 0.0, 1.0]
    assert ways[WHOLE]["share"] == 1.0 > ways[own]["share"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("smok",), "did you mean 'smoke'"),
        (("smoke", "--limit", "1000"), "limit=1000 leaves no tokens for the conversation"),
        (("smoke", "-s", "windw"), "'window'"),
    ],
)
def test_bad_input(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    """One error that says what to do, and nothing else."""
    done = ctxbench("bench-tier", "focus", *words, cwd=tmp_path, code=2)
    assert says in done.stderr
    assert not done.stdout
