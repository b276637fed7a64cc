"""The `offline` summariser."""

from __future__ import annotations

import pytest

from ctxbench.harness.models.embedding import ExtractiveSummariser
from ctxbench.metrics.extract import extract
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.strategies.base import ModelError, Prompt

COUNTER = TokenCounter()


def asked(*material: str, most: int = 40) -> Prompt:
    return Prompt("Summarise:\n{conversation}", material, most)


def test_extracts_from_the_material() -> None:
    """The reply is the extract of the material within the prompt's limit; it costs nothing and counts its tokens."""
    material = ("Ana: we decided on Postgres.", "Bob: fine. The budget is $4,500.", "Ana: lovely weather, isn't it?")
    reply = ExtractiveSummariser().complete(asked(*material, most=16), COUNTER)
    assert reply.text == extract(material, 16, COUNTER.text) == "Ana: we decided on Postgres.\nThe budget is $4,500."
    assert (reply.model, reply.cost) == ("offline", 0.0)
    assert reply.input_tokens == sum(COUNTER.text(each) for each in material)
    assert reply.output_tokens == COUNTER.text(reply.text) <= 16


def test_reads_no_instruction() -> None:
    """Another instruction gets the same reply."""
    one, other = (Prompt(text, ("Ana has 3 cats.",), 40) for text in ("Summarise.", "Answer in verse."))
    assert ExtractiveSummariser().complete(one, COUNTER) == ExtractiveSummariser().complete(other, COUNTER)


@pytest.mark.parametrize("material", [(), ("",), (" \n", "\t")])
def test_no_material_is_an_error(material: tuple[str, ...]) -> None:
    """A summary of nothing is refused, and the error says so."""
    with pytest.raises(ModelError, match="the material is empty"):
        ExtractiveSummariser().complete(asked(*material), COUNTER)


def test_no_room_is_an_error() -> None:
    """A limit with no room for a character is refused, and the error names it."""
    with pytest.raises(ModelError, match="nothing fits in 0 tokens"):
        ExtractiveSummariser().complete(asked("Hello there.", most=0), COUNTER)
