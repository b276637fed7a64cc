"""Questions for recordings that have none: made by rules, or read from a file of JSON Lines that people may edit.

    {"conversation": "fix", "id": "made1", "question": "…", "answers": ["…"], "evidence": ["m9"], "after": "m15"}

A line is a probe of the recording model, with the conversation that is asked it.
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
"""Where probes come from, but for a file: made for conversations that have none, or from the recordings alone."""


def check_source(source: str) -> None:
    """Raise RunError for a source of probes that is neither one of SOURCES nor a file."""
    if source not in SOURCES and not Path(source).is_file():
        remedy = f"name one that `ctxbench probe` wrote, or give {', '.join(SOURCES)}"
        raise RunError(f"--probes {source}: there is no such file: {remedy}")


def to_line(name: str, probe: Probe) -> bytes:
    """Return a probe of a conversation as a line of a file of questions, without the line end."""
    return msgspec.json.encode({"conversation": name, **msgspec.to_builtins(probe)})


def made(conversation: Conversation) -> tuple[Probe, ...]:
    """Return the questions that are made for a conversation: none where it has some, or is embedded."""
    return () if conversation.probes or conversation.source.startswith("embedded:") else quiz(conversation)


def with_probes(conversations: Iterable[Conversation], source: str, problems: Problems) -> Iterator[Conversation]:
    """Yield conversations with the probes that they are to be asked. `source`: one of SOURCES, or a file."""
    by_name = {} if source in SOURCES else _read(Path(source), problems)
    counts = []
    for conversation in conversations:
        probes = made(conversation) if source == "made" else ()
        counts.append(len(probes))
        for place, probe in by_name.pop(conversation.id, ()):
            probes += without_bad_probes(replace(conversation, probes=(probe,)), place, problems).probes
        yield replace(conversation, probes=conversation.probes + probes) if probes else conversation
    for name, rest in by_name.items():
        what = f"{name!r} names no conversation of these recordings"
        problems.add(RecordingError(rest[0][0].at("conversation"), what, "correct it, or leave its lines out"))
    if some := sum(map(bool, counts)):
        what = f"{sum(counts):,} questions were made by rules for {some:,} conversations that have none"
        problems.notes.append(f"{what} (`ctxbench probe` shows them; --probes recorded leaves them out)")


def _read(file: Path, problems: Problems) -> dict[str, list[tuple[Place, Probe]]]:
    by_name = defaultdict[str, list[tuple[Place, Probe]]](list)
    for place, line in lines(file, Problems()):
        with problems.collect():
            record = decode(line, dict[str, Any], place)
            name = convert(record.pop("conversation", None), str, place.at("conversation"))
            by_name[name].append((place, convert(record, Probe, place)))
    return by_name
