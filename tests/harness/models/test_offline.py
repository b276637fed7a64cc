"""The `offline` summariser."""

from __future__ import annotations

import pytest

from ctxbench.harness.models.embedding import ExtractiveSummariser
from ctxbench.metrics.extract import extract
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.strategies.base import ModelError, Prompt

COUNTER = TokenCounter()


def test_extracts_from_the_material() -> None:
    """The reply is the extract of the material within the limit, whatever the instruction; it costs nothing."""
    material = ("Ana: we decided on Postgres.", "Bob: fine. The budget is $4,500.", "Ana: lovely weather, isn't it?")
    reply = ExtractiveSummariser().complete(Prompt("Summarise:\n{conversation}", material, 16), COUNTER)
    assert reply.text == extract(material, 16, COUNTER.text) == "Ana: we decided on Postgres.\nThe budget is $4,500."
    assert (reply.model, reply.cost) == ("offline", 0.0)
    assert reply.input_tokens == sum(map(COUNTER.text, material))
    assert reply.output_tokens == COUNTER.text(reply.text) <= 16
    assert ExtractiveSummariser().complete(Prompt("Answer in verse.", material, 16), COUNTER) == reply


@pytest.mark.parametrize(
    ("material", "most", "why"),
    [
        ((), 40, "the material is empty"),
        ((" \n", "\t"), 40, "the material is empty"),
        (("Hi.",), 0, "nothing fits in 0"),
    ],
)
def test_no_material_and_no_room(material: tuple[str, ...], most: int, why: str) -> None:
    """A summary of nothing, or in no room, is refused, and the error says so."""
    with pytest.raises(ModelError, match=why):
        ExtractiveSummariser().complete(Prompt("{conversation}", material, most), COUNTER)
