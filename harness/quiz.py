"""Questions for recordings that have none: made by rules, or read from a file of JSON Lines that people may edit.

    {"conversation": "fix", "id": "made1", "question": "…", "answers": ["…"], "evidence": ["m9"], "after": "m15"}

A line is a probe of the recording model, with the conversation that is asked it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ctxbench.metrics.quiz import quiz
from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.model import Conversation, Probe
from ctxbench.scenarios.read import without_bad_probes
from ctxbench.scenarios.source import Problems, convert, decode, lines

SOURCES = ("made", "recorded", "none")
"""Where probes come from, but for a file: made for conversations that have none, or from the recordings alone."""


def with_probes(conversations: Iterable[Conversation], source: str, problems: Problems) -> Iterator[Conversation]:
    """Yield conversations with the probes that they are to be asked. `source`: one of SOURCES, or a file.

    None is made for a conversation that has some, or is embedded.
    """
    by_name = defaultdict[str, list[tuple[Place, Probe]]](list)
    for place, line in lines(Path(source), Problems()) if source not in SOURCES else ():
        with problems.collect():
            record = decode(line, dict[str, Any], place)
            name = convert(record.pop("conversation", None), str, place.at("conversation"))
            by_name[name].append((place, convert(record, Probe, place)))
    counts = []
    for conversation in conversations:
        is_asked = source != "made" or conversation.probes or conversation.source.startswith("embedded:")
        probes = () if is_asked else quiz(conversation)
        counts.append(len(probes))
        for place, probe in by_name.pop(conversation.id, ()):
            probes += without_bad_probes(replace(conversation, probes=(probe,)), place, problems).probes
        yield replace(conversation, probes=conversation.probes + probes) if probes else conversation
    for name, unasked in by_name.items():
        what = f"{name!r} names no conversation of these recordings"
        problems.add(RecordingError(unasked[0][0].at("conversation"), what, "correct it, or leave its lines out"))
    if some := sum(map(bool, counts)):
        what = f"{sum(counts):,} questions were made by rules, for recordings that have none ({some:,} of them)"
        problems.notes.append(f"{what} (`ctxbench probe` shows them; --probes recorded leaves them out)")
