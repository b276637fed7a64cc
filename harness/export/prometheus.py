"""Write a run as Prometheus' text format, under the metric names that design document 000, section 7, gives to
monitoring.

So the dashboards of the running agent show beside it what each strategy would have sent. The document counts input,
output and cached tokens: `input` is here what a prompt cache did not have, so that input and cached are the prompt. Its
counter of tokens saved is a gauge here: a strategy may send more than the whole history, and counters never fall. A
figure that cannot be measured is left out: it is no 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.text import printable_line

from ..bill.conversations import conversation_bills
from ..bill.simulation import Scheme
from ..folder.run import Run

if TYPE_CHECKING:
    from prometheus_client import Metric


EMBEDDED = "embedded:"
BY = ["strategy", "scenario"]
TYPES = {"input": "not_read", "output": "output", "cached": "read"}


def prometheus(run: Run, models: Sequence[str]) -> str:
    """Return the run as text. Raises MissingExtra without prometheus_client, RunError for a model without a price."""
    try:
        from prometheus_client import CollectorRegistry, generate_latest
    except ModuleNotFoundError:
        raise MissingExtra("prometheus_client", "prometheus") from None
    metrics = list(_metrics(run, models))

    class Collected:
        """The metrics, as a registry collects them."""

        def collect(self) -> Iterator[Metric]:
            yield from metrics

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collected())
    return generate_latest(registry).decode()


def _metrics(run: Run, models: Sequence[str]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    scenarios = scenarios_of(run)
    bills = _summed(_billed(run, models), scenarios, ["model"])
    usage = CounterMetricFamily(
        "agent_token_usage",
        "Tokens of all calls: input = of the prompt, not read from a cache; cached = read from it; output as recorded",
        labels=[*BY, "model", "type"],
    )
    rate = GaugeMetricFamily(
        "agent_cache_hit_rate", "Share of the prompt tokens that the cache had", labels=[*BY, "model"]
    )
    for row in bills.to_dict("records"):
        labels = [printable_line(str(row[name])) for name in (*BY, "model")]
        for kind, column in TYPES.items():
            usage.add_metric([*labels, kind], row[column])
        if row["tokens"]:
            rate.add_metric(labels, row["found"] / row["tokens"])
    yield usage
    yield rate
    summaries = CounterMetricFamily("agent_summarization", "Summaries made", labels=BY)
    saved = GaugeMetricFamily(
        "agent_token_savings_total", "Tokens of the whole history less the tokens sent: may be negative", labels=BY
    )
    for row in _summed(_savings(run), scenarios).to_dict("records"):
        labels = [printable_line(str(row[name])) for name in BY]
        summaries.add_metric(labels, row["summaries"])
        saved.add_metric(labels, row["saved"])
    yield summaries
    yield saved


def scenarios_of(run: Run) -> dict[str, str]:
    """Map each conversation to its kind of embedded scenario, or to the name of the file that it was read from."""
    rows = run.table("conversations")
    return {str(name): _scenario(str(source)) for name, source in zip(rows.conversation, rows.source, strict=True)}


def _scenario(source: str) -> str:
    if source.startswith(EMBEDDED):
        return source.removeprefix(EMBEDDED).partition("/")[0]
    path, colon, line = source.rpartition(":")
    return Path(path if colon and line.isdecimal() else source).name


def _billed(run: Run, models: Sequence[str]) -> pd.DataFrame:
    bills = conversation_bills(run, [Scheme(model) for model in dict.fromkeys(models)])
    return bills.assign(not_read=bills.tokens - bills.read)[
        ["conversation", "strategy", "model", "tokens", "found", "read", "not_read", "output"]
    ]


def _savings(run: Run) -> pd.DataFrame:
    """Return the tokens saved and summaries made, by conversation and strategy."""
    keys = ["conversation", "strategy"]
    steps, events = run.table("steps"), run.table("events")
    saved = steps.assign(saved=steps.tokens_full - steps.tokens_sent).groupby(keys, observed=True).saved.sum()
    summarised = events[events.kind == "summarised"].groupby(keys, observed=True).size()
    summaries = pd.Series({key: int(summarised.get(key, 0)) for key in saved.index}, dtype="int64")
    return saved.to_frame().assign(summaries=summaries.to_numpy()).reset_index()


def _summed(rows: pd.DataFrame, scenarios: dict[str, str], more: Sequence[str] = ()) -> pd.DataFrame:
    """Return sums over conversations, by strategy and scenario in the order of the run."""
    placed = rows.assign(
        strategy=rows.strategy.astype(str), scenario=[scenarios[str(name)] for name in rows.conversation]
    )
    return placed.drop(columns="conversation").groupby([*BY, *more], observed=True, sort=False).sum().reset_index()
