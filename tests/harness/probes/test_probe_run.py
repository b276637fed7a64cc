"""Probes of a run: kept whole, lost one by one, the same whatever the workers."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from ctxbench.harness.engine.plan import Plan, RunInputs
from ctxbench.harness.probes import ask_bounds, asked_probes
from ctxbench.harness.replay import ConversationIndex
from ctxbench.metrics.tokens import PRIMING
from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.model import Conversation, Message, Probe, ToolCall
from ctxbench.strategies.bounds import EvidenceOnly
from tests.builders import answering, talk
from tests.harness.probes.probe_strategies import COUNTER, STATEFUL, added, asking, found, run, some
from tests.harness.runs import bytes_of
from tests.strategies.scripted_models import Replying


def test_asking_changes_nothing_else(tmp_path: Path) -> None:
    """With and without probes every other table of a run has the same bytes, whatever strategies keep."""
    for probes in (True, False):
        run(tmp_path / str(probes), some(), "none", *STATEFUL, probes=probes)
    with_probes, without = bytes_of(tmp_path / "True"), bytes_of(tmp_path / "False")
    differ = {Path(path).parts[0] for path in with_probes if with_probes[path] != without.get(path)}
    assert differ == {"probes", "answers", "grades", "manifest.json"}


def test_workers_change_nothing(tmp_path: Path, small_shards: None) -> None:
    """One process and two workers write the same probes."""
    for jobs in (1, 2):
        run(tmp_path / str(jobs), some(), *STATEFUL[:2], jobs=jobs)
    assert bytes_of(tmp_path / "1") == bytes_of(tmp_path / "2")


def test_every_context_can_be_rebuilt(tmp_path: Path) -> None:
    """What `asked` gives back has the tokens that were counted when it was sent, and ends with the question."""
    made = run(tmp_path / "run", some(), "none", *STATEFUL)
    number = 0
    for conversation in made.conversations():
        books = ConversationIndex(conversation, COUNTER)
        for strategy in ("none", *STATEFUL, "last_turn", "evidence_only"):
            for each in asked_probes(made, conversation, strategy):
                assert each.context is not None
                tokens = PRIMING + books.tools(each.context.tools) + books.ledger.total(each.context.messages)
                assert (each.row["tokens_sent"], each.context.messages[-1]) == (tokens, each.question)
                number += 1
    assert number == len(made.table("probes")) > 50


def test_the_bounds_are_in_every_run(tmp_path: Path) -> None:
    """last_turn and evidence_only are asked though they were not named, and last_turn is not asked twice if it was."""
    conversation = asking(Probe("p", "Which code in turn 3?", ("K300",), ("m7",)))
    for strategies in (("none",), ("none", "last_turn")):
        table = run(tmp_path / str(len(strategies)), conversation, *strategies).table("probes")
        states = {str(row.strategy): list(row.evidence_state) for row in table.itertuples()}
        assert states == {"none": ["verbatim"], "last_turn": ["absent"], "evidence_only": ["verbatim"]}
        assert len(table) == 3
    with pytest.raises(SpecError, match="a bound, and no strategy to compare"):
        Plan(RunInputs(("smoke",)), ("none", "evidence_only | window(messages=3)"))


def test_a_question_is_asked_where_it_belongs() -> None:
    """After the message that it names, whatever was called by then; before any call; at the end."""
    first = Probe("first", "?", after="m0")
    conversation = asking(Probe("end", "?"), Probe("m3", "?", after="m3"), first, Probe("m4", "?", after="m4"))
    asked = found(conversation, "none")
    assert [(row["probe"], row["at"], row["step"]) for row in asked] == [
        ("first", 1, None),
        ("m3", 4, 1),
        ("m4", 5, 1),
        ("end", 21, 9),
    ]
    assert [row["kept"] for row in asked] == [0, 4, 4, 20]
    assert [added(row) for row in asked] == [[(0, 1), (-1, 0)], [(-1, 0)], [(4, 5), (-1, 0)], [(20, 21), (-1, 0)]]


def test_a_conversation_without_calls() -> None:
    """A history that nobody answered is asked as any other."""
    [asked] = found(
        replace(talk(("user", "My gate is B12.")), probes=(Probe("p", "Gate?", ("B12",), ("m0",)),)), "none"
    )
    assert (asked["step"], asked["evidence_state"], asked["answer"]) == (None, ["verbatim"], True)


def test_calls_for_probes_are_in_no_bill(tmp_path: Path) -> None:
    """A summary that a question set off is among the probe's own events, and not in the run's."""
    conversation = asking(*(Probe(f"p{at}", "?", ("x",), ("m1",), after=f"m{at}") for at in range(2, 20)))
    spec = "summary(threshold=4, every=3, max_summary_tokens=40)"
    asked, plain = (run(tmp_path / str(probes), conversation, spec, probes=probes) for probes in (True, False))
    assert asked.table("events").equals(plain.table("events"))
    own = [json.loads(event)["event"] for events in asked.probes(spec).events for event in events]
    assert {"called", "summarised"} <= set(own)


def test_what_stands_for_evidence() -> None:
    """A summarised message is there through its summary only, an archived result only to be loaded, and by what key."""
    long = "\n".join(f"row {at} is {at * 7919 % 1000}" for at in range(300))
    call = Message("c", "assistant", calls=(ToolCall("1", "look", "{}"),))
    said = [
        ("user", "hi"),
        call,
        answering("r", "1", long),
        ("assistant", "done"),
        ("user", "ok"),
        ("assistant", "yes"),
    ]
    probe = Probe("p", "What was in it?", (), ("r",))
    conversation = replace(talk(("system", "s"), *said), probes=(probe,))  # type: ignore[arg-type]
    [archived] = found(conversation, "archive(threshold=100)")
    assert archived["evidence_state"][0] in ("loadable", "partial")
    assert archived["loadable"] == ["r"]
    assert archived["tools"] is not None
    [summarised] = found(conversation, "summary(threshold=1, max_summary_tokens=60)")
    assert summarised["evidence_state"] == ["summary"]
    [placed] = found(conversation, "archive(threshold=100, trigger='keyword', keywords=('never',))")
    assert placed["evidence_state"] == archived["evidence_state"]
    assert (placed["loadable"], placed["loadable_by"], placed["tools"]) == (["r"], [""], None)
    [kept] = found(conversation, "archive(threshold=100, trigger='keyword', keywords=('What',))")
    assert (kept["evidence_state"], kept["loadable"], kept["tools"]) == (["verbatim"], [], None)


def test_a_probe_that_fails_costs_itself(tmp_path: Path, plugin: str) -> None:
    """The strategy raises for one question: that one has its reason, the others and all steps are there."""
    conversation = asking(Probe("bad", "boom?"), Probe("good", "fine?", ("K100",), ("m3",)))
    spec = f"{plugin}:Counts(fails_on='boom')"
    made = run(tmp_path / "run", conversation, "none", spec)
    assert set(made.table("results").status) == {"ok"}
    bad, good = asked_probes(made, conversation, made.manifest.plan.strategies[1])
    assert (bad.row["failed"], bad.context) == ("ValueError: no idea (mine.py:16)", None)
    assert (good.row["failed"], good.evidence) == ("", {"m3": "verbatim"})


def test_odd_probes(tmp_path: Path) -> None:
    """No gold, no evidence, unanswerable, in another language, the same id twice: each is asked, and none is a 0.

    A gold that nobody said can be concluded from its evidence."""
    conversation = asking(
        Probe("same", "What is the code?"),
        Probe("same", "第三轮的代码是什么？", ("K300",), ("m7",)),
        Probe("none", "Who won?", answerable=False),
        Probe("probe", "Gold that nobody said?", ("purple",), ("m1",)),
    )
    made = run(tmp_path / "run", replace(conversation, id="odd"), "none")
    rows = made.probes("none")
    assert [list(states) for states in rows.evidence_state] == [[], ["verbatim"], [], ["verbatim"]]
    assert rows.answer.tolist() == [None, True, None, True]
    assert rows.evidence_place.isna().tolist() == [True, False, True, False]
    assert [each.question.id for each in asked_probes(made, conversation, "none")] == []
    assert [each.question.id for each in asked_probes(made, made.conversation("odd"), "none")] == [
        "probe:same",
        "probe:same#2",
        "probe:none",
        "probe:probe",
    ]


def test_a_bound_needs_no_replay() -> None:
    """evidence_only is told each probe's own evidence, and no call of the conversation is made for it."""
    conversation = asking(Probe("a", "?", ("K100",), ("m3",)), Probe("b", "?", ("K200",), ("m5", "m6")))
    probed = ask_bounds(ConversationIndex(conversation, COUNTER), EvidenceOnly(), Replying())
    assert [added(row) for row in probed] == [[(0, 1), (3, 4), (-1, 0)], [(0, 1), (5, 7), (-1, 0)]]
    assert all(row["answer"] for row in probed)


@pytest.fixture
def locomo(recordings: Path) -> list[Conversation]:
    from ctxbench.scenarios.source import Problems

    return list(RunInputs((str(recordings / "locomo"),)).read(Problems(strict=False)))[:1]


def test_on_real_conversations_none_keeps_most(locomo: list[Conversation]) -> None:
    """The whole history keeps all evidence, so no window and no summary keeps more, in no conversation."""
    for conversation in locomo:
        shares = {}
        for spec in ("none", "window(max_tokens=8000)", "summary(every=20)", "smart(window=8000)"):
            states = [state for row in found(conversation, spec) for state in row["evidence_state"]]
            shares[spec] = sum(state == "verbatim" for state in states) / len(states)
        assert shares["none"] == max(shares.values()) == 1
