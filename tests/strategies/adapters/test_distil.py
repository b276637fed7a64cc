"""distil's strategy sends what distil, called natively, would send, and leaves no trace on the disk."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.chain import parse
from tests.strategies.adapters.native import Seen, check_native, dicts, library, seen, work
from tests.strategies.stubs import played

LINES = work(line="2026-11-25 row {turn} of the file\n", lines=60)


def native_compression(conversation: Conversation) -> Callable[[int, int], Seen]:
    compress = library("distil.adapters.openai").compress_chat_completions
    return lambda start, stop: seen(compress(dicts(conversation.messages[:stop]), persist=False)[0])


def test_it_sends_what_the_library_would() -> None:
    """At every call the messages are those of distil that is called natively with the whole history."""
    library("distil")
    check_native("distil.compress", native_compression, conversation=LINES)


def test_what_is_folded_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """distil's home stays empty, though lines are folded away."""
    library("distil")
    monkeypatch.setenv("DISTIL_HOME", str(tmp_path))
    *_, step = played(parse("distil.compress"), LINES)
    assert any("handle=" in message.text for message in step.context.messages)
    assert list(tmp_path.iterdir()) == []
