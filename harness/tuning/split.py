"""Which conversations are searched on, and which are held out for the final figure.

Each conversation's place is by a digest of the seed and of what it says, whatever the order in which they are read.
Conversations that say the same are on one side. Those with probes are shared out on their own: else there might be none
on one side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...scenarios.errors import RunError
from ...scenarios.model import Conversation
from ..store import placed

HELD_OUT = 0.5


class Split(NamedTuple):
    """Conversations, each in the order in which they were read."""

    train: list[Conversation]
    held_out: list[Conversation]


def split(conversations: Sequence[Conversation], share: float = HELD_OUT, seed: int = 0) -> Split:
    """Hold a share of the conversations out. Raises RunError where that leaves nothing on one side."""
    by_digest: dict[str, Conversation] = {}
    digests = [_said(each) for each in conversations]
    for digest, each in zip(digests, conversations, strict=True):
        by_digest.setdefault(digest, each)
    if len(by_digest) < 2:
        what = (
            "one conversation" if len(conversations) == 1 else f"{len(conversations)} conversations that say the same"
        )
        raise RunError(
            f"{what}: none can be held out, and the best of many settings on the conversation that chose it says "
            "nothing of others: give more recordings"
        )
    held: set[str] = set()
    for probed in (True, False):
        order = sorted(
            (d for d, each in by_digest.items() if bool(each.probes) == probed), key=lambda d: _place(d, seed)
        )
        held.update(order[: _size(len(order), share)])
    if not held:  # one of each
        held.add(min(by_digest, key=lambda digest: (not by_digest[digest].probes, _place(digest, seed))))
    pairs = list(zip(digests, conversations, strict=True))
    return Split([each for d, each in pairs if d not in held], [each for d, each in pairs if d in held])


def write(conversations: Sequence[Conversation], file: Path) -> None:
    """As ctxbench JSONL, lossless."""
    with placed(file) as draft:
        draft.write_bytes(b"".join(each.to_json() + b"\n" for each in conversations))


def _size(number: int, share: float) -> int:
    """How many of so many: at least one, and not all, where there are two."""
    return 0 if number < 2 else min(max(1, round(number * share)), number - 1)


def _said(conversation: Conversation) -> str:
    """A digest of what is said, whatever the conversation is called."""
    found = hashlib.sha256()
    for message in conversation.messages:
        found.update(f"{message.role} {len(message.text)} {message.text}".encode(errors="surrogatepass"))
        found.update(msgspec.json.encode(message.calls))
    return found.hexdigest()


def _place(digest: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {digest}".encode()).hexdigest()
