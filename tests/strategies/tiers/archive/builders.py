"""Items for the archive's tests."""

import json

from hypothesis import strategies as st

from ctxbench.scenarios.model import Call, Media, Message, ToolCall, Usage
from ctxbench.strategies.tiers.archive import ArchivedMessage, Coding

SMALL = Coding(level=1, block_tokens=40, dictionary_bytes=4096)
"""Blocks of a few messages, so that few messages make blocks and a dictionary."""

CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.text(CHARACTERS, max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
USAGES = st.builds(Usage, st.none() | st.integers(0, 9), cost=st.none() | st.floats(0, 1))
CALLS = st.builds(Call, TEXTS, usage=st.none() | USAGES, started=st.none() | st.floats(0, 2e9))
MEDIA = st.builds(Media, st.sampled_from(["image", "file"]), st.none() | st.integers(1, 9), detail=TEXTS)
MESSAGES = st.builds(
    Message,
    TEXTS,
    st.sampled_from(["user", "assistant", "system", "tool"]),
    TEXTS | JSON.map(json.dumps),
    st.lists(st.builds(ToolCall, TEXTS, TEXTS, TEXTS), max_size=2).map(tuple),
    st.none() | TEXTS,
    TEXTS,
    st.none() | st.floats(0, 2e9),
    thinking=TEXTS,
    thinking_hidden=st.booleans(),
    media=st.lists(MEDIA, max_size=2).map(tuple),
    call=st.none() | CALLS,
)


def item(at: int, text: str = "", tokens: int = 10, talk: str = "talk") -> ArchivedMessage:
    """Return a short message."""
    return ArchivedMessage(f"{talk}/m{at}", tokens, Message(f"m{at}", "user", text or f"message {at} of this talk"))


def items(count: int, talk: str = "talk") -> list[ArchivedMessage]:
    """Short messages of 10 tokens each."""
    return [item(at, talk=talk) for at in range(count)]
