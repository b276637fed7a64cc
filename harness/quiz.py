"""Questions for recordings that have none: made by rules, or read from a file of JSON Lines that people may edit.

    {"conversation": "django-11179", "id": "made1", "question": "…", "answers": ["…"], "evidence": ["m9"],
     "category": "made: error", "after": "m15"}

A line is a probe of the recording model, and the conversation that is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxbench.metrics.quiz import quiz
from ctxbench.scenarios.errors import Place, RecordingError, RunError
from ctxbench.scenarios.model import Conversation, Probe
from ctxbench.scenarios.read import without_bad_probes
from ctxbench.scenarios.source import Problems, convert, decode, lines

SOURCES = ("made", "recorded", "none")
"""Where probes come from, but for a file: made for conversations that have none, or those of the recordings alone."""
EMBEDDED = "embedded:"


def check_source(source: str) -> None:
    """Raise RunError for a source of probes that is neither one of SOURCES nor a file."""
    if source not in SOURCES and not Path(source).is_file():
        what = f"--probes {source}: there is no such file"
        raise RunError(f"{what}: name one that `ctxbench probe` wrote, or give {', '.join(SOURCES)}")


def with_probes(conversations: Iterable[Conversation], source: str, problems: Problems) -> Iterator[Conversation]:
    """Yield conversations with the probes that they are to be asked.

    Sets with questions stay as they are: none is made for a conversation that has one, or of an embedded scenario.
    """
    if source == "made":
        yield from _made(conversations, problems)
    elif source in SOURCES:
        yield from conversations
    else:
        yield from _read(conversations, Path(source), problems)


def to_line(name: str, probe: Probe) -> bytes:
    """Return a probe of a conversation as a line of a file of questions, without the line end."""
    return msgspec.json.encode({"conversation": name, **msgspec.to_builtins(probe)})


def made(conversation: Conversation) -> tuple[Probe, ...]:
    """Return the questions that are made for a conversation: none where it has some, or is embedded."""
    is_asked = conversation.probes or conversation.source.startswith(EMBEDDED)
    return () if is_asked else quiz(conversation)


def _made(conversations: Iterable[Conversation], problems: Problems) -> Iterator[Conversation]:
    counts = []
    for conversation in conversations:
        if probes := made(conversation):
            counts.append(len(probes))
            conversation = replace(conversation, probes=probes)
        yield conversation
    if counts:
        what = f"{sum(counts):,} questions were made by rules for {len(counts):,} conversations that have none"
        problems.notes.append(f"{what} (`ctxbench probe` shows them; --probes recorded leaves them out)")


def _read(conversations: Iterable[Conversation], file: Path, problems: Problems) -> Iterator[Conversation]:
    by_name = defaultdict[str, list[tuple[Place, Probe]]](list)
    for place, line in lines(file, Problems()):
        with problems.collect():
            record = decode(line, dict[str, Any], place)
            name = convert(record.pop("conversation", None), str, place.at("conversation"))
            probe = convert(record, Probe, place)
            if not probe.question.strip():
                raise RecordingError(place.at("question"), "it is empty", "ask something, or leave the line out")
            by_name[name].append((place, probe))
    for conversation in conversations:
        probes = list(conversation.probes)
        for place, probe in by_name.pop(conversation.id, ()):
            probes += without_bad_probes(replace(conversation, probes=(probe,)), place, problems).probes
        yield replace(conversation, probes=tuple(probes))
    for name, rest in by_name.items():
        what = f"{name!r} names no conversation of these recordings"
        problems.add(RecordingError(rest[0][0].at("conversation"), what, "correct it, or leave its lines out"))
