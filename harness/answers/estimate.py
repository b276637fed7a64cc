"""Estimate the cost of answers and of their grades before any model is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ctxbench.metrics.grading import Grader
from ctxbench.metrics.prices import BUNDLED, TokenUsage
from ctxbench.metrics.tokens import TokenCounter

from ..folder.run import Run
from ..graders.llm import LlmGrader
from ..models.recorded import messages_of
from ..probes.ask import CEILING, FLOOR
from .answer import Answerer, Part, has_gold, item_of
from .chat import ByModel
from .store import shards


class CallEstimate(NamedTuple):
    """Calls of one model, each made once and answered at its longest; what is recorded already costs nothing."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int

    @property
    def dollars(self) -> float | None:
        """Return the price of all that in US dollars; None if the model has no known price."""
        return BUNDLED.cost(self.model, TokenUsage(self.input_tokens, self.output_tokens))


def estimates(run: Run, answerer: Answerer, grader: Grader, *, again: bool = False) -> list[CallEstimate]:
    """Return what is still to be asked of the answer model and of the grader's; an empty list if nothing is.

    Rounds of tools that a model calls are not in it, nor is a grader that does not say what it asks (`ragas`).
    """
    parts = [Part(run, shard, answerer, grader, again) for shard in shards(run.folder)]
    asked = list[CallEstimate]()
    if isinstance(answerer, ByModel):
        known = {key for part in parts for key in part.known_answers}
        probes = run.table("probes")
        keys = zip(probes.conversation.astype(str), probes.strategy.astype(str), probes.number, strict=True)
        sent = probes.tokens_sent[[key not in known for key in keys]].dropna()
        asked.append(CallEstimate(answerer.name, len(sent), int(sent.sum()), len(sent) * answerer.longest))
    if isinstance(grader, LlmGrader):
        asked.append(_grades(grader, parts, len({*run.manifest.plan.strategies, FLOOR, CEILING})))
    return [estimate for estimate in asked if estimate.calls]


def _grades(grader: LlmGrader, parts: Sequence[Part], strategies: int) -> CallEstimate:
    """Return the grades as if every answer were the accepted one: what an answer adds to a request is little."""
    counter = TokenCounter()
    calls = tokens = longest = 0
    for part in parts:
        known = Counter((conversation, number) for conversation, _, number in part.known_grades)
        for conversation in part.conversations():
            messages = {message.id: message for message in conversation.messages}
            for number, probe in enumerate(conversation.probes):
                times = strategies - known[conversation.id, number]
                if not times or not has_gold(probe):
                    continue
                for request in grader.requests(item_of(probe, messages, next(iter(probe.answers), ""), probe.id)):
                    calls += times
                    tokens += times * sum(counter.message(message) for message in messages_of(request.asked))
                    longest += times * request.max_tokens
    return CallEstimate(grader.how.model, calls, tokens, longest)
