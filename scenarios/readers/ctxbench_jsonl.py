"""ctxbench's own form: JSON Lines, one conversation a line, lossless (`docs/recording.schema.json`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..errors import RecordingError
from ..model import Conversation
from ..source import Problems, decode, records
from . import Recordings


@dataclass(frozen=True, slots=True)
class CtxbenchJsonl:
    """Conversations in the form that `ctxbench convert` writes."""

    about: ClassVar[str] = "ctxbench's own JSON Lines, one conversation a line"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (frozenset({".ctxbench", ".id", ".messages", ".messages[].id"}),)
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                try:
                    conversation = decode(raw, Conversation, place)
                except RecordingError as error:
                    problems.add(error)
                    continue
                del raw  # it may take as much memory as the conversation, which is used for long
                yield place, conversation
