"""What the answers of a model and their grades can cost, before any of them is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from ...metrics.grading import GradedItem, Grader
from ...metrics.prices import BUNDLED, TokenUsage
from ...metrics.tokens import TokenCounter
from ...scenarios.model import Conversation
from ..folder.run import Run
from ..folder.store import read_conversations
from ..models.recorded import ModelRequest, messages_of
from ..probes.ask import CEILING, FLOOR
from .answer import has_gold, item_of
from .chat import ByModel
from .store import contexts_of, folder_of, read, shards


class CallEstimate(NamedTuple):
    """Calls of one model, each made once and answered at its longest; what is recorded already costs nothing."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int

    @property
    def dollars(self) -> float | None:
        """The price of all that in US dollars; None if the model has no known price."""
        return BUNDLED.cost(self.model, TokenUsage(self.input_tokens, self.output_tokens))


@runtime_checkable
class AsksModel(Protocol):
    """A grader that can say what it would ask."""

    def requests(self, item: GradedItem) -> list[ModelRequest]:
        """Return the requests for one item."""
        ...


def estimates(run: Run, answerer: ByModel, grader: Grader, *, again: bool = False) -> list[CallEstimate]:
    """Return what is still to be asked of the answer model and of the grader's; an empty list if nothing is.

    Rounds of tools that a model calls are not in it, nor is a grader that does not say what it asks (`ragas`).
    """
    lacking = [shard for shard in shards(run.folder) if again or not _is_answered(run, answerer, shard)]
    recorded = [
        conversation
        for shard in lacking
        for conversation in read_conversations(run.folder / "recordings" / f"{shard}.jsonl.zst")
    ]
    asked = [_answers(run, answerer, recorded)]
    if isinstance(grader, AsksModel):
        strategies = len({*run.manifest.plan.strategies, FLOOR, CEILING})
        asked += _grades(grader, recorded, strategies)
    return [estimate for estimate in asked if estimate.calls]


def _is_answered(run: Run, answerer: ByModel, shard: str) -> bool:
    path = run.folder / "answers" / folder_of(answerer.name) / f"{shard}.parquet"
    metadata = {"by": answerer.name, "as": answerer.identity, "of": contexts_of(run.folder, shard)}
    return read(path, "answers", metadata) is not None


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
