"""`evidence_only`: what it is told, the question, and nothing else."""

from __future__ import annotations

from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context
from ctxbench.strategies.bounds import EvidenceOnly
from tests.builders import answering, calling, talk

TALK = talk(
    ("system", "be brief"),
    ("user", "look it up"),
    calling("c", "1"),
    answering("r", "1", "42"),
    ("system", "note"),
    ("assistant", "it is 42"),
    ("user", "thanks"),
)


def sent(*evidence: str, question: bool = True) -> list[str]:
    services = RecordedContext(ConversationIndex(TALK, TokenCounter()))
    asked = Messages.of((Message("q", "user", "what was it?"),)) if question else Messages()
    context = EvidenceOnly(evidence).start(services)(Context(Messages.of(TALK.messages) + asked))
    return [message.id for message in context.messages]


def test_the_evidence_and_the_question() -> None:
    """System messages stay in their places; a message that is not named goes."""
    assert sent("m5") == ["m0", "m4", "m5", "q"]
    assert sent() == ["m0", "m4", "q"]


def test_a_result_brings_its_call() -> None:
    """A tool result is no request without its call, and a call none without its results."""
    assert sent("r") == ["m0", "c", "r", "m4", "q"]
    assert sent("c") == ["m0", "c", "r", "m4", "q"]


def test_a_name_that_nobody_has() -> None:
    """It names nothing, and nothing is sent for it."""
    assert sent("nobody") == ["m0", "m4", "q"]
    assert sent("m1", question=False) == ["m0", "m1", "m4", "m6"]
