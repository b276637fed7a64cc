"""A run as Python code uses it: made or opened, asked for its verdict, its frames and its figures."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pandas as pd

from ctxbench.harness.answers.store import answered
from ctxbench.harness.bill import check_priced
from ctxbench.harness.bill.bill import conversation_bills, store_bills
from ctxbench.harness.bill.requests import billed_models
from ctxbench.harness.bill.simulation import Scheme
from ctxbench.harness.compare.figures import measured, measured_by_name, overall
from ctxbench.harness.compare.gate import write_baseline
from ctxbench.harness.engine.plan import Plan, RunInputs, default_strategies, execute
from ctxbench.harness.folder.remote import fetched, located
from ctxbench.harness.folder.run import Run, steps_of, uneven
from ctxbench.harness.folder.run import load as load_folder
from ctxbench.harness.folder.schema import Manifest
from ctxbench.harness.folder.store import remove_empty
from ctxbench.harness.live import By, compared, read_task_runs
from ctxbench.harness.models import Settings
from ctxbench.harness.models.settings import usual_access
from ctxbench.metrics.figures import display_name, growth, metric_of, turn_means
from ctxbench.metrics.value import Missing
from ctxbench.reports import LOSE
from ctxbench.reports.html import sections
from ctxbench.reports.html.page import ReportSection, left_out
from ctxbench.reports.render import count
from ctxbench.reports.results import Results
from ctxbench.reports.verdict import verdict
from ctxbench.reports.verdict_text import tags
from ctxbench.scenarios.errors import RunError, SetupError, SpecError, printable
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.source import Problems
from ctxbench.scenarios.spec import suggestion
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.chain import StrategyLike, listed, texts_of, use_pythons

from .names import MetricLike, check_known, find_strategy, metric_keys, short_trace, short_traces
from .trust import check_unnamed
from .verdict import MORE, BenchmarkGate, BenchmarkLive, BenchmarkVerdict, comparison_frame, comparison_of, gate_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ctxbench.harness.export.mlflow import LogResult

PathText = str | os.PathLike[str]
Tracker = Literal["mlflow", "wandb"]
"""An experiment tracker that a run can be logged to."""
# Recordings that were left out, and strategies of a run, that are named one by one.
_MOST_PROBLEMS, _MOST_NAMES = 5, 12


@short_trace
def run(
    inputs: PathText | Iterable[PathText] = "standard",
    *,
    strategies: StrategyLike | Iterable[StrategyLike] | None = None,
    model: str | Iterable[str] = (),
    out: PathText | None = None,
    jobs: int = 1,
    format: str | None = None,
    encoding: str = "o200k_base",
    window: str | int = "",
    summariser: str = "offline",
    embedder: str = "offline",
    adapter_python: str | Iterable[str] = (),
    probes: str = "made",
    answers: bool = True,
    strict: bool = False,
    overwrite: bool = False,
) -> BenchmarkRun:
    """Replay recordings through strategies and return the run. Nothing leaves the machine unless a model is named.

    inputs       files and folders of recordings, and embedded scenarios: "standard", "load(turns=50, seed=4)"
    strategies   texts such as "window(max_tokens=8000)" or "archive | cache_marks", "@libraries" for those of all
                 installed libraries, or your own: functions of message dicts, `functools.partial` of them, dataclass
                 objects. By default every strategy, and `recorded` where the recorded agents compacted their context
    model        the model to bill under, or several, the most important first. By default those of `ctxbench report`:
                 the recorded one, then others
    window       the context window that overflows are counted against: a model's, or tokens. By default the recorded
                 model's
    out          the run folder, or its address in an object store, s3://bucket/run. The same call goes on with a run
                 that was stopped, and opens one that is finished; one with more recordings or strategies adds them. By
                 default a temporary folder, which goes when the run is no longer used
    jobs         worker processes, 0 = one per core. The figures do not depend on it
    strict       stop at the first recording that cannot be read. By default a warning names those that are left out
    probes       questions to measure quality by: "made" for recordings without any, "recorded", or "none"
    overwrite    replace the run that `out` holds

    The other parameters are the options of `ctxbench run`. Raises UserError for whatever the caller can mend.
    """
    models = _texts(model)
    check_priced(models)
    use_pythons(several(adapter_python))
    chosen, unusable = (None, []) if strategies is None else listed(texts_of(several(strategies)))
    for line in unusable:
        warnings.warn(line, stacklevel=3)
    if chosen == ():
        raise SpecError("strategies: none is named: leave it out for all of them")
    names = tuple(os.path.expanduser(os.fspath(name)) for name in several(inputs))
    if not names and format is None:
        raise RunError("inputs: none is named: give files, folders or scenarios, or leave it out for `standard`")
    if jobs < 0:
        raise SetupError(f"jobs={jobs}: give 1 or more, or 0 for one per core")
    opened = RunInputs(names, format, probes)
    plan = Plan(
        opened,
        default_strategies(opened)[0] if chosen is None else chosen,
        encoding,
        str(window),
        Settings(summariser, embedder, usual=usual_access()),
        probes != "none",
        answers,
    )
    folder, remote = located(tempfile.mkdtemp(prefix="ctxbench-") if out is None else os.path.expanduser(out))
    workers = jobs or os.cpu_count() or 1
    try:
        check = partial(check_unnamed, folder, "Name its strategies as well, give overwrite=True, or name another out")
        manifest = execute(plan, folder, jobs=workers, strict=strict, overwrite=overwrite, remote=remote, check=check)
        if not manifest.conversations:
            remove_empty(folder)
            if remote is not None:
                remote.push_manifest()
            reasons = "; ".join(map(str, manifest.problems[:_MOST_PROBLEMS])) or "there is no recording"
            raise RunError(f"no conversation could be read: {reasons}")
        reader = load_folder(folder)
        store_bills(reader, models, remote)
    except BaseException:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if out is None:  # verdicts and figures read the folder when they are used, and hold the reader as well
        weakref.finalize(reader, shutil.rmtree, folder, ignore_errors=True)
    if problems := [str(problem) for problem in manifest.problems]:
        more = f"; {len(problems) - _MOST_PROBLEMS} more: see run.problems" if len(problems) > _MOST_PROBLEMS else ""
        warnings.warn(f"left out: {'; '.join(problems[:_MOST_PROBLEMS])}{more}", stacklevel=3)
    for strategy, failed in reader.failures.items():
        if len(failed) == manifest.conversations:
            why = next(iter(failed.values()))
            warnings.warn(f"{strategy} failed in every conversation, so it has no figures: {why}", stacklevel=3)
    return BenchmarkRun(reader, models)


@short_trace
def load(folder: PathText, *, model: str | Iterable[str] = ()) -> BenchmarkRun:
    """Open a finished run folder, to be billed under `model` as by `run`. One in an object store is copied here.

    Raises RunError if there is none, if it is not finished, or if parts of it are missing.
    """
    return BenchmarkRun(load_folder(fetched(os.path.expanduser(folder))), _texts(model))


@short_trace
def compare_live(before: PathText, after: PathText, *, by: By | None = None, detect: float = 10.0) -> BenchmarkLive:
    """Compare recordings of the same tasks before and after a change of the agent, as `ctxbench live` does.

    `by` says what names a task, by default what pairs the most; `detect` is the change in percent that you want to see.
    Raises UserError for whatever the caller can mend.
    """

    def warn(problems: Problems) -> None:
        for error in problems.errors:
            warnings.warn(f"left out: {error}", stacklevel=5)

    one, other = (read_task_runs(Path(path).expanduser(), None, None, warn) for path in (before, after))
    return BenchmarkLive(compared(one, other, by, detect / 100))


def log_in_mlflow(run: Run, models: Sequence[str], to: str, experiment: str, text: bool | None) -> LogResult:
    """Log a run in MLflow with its report, as `BenchmarkRun.log` does."""
    from ctxbench.harness.export import mlflow
    from ctxbench.harness.export.bench import bench
    from ctxbench.reports.html.folder import write

    where = mlflow.place(run.folder, to or os.environ.get("MLFLOW_TRACKING_URI", ""))
    shown = where.is_local if text is None else text
    results = Results(run, models, named=models if tuple(models) != billed_models(run) else (), text=shown)
    tags_of_verdict, verdict_text = BenchmarkVerdict.logged(results)
    logged = bench(run, models, text=shown, verdict=tags_of_verdict)
    name = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME", "") or mlflow.EXPERIMENT
    measured_at = int((run.folder / "manifest.json").stat().st_mtime * 1000)

    def write_report(folder: Path) -> None:
        write(results, folder / "report")
        if logged.verdict:
            (folder / "verdict.txt").write_text(verdict_text, "utf-8")

    return mlflow.write(logged, where, measured_at, write_report, name, text=shown)


def several(value: Any) -> tuple[Any, ...]:
    """Return the items of a list, or the one that stands for a list of one."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else (value,)


def _texts(value: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in several(value) if text))


Names = Literal["keys", "display"]
"""Names of the columns of a frame: keys, or display names."""

# Columns that are no metric by this key; everything else that is not here is its key with spaces.
_DISPLAY = {
    "at": "message",
    "base": "cost of whole history",
    "break_even": "break-even turn",
    "cost_fresh": "cost of uncached input",
    "cost_output": "cost of output",
    "cost_own": "cost of own calls",
    "cost_read": "cost of cache reads",
    "cost_written": "cost of cache writes",
    "fresh": "tokens not cached",
    "read": "tokens read from cache",
    "written": "tokens written to cache",
}


def described(frame: pd.DataFrame, names: Names) -> pd.DataFrame:
    """Return the frame with `attrs["names"]` and `attrs["units"]`, its columns renamed if `names` is "display"."""
    if names not in ("keys", "display"):
        raise SpecError(f'names={names!r}: give "keys" or "display"')
    metrics = {str(column): metric_of(str(column)) for column in frame.columns}
    frame.attrs["names"] = {
        key: _DISPLAY.get(key) or (display_name(key) if metric else key.replace("_", " "))
        for key, metric in metrics.items()
    }
    frame.attrs["units"] = {key: metric.unit for key, metric in metrics.items() if metric is not None}
    return frame.rename(columns=frame.attrs["names"]) if names == "display" else frame


FIGURES: Mapping[str, tuple[Callable[[Results], ReportSection | None], str]] = {
    "frontier": (sections.overview_section, "frontier"),
    "growth": (sections.growth_section, "growth"),
    "bill": (sections.bill_section, "bill"),
    "cache": (sections.cache_section, "cached_share"),
    "break_even": (sections.cache_section, "break_even"),
    "grounding": (sections.grounding_section, "grounding"),
    "answers": (sections.answers_section, "answers"),
    "survival": (sections.survival_section, "survival"),
    "latency": (sections.latency_section, "decisions"),
    "miss_ratios": (sections.tiers_section, "miss_ratios"),
}
"""Section of the report that has each figure, and the figure's name there."""


def _show_inline() -> None:
    """Have a notebook show figures that were drawn without pyplot, which would otherwise see to it."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return
    from matplotlib.figure import Figure

    formatters = shell.display_formatter.formatters
    if not any(Figure in formatters[kind].type_printers for kind in ("image/png", "image/svg+xml", "image/jpeg")):
        from IPython.core.pylabtools import select_figure_formats

        select_figure_formats(shell, {"png"})  # type: ignore[no-untyped-call]


@short_traces
class BenchmarkRun:
    """A finished run. `ctxbench.run` makes one, `ctxbench.load` opens one."""

    def __init__(self, reader: Run, models: Sequence[str] = ()) -> None:
        self.reader = reader
        """Reader of the run folder: its tables as Arrow, events, single steps."""
        self._models = tuple(models)

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.reader.folder

    @property
    def _is_temporary(self) -> bool:
        return self.folder.resolve().parent == Path(tempfile.gettempdir()).resolve()

    @property
    def manifest(self) -> Manifest:
        """Plan, versions, digest of the recordings, and problems."""
        return self.reader.manifest

    @property
    def strategies(self) -> tuple[str, ...]:
        """Strategies of the run, in its order."""
        return self.manifest.plan.strategies

    @property
    def problems(self) -> list[str]:
        """Recordings that were left out, each with file, line, field and reason."""
        return [str(problem) for problem in self.manifest.problems]

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Models that the run is billed under, the most important first: those given, or those of `ctxbench report`."""
        return billed_models(self.reader, self._models)

    @cached_property
    def _results(self) -> Results:
        return Results(self.reader, self.models, named=self._models)

    def verdict(self, *models: str, lose: float = LOSE) -> BenchmarkVerdict:
        """Return which strategy to use, billed under the first of `models`, by default of the run's `models`.

        `lose`: points of quality that you accept to lose for a lower bill.
        """
        check_priced(models)
        billed = Results(self.reader, models, named=models) if models else self._results
        if not 0 <= lose <= 100:
            raise SpecError(f"lose={lose}: give points of quality, 0 to 100")
        if lose != billed.lose:
            billed = replace(billed, lose=lose)
        return BenchmarkVerdict(verdict(billed), MORE if self._is_temporary else "")

    def summary(
        self, *models: str, metrics: MetricLike | Iterable[MetricLike] = (), names: Names = "keys"
    ) -> pd.DataFrame:
        """Return one row per strategy and one column per metric; NaN where a value is missing, never 0.

        Columns of the bill, such as `cost(MODEL)` in US dollars, are of `models`, by default of the first of the run's.
        `metrics` are the columns to return, by default all; no other metric of your own is measured.
        Figures are over the conversations that every strategy finished, and equal those of `ctxbench compare`.
        """
        keys = metric_keys(several(metrics))
        figures = overall(measured(self.reader, models or self.models[:1], clock=True, named=keys))
        rows = {
            strategy: {name: np.nan if isinstance(value, Missing) else value for name, value in values.items()}
            for strategy, values in figures.items()
        }
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("strategy")
        check_known(keys, frame.columns)
        return described(frame[keys] if keys else frame, names)

    def growth(self, *, names: Names = "keys") -> pd.DataFrame:
        """Return tokens of a call by strategy and turn: conversations, mean tokens_full and tokens_sent, saving."""
        steps = steps_of(self.reader)
        conversations = self.table("results").conversation.nunique()
        finished = steps[~steps.conversation.isin(uneven(self.reader.failures, conversations))]
        return described(growth(turn_means(finished)), names)

    def bill(self, *models: str, names: Names = "keys") -> pd.DataFrame:
        """Return one row per conversation, strategy and model: tokens read, written and fresh, and costs in US dollars.

        `cost` is without the strategy's own model calls, which are `cost_own`; `base` is the cost of the whole history.
        """
        return described(conversation_bills(self.reader, [Scheme(model) for model in models or self.models]), names)

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of the run folder, whole, such as `steps`: a row per model call and strategy.

        `answers` has those of all answer models with their grades, named in `answerer` and `grader`.
        """
        if name != "answers":
            return self.reader.table(name)
        with self.reader.readable():
            sets, left_out = answered(self.reader)
        if not sets:
            why = " ".join(left_out) or "`ctxbench lab answer` makes them"
            raise RunError(f"{self.folder}: no answers are in this run: {why}")
        return pd.concat([of.rows.assign(answerer=of.answerer, grader=of.grader) for of in sets], ignore_index=True)

    def plot(self, name: str) -> Figure:
        """Draw a figure of the report for papers, by matplotlib.

        Raises SpecError for an unknown name, RunError where the run has nothing to draw.

        By turn: `growth` (tokens of a call), `cache` (share of a call read from the cache), `break_even` (cost up to
        there against the whole history), `grounding`. By strategy: `frontier` (quality and cost, and the line of the
        cheapest for their quality), `bill` (its parts), `answers` (with intervals), `latency`. `survival` of
        facts by round of summarising; `miss_ratios` of caches of messages by policy and size.
        """
        if name not in FIGURES:
            raise SpecError(f"unknown figure {name!r}{suggestion(name, FIGURES)}")
        find, drawn_as = FIGURES[name]
        section = find(self._results)
        charts = section.charts if section is not None else ()
        chart = next((chart for chart in charts if chart.name == drawn_as), None)
        if section is None or chart is None:
            raise RunError(f"{self.folder}: there is nothing to draw: {left_out(drawn_as).notes[0]}")
        _show_inline()
        return chart.draw()

    def conversations(self) -> Iterator[Conversation]:
        """Yield the recorded conversations."""
        return self.reader.conversations()

    def contexts(self, conversation: str, strategy: StrategyLike) -> list[Messages]:
        """Return what a strategy sent at each step of a conversation, named by its id."""
        return list(self.reader.contexts(self.reader.conversation(conversation), find_strategy(self.reader, strategy)))

    def report(self, out: PathText | None = None, *, text: bool = True) -> Path:
        """Write the report (in `report` in the run folder; `text=False`: no text of recordings), return its page."""
        from ctxbench.reports.html.folder import write  # jinja2 comes with it

        results = self._results if text else replace(self._results, text=False)
        BenchmarkVerdict.logged(results)  # which `log` finds in the cache
        return write(results, Path(out).expanduser() if out is not None else self.folder / "report")

    def compare(
        self,
        other: BenchmarkRun | None = None,
        *,
        against: StrategyLike = "none",
        strategies: StrategyLike | Iterable[StrategyLike] = (),
        metrics: MetricLike | Iterable[MetricLike] = (),
        clock: bool = False,
    ) -> pd.DataFrame:
        """Compare this run with a later one of the same recordings, or without `other` its strategies with `against`.

        Returns a row per strategy and metric: the verdict (better, same, worse, cannot tell, …), the figures before and
        after, and their difference with its 95 % interval, in pairs of conversations. `clock` compares latency too.
        """
        after = None if other is None else other.reader
        given = several(strategies), several(metrics)
        return comparison_frame(comparison_of(self.reader, after, against, *given, self.models, clock)[0])

    def write_baseline(self, file: PathText) -> Path:
        """Write the run's figures as a baseline for `gate`: a small JSON file to review and commit."""
        path = Path(file).expanduser()
        write_baseline(measured_by_name(self.reader, self.models), path)
        return path

    def gate(self, baseline: PathText, *, policy: PathText | None = None) -> BenchmarkGate:
        """Compare the run with a baseline file, as `ctxbench gate` does: `assert run.gate("baseline.json").passes`."""
        rules = Path(policy).expanduser() if policy is not None else None
        return gate_of(self.reader, Path(baseline).expanduser(), rules)

    def log(self, tracker: Tracker, to: str = "", *, experiment: str = "", text: bool | None = None) -> str:
        """Log the run to an experiment tracker, an entry per strategy, and return how to see it there.

        mlflow   `to` is the tracking server or store; by default `MLFLOW_TRACKING_URI`, else a file beside the run.
                 What is there already is left as it is
        wandb    `to` is the address of a server; without one everything stays in files beside the run

        `experiment` is by default "ctxbench". `text=False` leaves out every text of the recordings; so does the default
        in what MLflow does not keep on this machine. Raises MissingExtra without the tracker's library, NotLogged if it
        cannot be written to.
        """
        from ctxbench.harness.export.bench import bench, write_wandb

        if tracker not in get_args(Tracker):
            raise SpecError(f"unknown tracker {tracker!r}: give {', '.join(get_args(Tracker))}")
        address = to or (os.environ.get("MLFLOW_TRACKING_URI", "") if tracker == "mlflow" else "")
        if self._is_temporary and not address:
            raise RunError(f"{self.folder} is temporary: say where to log with to=…, or make the run with out=…")
        if tracker == "mlflow":
            return log_in_mlflow(self.reader, self.models, to, experiment, text).how_to_see
        logged = bench(self.reader, self.models, text=text is not False, verdict=tags(verdict(self._results)))
        files = write_wandb(logged, self.folder.resolve().parent, to, experiment)
        return to or f"{shlex.join(['cd', str(files.parent)])} && wandb sync"

    def __repr__(self) -> str:
        return f"<BenchmarkRun: {self.folder}, {self._sizes}>"

    def _repr_html_(self) -> str:
        some = ", ".join(self.strategies[:_MOST_NAMES]) + " …" * (len(self.strategies) > _MOST_NAMES)
        rows = [("run", str(self.folder)), ("holds", self._sizes), ("strategies", some)]
        rows += [("left out", problem) for problem in self.problems[:_MOST_PROBLEMS]]
        left = 'style="text-align: left"'
        cells = (f"<tr><th {left}>{name}</th><td {left}>{escape(printable(text))}</td></tr>" for name, text in rows)
        return f"<table>{''.join(cells)}</table><p><code>run.verdict()</code> says which strategy to ship.</p>"

    @property
    def _sizes(self) -> str:
        sizes = count(self.manifest.conversations, "conversation")
        return f"{sizes}, {count(len(self.strategies), 'strategy', 'strategies')}"
