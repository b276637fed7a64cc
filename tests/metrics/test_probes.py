"""Evidence of probes in what is sent, rankings against evidence: by hand, and against obvious versions."""

import math
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.probes import (
    MEASURES,
    Evidence,
    PlacedProbe,
    RetainedEvidence,
    SentText,
    State,
    placed_probes,
    ranked,
    recall,
)
from ctxbench.metrics.tokens import Ledger, TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Message, Probe, Role
from ctxbench.scenarios.view import Messages
from tests.builders import talk

COUNTER = TokenCounter()
TALK = talk(
    ("system", "You help with travel."),
    ("user", "I fly to Lisbon on Friday. My gate is B12."),
    ("assistant", "Noted."),
    ("user", "Yes."),
    ("assistant", "Anything else today?"),
)


def sent(*messages: Message | int, question: str = "q") -> SentText:
    """Build a context of recorded messages, by their place, and of others."""
    said = TALK.messages
    parts = [Messages.of((m,)) if isinstance(m, Message) else Messages.prefix(said, m + 1)[m:] for m in messages]
    return SentText(sum(parts, Messages()), said, Ledger(COUNTER, said), question)


def kept(found: SentText, at: int, stood_for: tuple[str, ...] = (), loadable: tuple[str, ...] = ()) -> RetainedEvidence:
    return found.retained(Evidence(at, TALK.messages[at]), stood_for, loadable, COUNTER.text)


def note(text: str) -> Message:
    return Message("note", "system", text)


def test_the_message_itself_is_verbatim_with_its_place() -> None:
    """The third of three messages of 5, 8 and 16 tokens or so: its middle is near the end, its tokens are its own."""
    found = sent(0, 2, 1)
    sizes = [COUNTER.message(TALK.messages[at]) for at in (0, 2, 1)]
    assert kept(found, 1) == RetainedEvidence(
        "verbatim", 1.0, sizes[2], round((sizes[0] + sizes[1] + sizes[2] / 2) / sum(sizes), 6)
    )


@pytest.mark.parametrize(
    ("text", "state", "share"),
    [
        ("[memories]\n- user: I fly to Lisbon on Friday. My gate is B12.", "verbatim", 1.0),
        ("My gate is B12. Also: I fly to Lisbon on Friday.", "verbatim", 1.0),
        ("I  fly to\nLisbon on Friday. My gate is B12.", "verbatim", 1.0),
        ("- I fly to Lisbon on Friday.", "partial", 26 / 41),
        ("The user flies to Lisbon on Friday from gate B12.", "absent", 0.0),
        ("i fly to lisbon on friday.", "absent", 0.0),
    ],
)
def test_what_the_strategy_wrote_is_read_by_sentences(text: str, state: str, share: float) -> None:
    """Whole or all sentences = verbatim, whatever the white space; some = part, by characters; other words = absent."""
    found = kept(sent(0, note(text)), 1)
    assert (found.state, found.share) == (state, pytest.approx(share))
    assert (found.tokens > 0) == (share > 0)


def test_a_short_message_must_be_a_line() -> None:
    """A "Yes." stands in many sentences by chance; it is there only where it is a line, or one behind its role."""
    assert kept(sent(note("Yes. We said so.")), 3).state == "absent"
    assert kept(sent(note("- notes\nuser: Yes.\nmore")), 3).state == "verbatim"
    assert kept(sent(note("- [2023-05-08 13:56] Caroline: Yes.")), 3).state == "verbatim"
    assert kept(sent(note("- [2023-05-08 13:56] 小明：Yes.")), 3).state == "verbatim"
    assert kept(sent(note("Yes.")), 3).state == "verbatim"


def test_other_recorded_messages_are_not_the_evidence() -> None:
    """A recorded message that says the same does not make it present: recall is of messages."""
    twin = talk(("user", "My gate is B12."), ("user", "My gate is B12."))
    found = SentText(Messages.prefix(twin.messages, 2)[1:], twin.messages, Ledger(COUNTER, twin.messages), "q")
    assert found.retained(Evidence(0, twin.messages[0]), (), (), COUNTER.text).state == "absent"


def test_states_give_way_to_better_ones() -> None:
    """A summary made of it counts only if nothing of it is there, and a placeholder only if no summary is."""
    assert kept(sent(note("they talked")), 1, stood_for=("m1",), loadable=("m1",)).state == "summary"
    assert kept(sent(note("they talked")), 1, loadable=("m1",)).state == "loadable"
    assert kept(sent(note("My gate is B12.")), 1, stood_for=("m1",), loadable=("m1",)).state == "partial"
    assert kept(sent(0), 1).state == "absent"


def test_an_answer_is_present_in_any_case_but_as_a_whole() -> None:
    """`b12` is in "B12.", not in "AB12"; the question itself does not count."""
    probe = PlacedProbe(0, Probe("p", "Is it B12?", ("b12",)), 5, (), frozenset({1}), ("b12",))
    assert sent(1).says(probe, ())
    assert sent(note("Gate b12, he said.")).says(probe, ())
    assert not sent(note("Gate AB12")).says(probe, ())
    assert not sent(0, Message("q", "user", "Is it B12?")).says(probe, ())


@pytest.mark.parametrize(
    ("answer", "text", "is_said"),
    [
        ("4", "It has 4 replicas.", True),
        ("4", "It was 2014.", False),
        ("4", "We met on 4 May 2014, in build v1.4-4.", False),
        ("2014", "We met on 4 May 2014.", True),
        ("1,200", "It cost 1200 euros.", True),
        ("1200", "It cost 1,200 euros.", True),
        ("3 May 2023", "due: 2023-05-03", True),
        ("2023-05-03", "by May 3, 2023 at the latest", True),
        ("2023-05-03", "2023年5月3日之前", True),
        ("2023-05-03", "by 4 May 2023", False),
        ("Java", "We wrote it in JavaScript.", False),
        ("四小时", "他四小时冲过终点", True),
    ],
)
def test_an_answer_is_matched_by_values_and_words(answer: str, text: str, is_said: bool) -> None:
    """Not by pieces of them, and a day or a number in any spelling; under `none` it is there by construction."""
    said = talk(("user", text), ("assistant", "Noted."))
    probe = Probe("p", "?", (answer,), after="m1")
    [placed] = placed_probes(msgspec.structs.replace(said, probes=(probe,)))
    assert placed.answers == (frozenset({0}) if is_said else frozenset())


def test_what_cannot_stand_in_a_text_is_judged_by_its_evidence() -> None:
    """Yes or no, and a sum that no evidence says: all of the evidence has to be sent, whatever else says the same. A
    number that another message has by chance is no answer, and one beside a part of the evidence is."""
    said = talk(
        ("user", "The red crates hold 17 bolts. They came on Monday."),
        ("user", "The blue crates hold 24 bolts."),
        ("assistant", "Yes, 41 people and 17 dogs were there."),
    )

    def found(answer: str, evidence: tuple[str, ...], *sent: int | Message) -> bool | None:
        probes = (Probe("p", "?", (answer,), evidence),)
        [placed] = placed_probes(msgspec.structs.replace(said, probes=probes))
        parts = [
            Messages.of((m,)) if isinstance(m, Message) else Messages.prefix(said.messages, m + 1)[m:] for m in sent
        ]
        context = SentText(sum(parts, Messages()), said.messages, Ledger(COUNTER, said.messages), "q")
        return context.says(placed, [context.retained(item, (), (), COUNTER.text) for item in placed.evidence])

    for answer in ("yes", "41"):
        assert found(answer, ("m0", "m1"), 0, 1)
        assert not found(answer, ("m0", "m1"), 0, 2)
    assert not found("17", ("m0",), 2)
    assert not found("17", ("m0",), note("17 dogs were there"))
    assert found("17", ("m0",), note("- The red crates hold 17 bolts."))
    assert found("41", (), 2)
    assert found("elephants", (), 0, 1, 2) is None


def test_only_what_was_said_before_counts() -> None:
    """Evidence and answers after the place of the probe are not asked for, nor evidence that is named twice twice."""
    probes = (
        Probe("late", "?", ("B12",), ("m1", "m1", "m4"), after="m1"),
        Probe("early", "?", ("B12",), ("m1",), after="m0"),
        Probe("end", "?", ("lisbon", " "), ("m1",)),
    )
    found = placed_probes(msgspec.structs.replace(TALK, probes=probes))
    assert [(each.probe.id, each.stop) for each in found] == [("early", 1), ("late", 2), ("end", 5)]
    assert [[one.id for one in each.evidence] for each in found] == [[], ["m1"], ["m1"]]
    assert [each.answers for each in found] == [frozenset(), frozenset({1}), frozenset({1})]


ROLES: tuple[Role, ...] = ("user", "assistant", "system")
TEXTS = st.lists(st.sampled_from(["the red fox", "a blue bird sings.", "yes", "no 42 at all.", "", "\n"]), max_size=4)


@given(st.lists(TEXTS.map(" ".join), min_size=1, max_size=5), st.lists(st.integers(0, 4)), TEXTS.map("\n".join))
def test_places_are_those_of_reading_every_message(texts: list[str], chosen: list[int], written: str) -> None:
    """Against laying all messages out one by one: what is sent as it was said is where it is."""
    said = tuple(Message(f"m{at}", ROLES[at % 3], text) for at, text in enumerate(texts))
    order = sorted({at for at in chosen if at < len(said)})
    parts = [Messages.prefix(said, at + 1)[at:] for at in order] + [Messages.of((note(written),))]
    found = SentText(sum(parts, Messages()), said, Ledger(COUNTER, said), "q")
    sizes = [COUNTER.message(message) for part in parts for message in part]
    assert found.tokens == sum(sizes)
    for at, message in enumerate(said):
        what = found.retained(Evidence(at, message), (), (), COUNTER.text)
        assert what.state in get_args(State)
        assert 0 <= what.place <= 1
        assert 0 <= what.share <= 1
        if at in order:
            before = sum(sizes[: order.index(at)])
            middle = (before + COUNTER.message(message) / 2) / sum(sizes)
            assert what == RetainedEvidence("verbatim", 1.0, COUNTER.message(message), pytest.approx(middle, abs=1e-5))


def test_by_hand() -> None:
    """b at 1 and a at 3 of {a, b}: half is found at 1, all at 5; gain 1 + ½ of 1 + 1/log₂3."""
    [found] = ranked([["b", "c", "a"]], [{"a", "b"}])
    assert found == pytest.approx(
        {"recall@1": 0.5, "recall@5": 1.0, "recall@10": 1.0, "nDCG@10": 1.5 / (1 + 1 / math.log2(3)), "MRR": 1.0}
    )


def test_nothing_recalled_scores_nothing() -> None:
    """It is a zero, measured: the strategy recalls, and recalled nothing here."""
    assert ranked([[], ["x"]], [{"a"}, {"x"}]) == [dict.fromkeys(MEASURES, 0.0), dict.fromkeys(MEASURES, 1.0)]
    assert ranked([[]], [{"a"}]) == [dict.fromkeys(MEASURES, 0.0)]


def test_recall() -> None:
    """Of two wanted one is among the first two; a second mention counts no more; nothing wanted is undefined."""
    assert recall(["a", "b", "c"], ["b", "c"], 2) == 0.5
    assert recall(["a", "a"], ["a", "a", "b"], 5) == 0.5
    assert recall([], ["a"], 5) == 0
    assert isinstance(recall(["a"], [], 5), Missing)
