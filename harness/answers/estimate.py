"""Estimate the cost of answers and of their grades before any model is called."""

from __future__ import annotations

from collections import Counter
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

    Rounds of tools that a model calls are not in it, nor is a grader that does not say what it asks (`ragas`). A grade
    is taken to be of the accepted answer: what an answer adds to a request is little.
    """
    counter, strategies = TokenCounter(), len({*run.manifest.plan.strategies, FLOOR, CEILING})
    answers, grades = Counter[str](), Counter[str]()
    for shard in shards(run.folder):  # one at a time: its answers and grades are read, and gone with it
        part = Part(run, shard, answerer, grader, again)
        if isinstance(answerer, ByModel):
            probes = Run(run.folder, shards=(int(shard),)).table("probes")
            keys = zip(probes.conversation.astype(str), probes.strategy.astype(str), probes.number, strict=True)
            sent = probes.tokens_sent[[key not in part.known_answers for key in keys]].dropna()
            answers.update(calls=len(sent), tokens=int(sent.sum()), longest=len(sent) * answerer.longest)
        if not isinstance(grader, LlmGrader):
            continue
        known = Counter((conversation, number) for conversation, _, number in part.known_grades)
        for conversation in part.conversations():
            messages = {message.id: message for message in conversation.messages}
            for number, probe in enumerate(conversation.probes):
                times = strategies - known[conversation.id, number]
                if times and has_gold(probe):
                    request = grader.request(item_of(probe, messages, next(iter(probe.answers), ""), probe.id))
                    tokens = sum(counter.message(message) for message in messages_of(request.asked))
                    grades.update(calls=times, tokens=times * tokens, longest=times * request.max_tokens)
    asked = [(answerer.name, answers)]
    if isinstance(grader, LlmGrader):
        asked.append((grader.how.model, grades))
    return [CallEstimate(name, of["calls"], of["tokens"], of["longest"]) for name, of in asked if of["calls"]]
