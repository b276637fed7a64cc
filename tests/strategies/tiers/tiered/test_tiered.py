"""The strategy `tiered`: what goes down, what is called back and from where, and what is refused."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.structure import calls_and_results
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation, Message, ToolCall
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, ModelError
from ctxbench.strategies.events import Alarmed, Event, Failed, Moved, OverBudget, Recalled
from ctxbench.strategies.tiers.focus import Focus
from ctxbench.strategies.tiers.jobs import Trigger
from ctxbench.strategies.tiers.tiered import Tiered
from ctxbench.strategies.tiers.tiered.tiers import Tiers
from tests.examples import examples
from tests.strategies.tiers.tiered.builders import COUNTER, Talk, chat, memory

SMALL = Tiered(limit=400, working=150, archive=300, recall=150, k=2)
PIN = "The pin of the garage door is 4711-A, please remember it."


def test_what_fits_is_sent_as_it_is() -> None:
    """As long as all that was said is within the limit, it is the history itself, and nothing happens."""
    talk = Talk(Tiered(), chat(PIN, "What is the pin of the garage?"))
    for sent in talk.play():
        assert list(sent.messages) == list(talk.conversation.messages[: sent.at])
        assert sent.events == ()


def test_what_the_question_is_like_comes_back_in_its_place() -> None:
    """The first message left Focus long ago. It is found, read where it is, and stands before what is newest."""
    talk = Talk(SMALL, chat(PIN, "Which pin has the garage door?"))
    *_, last = talk.play()
    assert last.ids[:2] == ["sys", "u1"]
    assert last.messages[1] == talk.conversation.messages[1]
    (recalled,) = (event for event in last.of(Recalled) if "u1" in event.sources)  # type: ignore[attr-defined]
    assert isinstance(recalled, Recalled)
    assert recalled.kind in ("working", "archive", "rag")
    assert recalled.scores
    assert COUNTER.message(last.messages[0]) < 400
    assert sum(map(COUNTER.message, last.messages)) <= 400


def test_a_message_is_in_one_tier_and_goes_down_step_by_step() -> None:
    """Every message leaves Focus once; what is in the tiers below and in Focus together is what was said."""
    talk, gone = Talk(SMALL, chat(PIN, "Well?", filler=30)), Counter[str]()
    for sent in talk.play():
        tiers = talk.opened.tiers
        below = [id for tier in ("working", "archive", "rag") for id in tiers.migration.ids(tier)]
        said = {message.id for message in talk.conversation.messages[: sent.at] if message.role != "system"}
        assert sorted([*below, *tiers.focus]) == sorted(said)
        assert tiers.migration.tokens("working") <= 150
        assert tiers.migration.tokens("archive") <= 300
        for event in sent.of(Moved):
            assert isinstance(event, Moved)
            if event.source == "focus":
                gone.update(event.sources)
                assert event.tokens == sum(
                    COUNTER.message(each) for each in talk.conversation.messages if each.id in event.sources
                )
    assert set(gone.values()) == {1}
    assert all(tiers.migration.ids(tier) for tier in ("working", "archive", "rag"))


def test_all_edges_of_the_migration_are_used() -> None:
    """On the acceptance load, its sizes and the tiers' a fraction of the document's: each edge of its state machine
    moves messages, each tier answers look-ups, and the archive has its dictionary. What Focus sends is lent, not moved.
    """
    talk = Talk(Tiered(2048, working=1024, archive=8192, recall=1024), next(scenario("mem_002", 60)))
    moved, looked_up = Counter[tuple[str, str]](), Counter[str]()
    for sent in talk.play():
        moved.update(move for event in sent.of(Moved) for move in [(event.source, event.to)] * len(event.sources))  # type: ignore[attr-defined]
        looked_up.update(event.kind for event in sent.of(Recalled))  # type: ignore[attr-defined]
    edges = {("focus", "working"), ("working", "archive"), ("archive", "rag")}
    assert moved.keys() == edges | {("archive", "working"), ("rag", "working")}
    assert min(moved.values()) > 0
    assert looked_up.keys() >= {"working", "archive", "rag"}
    assert any(part.taught for part in talk.opened.tiers.blocks.archive.parts)


def test_a_value_that_is_named_is_called_back_and_promoted() -> None:
    """The argument of a tool call names it, no question does: it is a reference, and comes up to Working."""
    said = chat("The order is ORD-20417.", "Go on.", filler=20)
    calling = Message("call", "assistant", "", calls=(ToolCall("c1", "look", '{"order": "ORD-20417"}'),))
    result = Message("result", "tool", "ok", answers="c1")
    talk = Talk(SMALL, Conversation("talk", (*said.messages[:-1], calling, result, Message("end", "assistant", "so"))))
    *_, last = talk.play()
    assert "u1" in last.ids
    assert [(event.sources, event.scores) for event in last.of(Recalled)] == [(("u1",), ())]  # type: ignore[attr-defined]
    assert talk.opened.tiers.migration.tier("u1") == "working"


def test_a_value_that_focus_has_is_not_called_back() -> None:
    """The newest message that says it is sent anyway: that is a look-up that Focus answers."""
    said = chat("The order is ORD-20417.", "ORD-20417 again, please.", filler=20).messages
    twice = (Message("m", "user", "ORD-20417"), Message("n", "assistant", "yes"))
    talk = Talk(SMALL, Conversation("talk", (*said[:-2], *twice, *said[-2:])))
    *_, last = talk.play()
    found = [event for event in last.of(Recalled) if isinstance(event, Recalled) and event.kind == "focus"]
    assert [event.sources for event in found] == [("m",)]


def test_a_quote_is_called_back() -> None:
    """Eight words in a row, among many that share single words with it."""
    said = "we agreed that the blue pump stays where it is until monday"
    noise = [f"we agreed number {at}: that the pump is until where" for at in range(20)]
    *_, last = Talk(SMALL, chat(said, *noise, f"Who wrote '{said}'?", filler=10)).play()
    assert "u1" in last.ids


def test_calls_come_back_with_their_results_and_a_user_message_first() -> None:
    """A result that is found brings its call, and the user message that they answer."""
    messages = [Message("sys", "system", "be brief"), Message("ask", "user", "Look it up.")]
    messages += [
        Message("call", "assistant", "", calls=(ToolCall("c1", "look"), ToolCall("c2", "look"))),
        Message("r1", "tool", "the voltage of the zeppelin is 230", answers="c1"),
        Message("r2", "tool", "nothing", answers="c2"),
        Message("said", "assistant", "found"),
    ]
    rest = chat("x", "What was the voltage of the zeppelin?", filler=20).messages[1:]
    talk = Talk(SMALL, Conversation("talk", (*messages, *rest)))
    *_, last = talk.play()
    assert last.ids[:5] == ["sys", "ask", "call", "r1", "r2"]
    assert calls_and_results(last.messages) == (0, 0)


def test_what_was_called_back_stays_for_the_turn() -> None:
    """It is searched for once a turn: at the calls after it the same is sent again, and nothing is looked up anew."""
    said = chat(PIN, "Which pin has the garage door?", filler=20).messages
    more = [Message(f"t{at}", "assistant", "hm", calls=(ToolCall(f"c{at}", "t"),)) for at in range(3)]
    results = [Message(f"r{at}", "tool", "ok", answers=f"c{at}") for at in range(3)]
    steps = [each for pair in zip(more, results, strict=True) for each in pair]
    talk = Talk(SMALL, Conversation("talk", (*said[:-1], *steps, said[-1])))
    first, *later = list(talk.play())[-4:]
    assert first.of(Recalled)
    for sent in later:
        assert "u1" in sent.ids
        assert not sent.of(Recalled)


def test_the_same_id_with_other_content() -> None:
    """A stage before replaces what has gone down already: the new content counts, and is found, the old is not."""
    said = chat("The code of the safe is KX-1181.", "What is the code of the safe?", filler=20)
    talk = Talk(SMALL, said)
    list(talk.play(list(said.calls())[:-1]))
    assert "u1" in talk.opened.tiers
    other = Message("u1", "user", "The code of the safe is QP-7703.")
    talk.conversation = Conversation("talk", (said.messages[0], other, *said.messages[2:]))
    talk.services = talk.opened._services = RecordedContext(ConversationIndex(talk.conversation, COUNTER))
    talk.opened.tiers.record = talk.services.record
    (last,) = talk.play([len(said.messages) - 1])
    sent = {message.id: message for message in last.messages}
    assert sent.get("u1", other) == other
    assert talk.opened.tiers.search("QP-7703", 1)[0][0] == "u1"
    assert talk.opened.tiers.containing(("KX-1181",)) is None


def test_a_message_larger_than_a_tier() -> None:
    """It is refused in Focus, and goes past Working, and past the Archive, to where there is no limit."""
    said = chat(PIN, "Which pin has the garage door?", filler=4).messages
    large = Message("large", "user", "one two three " * 200)
    talk = Talk(SMALL, Conversation("talk", (*said[:3], large, Message("a", "assistant", "yes"), *said[3:])))
    sent = list(talk.play())
    assert any(each.of(OverBudget) for each in sent)
    assert talk.opened.tiers.migration.tier("large") == "rag"
    moves = [event for each in sent for event in each.of(Moved) if "large" in event.sources]  # type: ignore[attr-defined]
    assert [(event.source, event.to) for event in moves] == [("focus", "rag")]  # type: ignore[attr-defined]


def test_an_embedder_that_fails() -> None:
    """It is said, and the words are searched instead; without words nothing is."""
    for retrievers, found in ((("vector", "bm25"), True), (("vector",), False)):
        talk = Talk(
            Tiered(limit=400, working=150, archive=300, recall=150, k=2, retrievers=retrievers),  # type: ignore[arg-type]
            chat(PIN, "Which pin has the garage door?", filler=20),
        )

        def fails(*given: object) -> np.ndarray[object, np.dtype[np.float32]]:
            raise ModelError("no embedder today")

        talk.opened.tiers.index._embed = fails  # type: ignore[assignment]
        *_, last = talk.play()
        assert last.of(Failed)
        assert ("u1" in last.ids) == found


# fewer tiers, and quotas


QUESTION = "Which pin has the garage door, 4711-A?"
SAID = chat(PIN, QUESTION, filler=20)
"""The pin is the oldest of some 900 tokens, of which Focus holds 400."""


def test_focus_alone_is_focus() -> None:
    """With one tier the same is sent as by `focus` with the same truncation, at every call."""
    alone, focus = (
        kind.start(RecordedContext(ConversationIndex(SAID, COUNTER)))
        for kind in (Tiered(tiers=1, limit=400, recall=150), Focus(400, "tail_cutoff", 50, 50))
    )
    for at in SAID.calls():
        context = Context(Messages.prefix(SAID.messages, at))
        assert list(alone(context).messages) == list(focus(context).messages)


@pytest.mark.parametrize(
    ("question", "rules", "found"),
    [
        (QUESTION, {"tiers": 2, "working": 150}, False),  # Working had to evict it
        (QUESTION, {"tiers": 2, "working": 1_500}, True),
        (QUESTION, {"tiers": 3, "working": 150, "archive": 300}, False),
        (QUESTION, {"tiers": 3, "working": 150, "archive": 1_500}, True),
        (
            "Which pin has the garage door?",
            {"tiers": 3, "working": 150, "archive": 1_500},
            False,
        ),  # only a search would
        ("Which pin has the garage door?", {"tiers": 4, "working": 150, "archive": 1_500}, True),
    ],
)
def test_what_each_tier_adds(question: str, rules: dict[str, int], found: bool) -> None:
    """Working and Archive keep what they have room for, and it is found by its value; RAG is searched."""
    talk = Talk(Tiered(limit=400, recall=150, k=2, **rules), chat(PIN, question, filler=20))
    *_, last = talk.play()
    assert ("u1" in last.ids) == found
    assert talk.opened.tiers.lost("u1") == (not found and question == QUESTION)


def test_a_message_larger_than_all_tiers_is_lost() -> None:
    """It is refused in Focus, and no tier below has room for it: it moves to nowhere, and is not found."""
    large = Message("large", "user", "The code is KX-1181. " + "one two three " * 200)
    said = chat(PIN, "What is KX-1181?", filler=4).messages
    talk = Talk(
        Tiered(tiers=2, limit=400, working=150, recall=150),
        Conversation("talk", (*said[:3], large, Message("a", "assistant", "yes"), *said[3:])),
    )
    moves = [event for each in talk.play() for event in each.of(Moved) if "large" in event.sources]  # type: ignore[attr-defined]
    assert [(event.source, event.to) for event in moves] == [("focus", "")]  # type: ignore[attr-defined]
    assert talk.opened.tiers.lost("large")
    assert talk.opened.tiers.containing(("KX-1181",)) is None


def test_rag_loses_what_is_used_least() -> None:
    """Ten messages have room in RAG. The one that is read again and again stays, however old it is."""
    tiers, _, now = demoted(Tiered(working=10, archive=10, rag=100), 12)
    oldest = tiers.migration.ids("rag")[0]
    for at in range(12, 60):
        tiers.read(oldest, Trigger.EXPLICIT_ACCESS, now)
        now = tiers.tick(None)
        tiers.add(Message(f"m{at}", "user", f"message {at}"), 10, now)
        tiers.keep((), now)
        tiers.run(now, 0.5)
    assert tiers.migration.tokens("rag") <= 100
    assert tiers.migration.tier(oldest) in ("working", "rag")


@examples(40)
@pytest.mark.parametrize("rules", [{"tiers": 2}, {"tiers": 3}, {"rag": 40, "archive_policy": "fifo"}], ids=str)
@given(steps=st.lists(st.tuples(st.integers(0, 15), st.booleans(), st.sampled_from([10, 30, 200])), max_size=60))
def test_what_is_not_lost_can_be_found(rules: dict[str, Any], steps: list[tuple[int, bool, int]]) -> None:
    """Kept or let go, small or too large for any tier: no tier exceeds its limit, and the index is what they have."""
    tiers, _ = memory(Tiered(working=50, archive=80, **rules))
    for number, kept, tokens in steps:
        now = tiers.tick(None)
        id = f"m{number}"
        tiers.add(Message(id, "user", f"message {number} of {tokens}"), tokens, now)
        tiers.keep({id} if kept else (), now)
        tiers.run(now, 0.5)
        held = [id for tier in tiers.migration.tiers for id in tiers.migration.ids(tier)]
        assert sorted(held) == sorted(tiers.index.numbers)
        for tier in tiers.migration.tiers.values():
            assert tiers.migration.tokens(tier.name) <= tier.quota.hard


# the memory alone


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 2), st.booleans()), max_size=60))
def test_the_memory_never_loses_a_message(steps: list[tuple[int, int, bool]]) -> None:
    """Said, said again with other content, kept or let go, read: each message is in one tier, with its last content."""
    tiers, _ = memory()
    last: dict[str, Message] = {}
    for number, version, kept in steps:
        now = tiers.tick(None)
        message = Message(f"m{number}", "user", f"message {number}, version {version}")
        last[message.id] = message
        tiers.add(message, 10, now)
        tiers.keep({message.id} if kept else (), now)
        tiers.run(now, 0.5)
        for id, said in last.items():
            if id in tiers:
                assert id not in tiers.focus
                assert tiers.read(id, Trigger.CACHE_MISS, now) in ("working", "archive", "rag")
                assert tiers.migration.get(id, now) == said
            else:
                assert tiers.focus[id] == (said, 10)


def demoted(rules: Tiered, messages: int) -> tuple[Tiers, list[Event], float]:
    """Return tiers with messages of ten tokens below Focus, a second apart."""
    tiers, events = memory(rules)
    now = 0.0
    for at in range(messages):
        now = tiers.tick(None)
        tiers.add(Message(f"m{at}", "user", f"message {at}"), 10, now)
        tiers.keep((), now)
        tiers.run(now, 0.5)
    return tiers, events, now


def test_the_retrieval_alarm_is_raised_and_ends() -> None:
    """Ninety messages of RAG are named at once, more than the moves of one call: the rest wait for the next call."""
    tiers, events, now = demoted(Tiered(working=1_000, archive=10), 300)
    for id in tiers.migration.ids("rag")[:90]:
        tiers.read(id, Trigger.FOCUS_REFERENCE, now)
    for later in (now, now + 5, now + 6):
        tiers.run(later, 0.5)
    assert not [event for event in events if isinstance(event, Alarmed) and event.reading == "retrieval latency"][1:]
    tiers.read(tiers.migration.ids("rag")[0], Trigger.FOCUS_REFERENCE, now + 7)
    tiers.run(now + 7, 0.5)
    alarms = [event for event in events if isinstance(event, Alarmed) and event.reading == "retrieval latency"]
    assert alarms == [Alarmed("retrieval latency", 5.0, 0.5), Alarmed("retrieval latency", 0.0, 0.5, up=False)]


@pytest.mark.parametrize(("collect", "tier"), [(False, "working"), (True, "rag")])
def test_what_has_gone_cold_leaves_only_if_that_is_asked_for(collect: bool, tier: str) -> None:
    """An hour after its last use a message has no heat; Working and Archive have room. Each run moves it one tier."""
    tiers, _, now = demoted(Tiered(working=1_000, archive=1_000, collect=collect), 3)
    for hour in range(1, 5):
        tiers.run(now + 3_600 * hour, 0.5)
    assert {tiers.migration.tier(f"m{at}") for at in range(3)} == {tier}


@pytest.mark.parametrize("collect", [False, True])
def test_a_store_beyond_its_limit_is_collected(collect: bool) -> None:
    """Five seconds a moved message's copy stays in the store, so it holds more than its tier: as many are to go."""
    tiers, _ = memory(Tiered(working=100, archive=1_000, collect=collect))
    now = tiers.tick(None)
    for at in range(15):
        tiers.add(Message(f"m{at}", "user", f"message {at}"), 10, now)
    tiers.keep((), now)
    tiers.run(now, 0.5)
    beyond = tiers.working.tokens - 100
    assert beyond > 0
    waiting = list(tiers.migration.jobs.values())
    assert {(job.trigger, job.source, job.to) for job in waiting} == (
        {(Trigger.GC_PRESSURE, "working", "archive")} if collect else set()
    )
    assert len(waiting) == (math.ceil(beyond / 10) if collect else 0)
    before = tiers.migration.tokens("working")
    tiers.run(now + 1, 0.5)
    assert tiers.migration.tokens("working") == before - 10 * len(waiting)
