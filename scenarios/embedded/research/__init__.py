"""The scenario kind `research`: a person and an assistant explore a question in a library of invented papers.

Topics are opened, left for others, and returned to; the criteria of the review and its hypothesis change on the way.
Papers, too, are in the conversation's language.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ...model import Conversation, Tool
from ..pace import Pace
from ..script import Script
from ..wording import one
from .authors import NAMES_ZH, SURNAMES
from .review import Review
from .turns import plan

TOOLS = (
    Tool(
        "search_papers",
        "Search the library; returns the best matches with their abstracts.",
        '{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}',
    ),
    Tool(
        "open_paper",
        "The text of a paper: methods, results, subgroups, limits.",
        '{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}',
    ),
    Tool(
        "take_note",
        "Keep a note for the whole project.",
        '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}',
    ),
)


def make(seed: int, turns: int, language: str) -> Conversation:
    """A conversation of so many user turns in `en` or `zh`. The same arguments make the same bytes."""
    rng = Random(f"research/{seed}/{language}")
    start = f"2026-{1 + int(rng.random() * 9):02d}-{1 + int(rng.random() * 28):02d}T09:{int(rng.random() * 60):02d}:00"
    script = Script(f"research/{language}-{seed}-{turns}", language=language, start=start, tools=TOOLS)
    review = Review(rng, script, turns, language == "zh")
    who = one(rng, NAMES_ZH if review.chinese else SURNAMES)
    question = review.area.question[review.at]
    script.system(review.words("system", {"who": who if review.chinese else f"Dr {who}", "question": question}))
    pace = Pace(rng)
    coming: list[Callable[[Review], None]] = []
    for turn in range(1, turns + 1):
        coming = coming or plan(rng)
        review.turn = turn
        coming.pop()(review)
        review.questions.ask(script, turn)
        if turn < turns:
            pace.wait(script)
    return script.done()
