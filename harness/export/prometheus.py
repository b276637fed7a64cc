"""Write a run as Prometheus' text format, under the metric names that design document 000, section 7, gives to
monitoring.

So the dashboards of the running agent show beside it what each strategy would have sent. The document counts input,
output and cached tokens: `input` is here what a prompt cache did not have, so that input and cached are the prompt. Its
counter of tokens saved is a gauge here: a strategy may send more than the whole history, and counters never fall. A
figure that cannot be measured is left out: it is no 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pandas as pd

from ctxbench.scenarios.errors import MissingExtra, printable_line

from ..bill.bill import conversation_bills
from ..bill.simulation import Scheme
from ..folder.run import Run

EMBEDDED = "embedded:"
BY = ["strategy", "scenario"]


def prometheus(run: Run, models: Sequence[str]) -> str:
    """Return the run as text. Raises MissingExtra without prometheus_client, RunError for a model without a price."""
    try:
        from prometheus_client import generate_latest
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    except ModuleNotFoundError:
        raise MissingExtra("prometheus_client", "prometheus") from None
    billed = conversation_bills(run, [Scheme(model) for model in dict.fromkeys(models)])
    columns = ["conversation", "strategy", "model", "tokens", "found", "read", "output"]
    bills = _summed(run, billed[columns], [*BY, "model"])
    bills["input"] = bills.tokens - bills.read
    about = (
        "Tokens of all calls: input = of the prompt, not read from a cache; cached = read from it; output as recorded"
    )
    usage = CounterMetricFamily("agent_token_usage", about, labels=[*BY, "model", "type"])
    about = "Share of the prompt tokens that the cache had"
    rate = GaugeMetricFamily("agent_cache_hit_rate", about, labels=[*BY, "model"])
    for row in bills.to_dict("records"):
        labels = [printable_line(str(row[name])) for name in (*BY, "model")]
        for kind, column in (("input", "input"), ("output", "output"), ("cached", "read")):
            usage.add_metric([*labels, kind], row[column])
        if row["tokens"]:
            rate.add_metric(labels, row["found"] / row["tokens"])
    summaries = CounterMetricFamily("agent_summarization", "Summaries made", labels=BY)
    about = "Tokens of the whole history less the tokens sent: may be negative"
    saved = GaugeMetricFamily("agent_token_savings_total", about, labels=BY)
    steps, events = run.table("steps"), run.table("events")
    made = events[events.kind == "summarised"][["conversation", "strategy"]].assign(summaries=1)
    tokens = steps[["conversation", "strategy"]].assign(saved=steps.tokens_full - steps.tokens_sent)
    tokens = tokens.sort_values(["conversation", "strategy"], kind="stable")  # in the order of the run
    for row in _summed(run, pd.concat([tokens, made]), BY).to_dict("records"):
        labels = [printable_line(str(row[name])) for name in BY]
        summaries.add_metric(labels, int(row["summaries"]))
        saved.add_metric(labels, int(row["saved"]))

    collected = (usage, rate, summaries, saved)
    return generate_latest(SimpleNamespace(collect=lambda: collected)).decode()


def _summed(run: Run, rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return sums over conversations, in the order of the run, by strategy and scenario.

    A scenario is the kind of an embedded one, or the name of the file that the conversation was read from.
    """
    conversations, scenarios = run.table("conversations"), {}
    for name, source in zip(conversations.conversation, map(str, conversations.source), strict=True):
        path, colon, line = source.rpartition(":")
        file = Path(path if colon and line.isdecimal() else source).name
        is_embedded = source.startswith(EMBEDDED)
        scenarios[str(name)] = source.removeprefix(EMBEDDED).partition("/")[0] if is_embedded else file
    names = [scenarios[str(name)] for name in rows.conversation]
    placed = rows.assign(strategy=rows.strategy.astype(str), scenario=names).drop(columns="conversation")
    return placed.groupby(by, observed=True, sort=False).sum().reset_index()
