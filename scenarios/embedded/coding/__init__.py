"""The scenario kind `coding`: a coding agent in an invented Python service, with long files and test runs.

The user asks for fixes, changed constants, features, renames, history and ports; the agent greps, reads, runs, edits
and commits. Tool outputs are English whatever language people speak, as in real life.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ...model import Conversation, Tool
from ..pace import Pace
from ..script import Script
from .session import Session
from .turns import deck

_PATH = '"path":{"type":"string","description":"Path from the root of the repository"}'
TOOLS = (
    Tool(
        "read_file",
        "Read a text file, whole or from line `start` to line `end` (both included, counted from 1).",
        f'{{"type":"object","properties":{{{_PATH},"start":{{"type":"integer"}},"end":{{"type":"integer"}}}},'
        '"required":["path"]}',
    ),
    Tool(
        "bash",
        "Run a command in the root of the repository; returns what it printed.",
        '{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}',
    ),
    Tool(
        "edit_file",
        "Replace the text `old`, which must stand in the file exactly once, by `new`.",
        f'{{"type":"object","properties":{{{_PATH},"old":{{"type":"string"}},"new":{{"type":"string"}}}},'
        '"required":["path","old","new"]}',
    ),
    Tool(
        "grep",
        "Lines that contain the pattern, as path:line:text.",
        f'{{"type":"object","properties":{{"pattern":{{"type":"string"}},{_PATH}}},"required":["pattern","path"]}}',
    ),
)


def make(seed: int, turns: int, language: str) -> Conversation:
    """A conversation of so many user turns in `en` or `zh`. The same arguments make the same bytes."""
    rng = Random(f"coding/{seed}/{language}")
    start = f"2026-{1 + int(rng.random() * 9):02d}-{1 + int(rng.random() * 28):02d}T08:{int(rng.random() * 60):02d}:00"
    script = Script(f"coding/{language}-{seed}-{turns}", language=language, start=start, tools=TOOLS)
    session = Session(rng, script, turns, language)
    names = [name for name, _ in session.world.people]
    base = {
        "project": session.world.package,
        "about": session.world.domain.about,
        "about_zh": session.world.domain.about_zh,
        "prefix": session.world.prefix,
        "codes": session.world.codes,
        "team": "、".join(names) if session.chinese else ", ".join(names),
    }
    script.system(session.words("system", **base))
    pace = Pace(rng)
    coming: list[Callable[[Session], None]] = []
    for turn in range(1, turns + 1):
        coming = coming or deck(rng)
        session.facts = dict(base)
        coming.pop()(session)
        session.questions.ask(script, turn)
        if turn < turns:
            pace.wait(script)
    return script.done()
