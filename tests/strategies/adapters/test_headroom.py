"""headroom's strategy sends what headroom, called natively, would send, without network and traces on the disk."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.chain import parse
from tests.strategies.adapters.native import COUNT, Seen, check_native, dicts, library, seen, work
from tests.strategies.stubs import played

COMPRESS = "headroom.compress(min_tokens_to_compress=20)"
LINES = work(line="2026-11-25 row {turn} of the file\n", lines=60)


def native_compression(conversation: Conversation) -> Callable[[int, int], Seen]:
    tokenizers, compress = library("headroom.tokenizers"), library("headroom").compress

    class Tokenizer(tokenizers.BaseTokenizer):  # type: ignore[misc, name-defined]
        def count_text(self, text: str) -> int:
            return COUNT(text)

    tokenizers.register_tokenizer("native", Tokenizer())
    settings: dict[str, Any] = {"model": "native", "min_tokens_to_compress": 20, "kompress_model": "disabled"}
    return lambda start, stop: seen(compress(dicts(conversation.messages[:stop]), **settings).messages)


def test_it_sends_what_the_library_would() -> None:
    """At every call the messages are those of headroom that is called natively with the whole history."""
    library("headroom")
    check_native(COMPRESS, native_compression, conversation=LINES)


def test_it_needs_no_network_and_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """headroom looks up no address and leaves its workspace empty, though results are shortened."""
    library("headroom")
    looked_up: list[Any] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **more: looked_up.append(address))
    monkeypatch.setenv("HEADROOM_WORKSPACE_DIR", str(tmp_path))
    *_, step = played(parse(COMPRESS), LINES)
    sent = {message.id: message.text for message in step.context.messages}
    assert len(sent["r0"]) < len(LINES.messages[3].text) / 10
    assert (looked_up, list(tmp_path.iterdir())) == ([], [])
