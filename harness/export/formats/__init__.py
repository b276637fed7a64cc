"""Formats that conversations are written in, one file each. `ctxbench convert --as` chooses by name.

A writer turns a conversation into lines of JSON, from which a reader of `scenarios/readers/` has it back as far as the
format goes. It leaves out what the format has no place for, and invents none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ctxbench.scenarios.model import Conversation

from . import anthropic, atif, openai, otlp, sharegpt

Writer = Callable[[Conversation], Iterator[bytes]]
"""Yields the lines of a conversation, without their ends."""


class LineFormat(NamedTuple):
    """A format of JSON Lines."""

    write: Writer
    reader: str
    """Name of the reader that has the conversation back."""


def _ctxbench(conversation: Conversation) -> Iterator[bytes]:
    yield conversation.to_json()


CTXBENCH = "ctxbench"
"""Our own format, which carries everything."""
LINE_FORMATS: Mapping[str, LineFormat] = {
    CTXBENCH: LineFormat(_ctxbench, "ctxbench"),
    "openai": LineFormat(openai.lines, "openai_chat"),
    "anthropic": LineFormat(anthropic.lines, "anthropic_messages"),
    "otlp": LineFormat(otlp.lines, "otel"),
    "atif": LineFormat(atif.lines, "atif"),
    "sharegpt": LineFormat(sharegpt.lines, "sharegpt"),
}
"""Formats by name. A data set (`dataset.py`) is a folder, and none of them."""
