"""Estimate the cost of answers and of their grades before any model is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from ...metrics.grading import GradedItem, Grader
from ...metrics.prices import BUNDLED, TokenUsage
from ...metrics.tokens import TokenCounter
from ...scenarios.model import Conversation
from ..folder.run import Run
from ..models.recorded import ModelRequest, messages_of
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
        asked.append(_answers(run, answerer, _recorded(part for part in parts if again or not part.is_answered())))
    if isinstance(grader, AsksModel):
        strategies = len({*run.manifest.plan.strategies, FLOOR, CEILING})
        asked += _grades(grader, _recorded(part for part in parts if again or not part.is_graded()), strategies)
    return [estimate for estimate in asked if estimate.calls]


def _recorded(parts: Iterable[Part]) -> list[Conversation]:
    return [conversation for part in parts for conversation in part.conversations()]


def _answers(run: Run, answerer: ByModel, recorded: Sequence[Conversation]) -> CallEstimate:
    probes = run.table("probes")
    rows = probes[probes.conversation.astype(str).isin([conversation.id for conversation in recorded])]
    sent = rows.tokens_sent.dropna()
    return CallEstimate(answerer.name, len(sent), int(sent.sum()), len(sent) * answerer.longest)


def _grades(grader: AsksModel, recorded: Sequence[Conversation], strategies: int) -> Iterator[CallEstimate]:
    """Yield the grades as if every answer were the accepted one: what an answer adds to a request is little."""
    counter = TokenCounter()
    requests = [request for item in _items(recorded) for request in grader.requests(item)]
    if requests:
        tokens = sum(counter.message(message) for request in requests for message in messages_of(request.asked))
        longest = sum(request.max_tokens for request in requests)
        yield CallEstimate(requests[0].model, strategies * len(requests), strategies * tokens, strategies * longest)


def _items(recorded: Sequence[Conversation]) -> Iterator[GradedItem]:
    for conversation in recorded:
        messages = {message.id: message for message in conversation.messages}
        for probe in conversation.probes:
            if has_gold(probe):
                yield item_of(probe, messages, next(iter(probe.answers), ""), probe.id)
