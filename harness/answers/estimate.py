"""Estimate the cost of answers and of their grades before any model is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from ctxbench.metrics.grading import GradedItem, Grader
from ctxbench.metrics.prices import BUNDLED, TokenUsage
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation

from ..folder.run import Run
from ..models.recorded import ModelRequest, messages_of
from ..probes.ask import CEILING, FLOOR
from .answer import Answerer, Key, Part, has_gold, item_of
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


@runtime_checkable
class AsksModel(Protocol):
    """A grader that can say what it would ask."""

    def requests(self, item: GradedItem) -> list[ModelRequest]:
        """Return the requests for one item."""
        ...


def estimates(run: Run, answerer: Answerer, grader: Grader, *, again: bool = False) -> list[CallEstimate]:
    """Return what is still to be asked of the answer model and of the grader's; an empty list if nothing is.

    Rounds of tools that a model calls are not in it, nor is a grader that does not say what it asks (`ragas`).
    """
    parts = [Part(run, shard, answerer, grader) for shard in shards(run.folder)]
    asked = list[CallEstimate]()
    if isinstance(answerer, ByModel):
        asked.append(_answers(run, answerer, parts, again))
    if isinstance(grader, AsksModel):
        strategies = len({*run.manifest.plan.strategies, FLOOR, CEILING})
        asked += _grades(grader, parts, strategies, again)
    return [estimate for estimate in asked if estimate.calls]


def _answers(run: Run, answerer: ByModel, parts: Sequence[Part], again: bool) -> CallEstimate:
    known = set[Key]() if again else {key for part in parts for key in part.known_answers()}
    probes = run.table("probes")
    keys = zip(probes.conversation.astype(str), probes.strategy.astype(str), probes.number, strict=True)
    sent = probes.tokens_sent[[key not in known for key in keys]].dropna()
    return CallEstimate(answerer.name, len(sent), int(sent.sum()), len(sent) * answerer.longest)


def _grades(grader: AsksModel, parts: Sequence[Part], strategies: int, again: bool) -> Iterator[CallEstimate]:
    """Yield the grades as if every answer were the accepted one: what an answer adds to a request is little."""
    counter, model = TokenCounter(), ""
    calls = tokens = longest = 0
    for part in parts:
        known = Counter[tuple[str, int]]()
        if not again:
            known.update((conversation, number) for conversation, _, number in part.known_grades())
        for place, item in _items(part.conversations()):
            times = strategies - known[place]
            for request in grader.requests(item) if times else ():
                model = request.model
                calls += times
                tokens += times * sum(counter.message(message) for message in messages_of(request.asked))
                longest += times * request.max_tokens
    if calls:
        yield CallEstimate(model, calls, tokens, longest)


def _items(conversations: Iterable[Conversation]) -> Iterator[tuple[tuple[str, int], GradedItem]]:
    """Yield the conversation and number of each probe that can be graded, and its accepted answer as an item."""
    for conversation in conversations:
        messages = {message.id: message for message in conversation.messages}
        for number, probe in enumerate(conversation.probes):
            if has_gold(probe):
                item = item_of(probe, messages, next(iter(probe.answers), ""), probe.id)
                yield (conversation.id, number), item
