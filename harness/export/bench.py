"""A run as trackers and monitors take it: for MLflow and Weights & Biases a bench, and in it an entry per strategy.

`mlflow.py` writes the same rows. Figures are those of `ctxbench compare`, made of the same sums in the same
order, so that both agree to the last digit. As in the report they are over the conversations that every strategy
finished. A missing figure is no number: it is named with its reason.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import msgspec
import pandas as pd

from ctxbench.metrics.figures import display_name, growth, turn_means
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import MissingExtra, NotLogged, SpecError, printable_line
from ctxbench.scenarios.secrets import hide, without_secrets
from ctxbench.scenarios.spec import calls
from ctxbench.strategies.plugins import quote_files

from ..bill.bill import conversation_bills
from ..bill.simulation import Scheme
from ..compare.figures import About, measured, overall
from ..folder.files import file_digests, joint_digest
from ..folder.run import Run, steps_of, uneven
from ..folder.schema import without_text
from ..folder.store import part_files
from ..live import stored_live


class MetricPoint(NamedTuple):
    """One point of a curve."""

    name: str
    step: int
    value: float


@dataclass(frozen=True, slots=True)
class LoggedStrategy:
    """One strategy as it is logged."""

    parameters: Mapping[str, str]  # its text under `strategy`, and what that names (`parameters`)
    figures: Mapping[str, Value]
    curves: tuple[MetricPoint, ...]
    failed: Mapping[str, str]  # conversations in which it failed, and why

    @property
    def name(self) -> str:
        """The strategy as text."""
        return self.parameters["strategy"]

    @property
    def missing(self) -> dict[str, str]:
        """The missing figures, each with the reason."""
        missing = {name: value for name, value in self.figures.items() if isinstance(value, Missing)}
        return {name: f"{why.why}: {why.detail}" if why.detail else why.why for name, why in missing.items()}

    @property
    def numbers(self) -> dict[str, float]:
        """The figures that are numbers."""
        return {name: value for name, value in self.figures.items() if not isinstance(value, Missing)}


@dataclass(frozen=True, slots=True)
class Bench:
    """A run as it is logged."""

    name: str
    identity: str
    """Digest of all measurements, times included: a copy of a run is that run, and measuring again is another."""
    parameters: Mapping[str, str]
    versions: Mapping[str, str]
    sizes: Mapping[str, int]
    digest: str  # SHA-256 of the recordings
    metrics: Mapping[str, About]
    curves: tuple[MetricPoint, ...]  # those that all strategies share
    entries: tuple[LoggedStrategy, ...]
    manifest: str  # the run's manifest, as JSON
    live: Mapping[str, float]  # figures of the live runs that `ctxbench live` compared
    verdict: Mapping[str, str]  # the verdict on the run as tags; that on a strategy is under `place/STRATEGY`


def bench(
    run: Run, models: Sequence[str] = (), *, text: bool = True, verdict: Mapping[str, str] | None = None
) -> Bench:
    """Return what is logged of a run; without `text` no words of recordings. Raises RunError without a price."""
    run_figures = measured(run, models, clock=True)
    conversations = run.table("conversations")
    left_out = uneven(run_figures.failed, len(conversations))
    figures = overall(run_figures)
    steps, survival = (rows[~rows.conversation.isin(left_out)] for rows in (steps_of(run), run.table("survival")))
    by_turn = growth(turn_means(steps))
    rounds = survival.groupby(["strategy", "age"], observed=True)[["values", "kept"]].sum().reset_index()
    rounds = rounds[rounds["values"] > 0].assign(share=lambda rows: rows.kept / rows["values"])
    curves: dict[str, list[MetricPoint]] = {}
    for name, point in (
        *_curve(by_turn, "growth/tokens_sent", "turn", "tokens_sent"),
        *_curve(rounds, "survival/by_round", "age", "share"),
    ):
        curves.setdefault(name, []).append(point)
    once, names = by_turn.drop_duplicates("turn"), ("tokens_full", "conversations")
    shared = [point for name in names for _, point in _curve(once, f"growth/{name}", "turn", name)]
    entries = []
    for name in run.manifest.plan.strategies:
        failed = run_figures.failed.get(name, {})
        reasons = {conversation: without_secrets(why) if text else "" for conversation, why in failed.items()}
        points = tuple(curves.get(name, ())) if len(failed) < len(conversations) else ()
        entries.append(LoggedStrategy(parameters(name), figures[name], points, reasons))
    sizes = {
        "conversations": len(conversations),
        "compared": len(conversations) - len(left_out),
        "messages": int(conversations.messages.sum()),
        "calls": int(conversations.calls.sum()),
        "tokens": int(conversations.tokens.sum()),
        "strategies": len(entries),
        "failed": sum(map(len, run_figures.failed.values())),
    }
    manifest = run.manifest if text else without_text(run.manifest)
    plan = msgspec.to_builtins(manifest.plan) | {"window": manifest.window}
    plan["recordings"] = ", ".join(plan.pop("names")) or "-"
    del plan["strategies"]
    return Bench(
        run.folder.resolve().name,
        identity(run.folder),
        {name: without_secrets(str(value)) for name, value in plan.items() if value is not None},
        manifest.versions,
        sizes,
        manifest.digest,
        run_figures.metrics,
        tuple(shared),
        tuple(entries),
        without_secrets(_json(manifest)),
        {} if (live := stored_live(run)) is None else live.numbers(),
        verdict or {},
    )


def identity(folder: Path) -> str:
    """Return a digest of a run's bytes, without the files made of it later."""
    names = ["manifest.json", *part_files(folder)]
    return joint_digest(f"{name} {digest}" for name, digest in file_digests(folder, names).items())


def _curve(rows: pd.DataFrame, name: str, step: str, column: str) -> Iterator[tuple[str, MetricPoint]]:
    for strategy, at, number in zip(rows.strategy, rows[step], rows[column], strict=True):
        yield str(strategy), MetricPoint(name, int(at), float(number))


def _json(content: object) -> str:
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def exact(bench: Bench) -> str:
    """Return the figures of each strategy as JSON, each described, and the reasons of the missing ones."""
    about = {name: msgspec.structs.asdict(metric) for name, metric in bench.metrics.items()}

    def figures(entry: LoggedStrategy) -> dict[str, object]:
        numbers = {name: {"value": value, **about[name]} for name, value in entry.numbers.items()}
        return {"figures": numbers, "missing": entry.missing, "failed": entry.failed}

    return _json({entry.name: figures(entry) for entry in bench.entries})


# The figures that a tracker shows first: those of the table that every run ends with. One of the last three is there.
_MEASURES = ("net_saving", "cost_saving", "cache_hit_rate", "compression_ratio", "lru_k_hit_rate")
_QUALITIES = ("answer_quality", "context_recall", "grounding")


def measures(metrics: Iterable[str], quality: str = "") -> list[str]:
    """Return the figures that a run is judged by, in order; the bill is that of the first model."""
    names: dict[str, str] = {}
    for name in metrics:
        names.setdefault(name.partition("(")[0], name)
    best = [name for name in (quality, *_QUALITIES) if name in names][:1]
    return [names[key] for key in (*_MEASURES, *best) if key in names]


_NOT_IN_NAMES = re.compile(r"[^\w\-./ :]")
_PROMPT = re.compile(r"(?P<before>, )?\bprompt='[^']*'(?(before)|(, )?)")


def name_of(metric: str) -> str:
    """Return a figure's name as MLflow takes it: `cost(MODEL)` is `cost/MODEL`, in a group of its own."""
    grouped = re.sub(r"^([\w.]+)\((.*)\)$", r"\1/\2", metric).replace(", ", "/")
    return _NOT_IN_NAMES.sub("_", grouped)[:250]


def metric_keys(metrics: Iterable[str], quality: str = "") -> dict[str, str]:
    """Return the name of each figure in a tracker, where names are sorted: the measures begin with a number.

    Others have no prompt's digest, unless figures differ in that alone.
    """
    short = {metric: name_of(_PROMPT.sub("", metric)) for metric in metrics}
    times = Counter(short.values())
    keys = {metric: key if times[key] == 1 else name_of(metric) for metric, key in short.items()}
    for metric in measures(keys, quality):
        key = metric.partition("(")[0]
        number = 1 + (_MEASURES.index(key) if key in _MEASURES else len(_MEASURES))
        keys[metric] = f"{number} {display_name(metric).partition(' (')[0]}"
    return keys


def parameters(strategy: str) -> dict[str, str]:
    """Return a strategy's text, and each parameter in it as STAGE.PARAMETER; a second `window` is `window.2`."""
    logged, times = {"strategy": without_secrets(strategy)}, Counter[str]()
    with suppress(SpecError):  # a text that this version does not read has no parameters
        for stage in calls(quote_files(strategy), "strategy"):
            times[stage.name] += 1
            place = stage.name if times[stage.name] == 1 else f"{stage.name}.{times[stage.name]}"
            logged |= {f"{place}.{name}": without_secrets(str(value)) for name, value in stage.parameters.items()}
    return logged


def write_wandb(bench: Bench, folder: Path, address: str = "", project: str = "") -> Path:
    """Log every strategy in Weights & Biases, in files below a folder and to the server at `address`, if one is named.

    Without an address everything stays in files, which `wandb sync` sends later. Returns the folder of the files.
    Raises MissingExtra without wandb, NotLogged if it cannot log.
    """
    # It may name a proxy, which would be sent the key, and wandb takes no other place for it.
    if own := next((file for file in map(Path, ("wandb/settings", ".wandb/settings")) if os.path.lexists(file)), None):
        raise NotLogged(f"{own}: wandb would read its settings from this folder: remove it, or set WANDB_ variables")
    try:
        import wandb
    except ModuleNotFoundError:
        raise MissingExtra("wandb", "wandb") from None
    hide(address)
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    folder.mkdir(parents=True, exist_ok=True)
    settings = wandb.Settings(silent=True, console="off", disable_git=True, x_disable_stats=True)
    settings.base_url = address or settings.base_url
    names = metric_keys(bench.metrics, bench.verdict.get("quality", ""))
    try:
        for entry in bench.entries:
            run = wandb.init(
                project=project or "ctxbench",
                group=f"{bench.name} {bench.identity[:8]}",
                job_type="strategy",
                name=entry.name,
                config={**bench.parameters, **entry.parameters, "versions": dict(bench.versions)},
                dir=str(folder),
                mode="online" if address else "offline",
                reinit="finish_previous",
                settings=settings,
            )
            done = 1
            try:  # as a context it would print a trace
                for name, step, value in sorted((*bench.curves, *entry.curves), key=lambda point: point.step):
                    run.log({name_of(name): value}, step=step)
                figures = {names[name]: value for name, value in entry.numbers.items()}
                run.summary.update({**figures, "missing": entry.missing})
                done = 0
            finally:
                run.finish(done)
        wandb.teardown()  # `finish` returns before the last file is written; ending the service waits for it
    except Exception as error:
        if not (isinstance(error, ConnectionError) or type(error).__module__.startswith("wandb.")):
            raise
        with suppress(ConnectionError):  # its service has ended: at the exit that would be a trace
            wandb.teardown(1)
        where, why = without_secrets(address) or folder, without_secrets(str(error)) or "no reply that wandb can read"
        raise NotLogged(f"Weights & Biases at {where} cannot be written to: {why}") from None
    return folder / "wandb"


EMBEDDED = "embedded:"
BY = ["strategy", "scenario"]


def prometheus(run: Run, models: Sequence[str]) -> str:
    """Return a run as Prometheus' text format, under the names that design document 000, section 7, has for monitoring.

    So the dashboards of the running agent show beside it what each strategy would have sent. `input` is here what a
    prompt cache did not have, so that input and cached are the prompt. Tokens saved are a gauge: counters never fall,
    and a strategy may send more than the whole history. A figure that cannot be measured is left out: it is no 0.

    Raises MissingExtra without prometheus_client, RunError for a model without a price.
    """
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
    """Return sums in the run's order by strategy and scenario: the kind of an embedded one, or the name of a file."""
    conversations, scenarios = run.table("conversations"), {}
    for name, source in zip(conversations.conversation, map(str, conversations.source), strict=True):
        path, colon, line = source.rpartition(":")
        file = Path(path if colon and line.isdecimal() else source).name
        is_embedded = source.startswith(EMBEDDED)
        scenarios[str(name)] = source.removeprefix(EMBEDDED).partition("/")[0] if is_embedded else file
    names = [scenarios[str(name)] for name in rows.conversation]
    placed = rows.assign(strategy=rows.strategy.astype(str), scenario=names).drop(columns="conversation")
    return placed.groupby(by, observed=True, sort=False).sum().reset_index()
