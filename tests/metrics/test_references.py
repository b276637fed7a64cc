"""Which earlier message each message refers to."""

from hypothesis import given

from ctxbench.harness.invariants import conversations
from ctxbench.metrics.grounding import references
from ctxbench.scenarios.model import Conversation, Message, Probe, ToolCall
from tests.builders import talk
from tests.examples import examples

LONG = "the second pump in the north hall runs hot after four hours"


def called(name: str, arguments: str) -> Message:
    return Message(name, "assistant", "", calls=(ToolCall(f"c{name}", "find", arguments),))


def test_a_call_refers_to_the_latest_message_that_said_its_argument() -> None:
    """Said by the user, then by the tool: the tool's was the latest. The model's own words are nobody's source."""
    said = talk(
        ("user", "Order A-7712, please."),
        called("m1", '{"order": "A-7712"}'),
        Message("m2", "tool", "A-7712: shipped", answers="cm1"),
        ("assistant", "A-7712 is on its way, shipped."),
        ("user", "Cancel it."),
        called("m5", '{"order": "A-7712"}'),
    )
    assert [tuple(each) for each in references(said)] == [(1, 0, "call"), (3, 2, "call"), (5, 2, "call")]


def test_eight_words_in_a_row_are_a_quote() -> None:
    """Case and punctuation aside; seven are none."""
    said = talk(
        ("user", LONG),
        ("assistant", "Noted."),
        ("user", f"You said: {LONG.upper()}!"),
        ("user", "the second pump in the north hall"),
    )
    assert [tuple(each) for each in references(said)] == [(2, 0, "quote")]


def test_a_form_that_is_always_used_is_no_quote() -> None:
    """What three messages have said already is a form."""
    said = talk(*[("user", LONG)] * 6)
    assert [tuple(each) for each in references(said)] == [(1, 0, "quote"), (2, 1, "quote")]


def test_a_probe_refers_to_its_evidence_when_it_is_asked() -> None:
    """At the end, or after the message it names; never to the system prompt or to what comes later."""
    said = Conversation(
        "talk",
        (
            Message("s", "system", "x"),
            Message("a", "user", "one"),
            Message("b", "user", "two"),
            Message("c", "user", "three"),
        ),
        probes=(Probe("p", "?", evidence=("s", "a", "c")), Probe("q", "?", evidence=("a", "c"), after="b")),
    )
    assert [tuple(each) for each in references(said)] == [(2, 1, "probe"), (3, 1, "probe"), (3, 3, "probe")]


@examples(50)
@given(conversation=conversations())
def test_references_go_back_and_are_there_once(conversation: Conversation) -> None:
    """To an earlier message that is no system message (a probe may ask of the last one), a pair once, in order."""
    found = references(conversation)
    assert found == sorted(found)
    assert len({each[:2] for each in found}) == len(found)
    for at, to, kind in found:
        assert to < at or (kind == "probe" and to == at)
        assert conversation.messages[to].role != "system"
