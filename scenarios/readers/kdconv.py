"""KdConv: Chinese conversations between two people about films, music and travel. `[{name, messages: [{message}]}]`

Source: github.com/thu-coai/KdConv, `data/{film,music,travel}/*.json` (Zhou et al. 2020, arXiv 2004.04100),
Apache-2.0. The two take turns: the first speaker becomes the user, the other the assistant. The knowledge triples of a
turn (`attrs`) are annotations and are not read; there are no times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec

from ..model import Conversation, Message
from ..source import Problems, decode, records
from . import Recordings


class _Turn(msgspec.Struct):
    message: str


class _Dialogue(msgspec.Struct):
    messages: list[_Turn]
    name: str = ""


@dataclass(frozen=True, slots=True)
class KdConv:
    """KdConv's dialogues."""

    about: ClassVar[str] = "KdConv's Chinese dialogues"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"[].messages[].message", "[].name"}),)
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            domain = path.resolve().parent.name
            for at, (place, raw) in enumerate(records(path, problems)):
                with problems.collect():
                    dialogue = decode(raw, _Dialogue, place)
                    messages = tuple(
                        Message(id=f"m{n}", role="assistant" if n % 2 else "user", text=turn.message)
                        for n, turn in enumerate(dialogue.messages)
                    )
                    name, meta = f"{domain}/{path.stem}/{at}", {"topic": dialogue.name, "domain": domain}
                    yield place, Conversation(name, messages, licence="Apache-2.0", language="zh", meta={**meta})
