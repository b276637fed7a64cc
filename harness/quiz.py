"""Questions for recordings that have none: made by rules, or read from a file of JSON Lines that people may edit.

    {"conversation": "fix", "id": "made1", "question": "…", "answers": ["…"], "evidence": ["m9"], "after": "m15"}

A line is a probe of the recording model, with the conversation that is asked it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ctxbench.metrics.probes import placed_probes
from ctxbench.metrics.quiz import quiz
from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.model import Conversation, Probe
from ctxbench.scenarios.source import Problems, convert, decode, lines

SOURCES = ("made", "recorded", "none")
"""Where probes come from, but for a file: made for conversations that have none, or from the recordings alone."""

Line = tuple[Place, Probe]


def with_probes(conversations: Iterable[Conversation], source: str, problems: Problems) -> Iterator[Conversation]:
    """Yield conversations with the probes that they are to be asked. `source`: one of SOURCES, or a file.

    Raises RecordingError for a line of the file that cannot be asked. One about no conversation, or whose answer nobody
    says, is left out, which is a problem; an error if all are.
    """
    by_name = {} if source in SOURCES else read_questions(Path(source))
    counts, asked, faults = list[int](), 0, list[RecordingError]()
    for conversation in conversations:
        probes = made(conversation) if source == "made" else ()
        counts.append(len(probes))
        if own := by_name.pop(conversation.id, ()):
            probes = _checked(conversation, own, faults)
            asked += len(probes)
        yield replace(conversation, probes=conversation.probes + probes) if probes else conversation
    for name, unasked in by_name.items():
        what = f"{name!r} names no conversation of these recordings"
        faults.append(RecordingError(unasked[0][0].at("conversation"), what, "correct it, or leave its lines out"))
    if faults and not asked:
        raise faults[0]
    for fault in faults:
        problems.add(fault)
    if some := sum(map(bool, counts)):
        what = f"questions made by rules for {some:,} recording{'s' * (some > 1)} without any: {sum(counts):,}"
        problems.notes.append(f"{what} (`ctxbench probe` shows them, --probes recorded leaves them out)")


def made(conversation: Conversation) -> tuple[Probe, ...]:
    """Return the questions that rules make for a conversation; empty if it has some already, or is embedded."""
    return () if conversation.probes or conversation.source.startswith("embedded:") else quiz(conversation)


def read_questions(file: Path) -> dict[str, list[Line]]:
    """Return the questions of a file by conversation. Raises RecordingError for a line that is no question."""
    by_name = defaultdict[str, list[Line]](list)
    for place, line in lines(file, Problems(strict=True)):
        record = decode(line, dict[str, Any], place)
        name = convert(record.pop("conversation", None), str, place.at("conversation"))
        probe = convert(record, Probe, place)
        if probe.answerable and not (any(map(str.strip, probe.answers)) or probe.rubric):
            raise RecordingError(place.at("answers"), "no answer is accepted", 'give one, or "answerable": false')
        by_name[name].append((place, probe))
    return by_name


def _checked(conversation: Conversation, asked: Sequence[Line], faults: list[RecordingError]) -> tuple[Probe, ...]:
    """Return the questions of a file to a conversation, but for those whose answer nobody says: they become faults."""
    places = {message.id: at for at, message in enumerate(conversation.messages)}
    ids, name = {probe.id for probe in conversation.probes}, f"of {conversation.id!r}"
    for where, probe in asked:
        stop = places.get(probe.after, len(places) if not probe.after else -1)
        late = next((of for of in probe.evidence if stop < places.get(of, -1)), "")
        lost = next((at for at, of in enumerate(probe.evidence) if of not in places), -1)
        for field, is_wrong, what in (
            ("id", probe.id in ids, f"{probe.id!r} is the id of another question {name}"),
            (f"evidence[{lost}]", lost >= 0, f"{[*probe.evidence, ''][lost]!r} names no message {name}"),
            ("after", stop < 0, f"{probe.after!r} names no message {name}"),
            ("after", bool(late), f"{probe.after!r} comes before the evidence {late!r}"),
        ):
            if is_wrong:
                raise RecordingError(where.at(field), what, "correct it")
        ids.add(probe.id)
    kept = {}
    for placed in placed_probes(replace(conversation, probes=tuple(probe for _, probe in asked))):
        # What several messages tell together, as a sum, stands in none of them; nor does yes or no.
        if placed.answers or len(placed.evidence) > 1 or not (placed.probe.answerable and placed.spellings):
            kept[placed.number] = placed.probe
            continue
        what = f"nobody says {placed.probe.answers[0]!r} in the evidence, or before the question"
        faults.append(RecordingError(asked[placed.number][0].at("answers"), what, "correct it, or add evidence"))
    return tuple(kept[number] for number in sorted(kept))
