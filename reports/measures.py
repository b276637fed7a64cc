"""Do the measures of quality agree? The order that each gives the strategies, compared by rank correlation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from ..harness.answers.figures import BOUNDS
from ..harness.folder.run import Run
from ..metrics.figures import METRICS
from ..metrics.statistics.intervals import Ends
from ..metrics.statistics.rank_correlation import OrderAgreement, OrderSums, alike
from ..metrics.value import Missing, Ratio, Value
from .answers import Answers
from .render import Table, reasons

HOW = (
    "Of each pair of measures: how alike they order the strategies, bounds aside; over the conversations, and by the "
    "sums, that both have. 1 = the same order, 0 = no more than by chance. Kendall's tau-b, Spearman's rho; 95 % "
    "intervals by drawing whole conversations. They are of these strategies: among others measures may agree less."
)


class Measure(NamedTuple):
    """One measure: rows of conversation, strategy, got, wanted."""

    name: str
    sums: pd.DataFrame


class Pair(NamedTuple):
    """Two measures, and how alike the orders are."""

    one: str
    other: str
    strategies: int
    conversations: int
    found: OrderAgreement


def sums_of(metric: str, rows: pd.DataFrame) -> pd.DataFrame:
    """What a share is made of, by conversation and strategy."""
    share = METRICS[metric].of
    assert isinstance(share, Ratio)
    got, wanted = share.parts(rows)
    keys = [rows.conversation.astype(str), rows.strategy.astype(str)]
    return pd.DataFrame({"got": got, "wanted": wanted}, rows.index).groupby(keys).sum().reset_index()


def evidence_rows(run: Run, uneven: frozenset[str], strategies: Collection[str]) -> pd.DataFrame:
    """The probes of these strategies, in the conversations in which all of them sent something for each."""
    rows = run.arrow("probes").select(["conversation", "strategy", "failed", "evidence_state"]).to_pandas()
    rows = rows[rows.strategy.isin(strategies)]
    broken = set(rows.conversation[rows.failed != ""].astype(str))
    made: pd.DataFrame = rows[~rows.conversation.isin(broken | uneven)]
    return made


def measures(run: Run, answers: Answers | None, uneven: frozenset[str] = frozenset()) -> list[Measure]:
    """Evidence recall, and the share correct by each who answered and graded."""
    if answers is None:
        return []
    names = {name for each in answers.found for name in each.counts.strategy} - set(BOUNDS)
    found = [
        Measure(f"correct ({each.answerer} / {each.grader})", each.counts[~each.counts.strategy.isin(BOUNDS)])
        for each in answers.found
    ]
    return [Measure("evidence sent", sums_of("context_recall", evidence_rows(run, uneven, names))), *found]


def pairs(found: Sequence[Measure]) -> list[Pair]:
    """Every two of them."""
    return [_pair(one, other) for one, other in combinations(found, 2)]


def _pair(one: Measure, other: Measure) -> Pair:
    tables = [each.sums.set_index(["conversation", "strategy"]) for each in (one, other)]
    both = tables[0].index.intersection(tables[1].index)
    where, names = (list(dict.fromkeys(both.get_level_values(at))) for at in (0, 1))
    first, second = (_sums(each, where, names) for each in tables)
    return Pair(one.name, other.name, len(names), len(where), alike(first, second))


def _sums(table: pd.DataFrame, conversations: Sequence[str], strategies: Sequence[str]) -> OrderSums:
    """A row a conversation, a column a strategy; what is not there counts nothing."""
    every = pd.MultiIndex.from_product([conversations, strategies])
    shape = len(conversations), len(strategies)
    return OrderSums(
        *(table[part].reindex(every).fillna(0).to_numpy(float).reshape(shape) for part in ("got", "wanted"))
    )


def table(found: Sequence[Pair]) -> Table:
    """A row for each pair."""
    rows = tuple(
        (
            each.one,
            each.other,
            _figure(each.found.kendall),
            _ends(each.found.kendall_interval),
            _figure(each.found.spearman),
            _ends(each.found.spearman_interval),
            f"{each.strategies:,}",
            f"{each.conversations:,}",
        )
        for each in found
    )
    heads = ("measure", "and", "tau", "95 %", "rho", "95 %", "strategies", "conversations")
    why = reasons(value for each in found for value in each.found if isinstance(value, Missing))
    return Table("Do the measures agree?", heads, rows, (HOW, *filter(None, [why])), names=2)


def as_json(found: Sequence[Pair]) -> list[dict[str, Any]]:
    """Exact figures."""
    return [{**each._asdict(), "found": each.found._asdict()} for each in found]


def _figure(value: Value) -> str:
    return f"({value.why})" if isinstance(value, Missing) else f"{value:.2f}".replace("-", "−")


def _ends(found: Ends | Missing) -> str:
    return f"({found.why})" if isinstance(found, Missing) else f"{_figure(found.low)} to {_figure(found.high)}"
