"""`ctxbench compare` and `ctxbench gate`: runs or strategies compared in pairs of conversations."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import completion
from .arguments import USUAL_MODELS, BilledModelsOption, JsonOption, MarkdownOption, RunArgument, run_folder

if TYPE_CHECKING:
    from ctxbench.harness.compare.compare import Rules, RunComparison
    from ctxbench.harness.compare.figures import MeasuredRun
    from ctxbench.harness.compare.gate import GatePolicy
    from ctxbench.harness.folder.run import Run

_UPDATE_PANEL = "With --update"


def compare(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder to compare with, or the only one.")],
    other: Annotated[
        Path | None,
        typer.Argument(metavar="OTHER", help="The other run folder. Without it, compare the strategies of RUN."),
    ] = None,
    against: Annotated[
        str, typer.Option(help="Within one run: the strategy to compare the others with.", metavar="STRATEGY")
    ] = "none",
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy", "-s", metavar="SPEC", help="Compare this strategy only; repeat it.", show_default="all"
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Compare by this metric only; repeat it.", show_default="all except latency"),
    ] = None,
    model: BilledModelsOption = None,
    cost: Annotated[bool, typer.Option("--cost/--no-cost", help="Compare the bill, or leave it out.")] = True,
    clock: Annotated[
        bool, typer.Option("--clock", help="Compare latency too, for runs on the same idle machine.")
    ] = False,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs of the same recordings, or the strategies of one run: better, same, worse, or cannot tell.

    Differences are in pairs of conversations, and intervals over conversations. What only one side has is counted.
    """
    from ctxbench.reports.compare import as_json as exact
    from ctxbench.reports.compare import tables
    from ctxbench.scenarios.errors import UserError

    from .output import print_json, print_tables, write_markdown

    if as_json and markdown is not None:
        raise UserError("give --json or --markdown, not both")
    models = tuple(model or ()) if cost else None
    compared, titles = _compared(run, other, against, strategy or [], metric or [], models, clock)
    if as_json:
        print_json(exact(compared))
    elif markdown is not None:
        write_markdown(list(tables(compared, titles)), markdown)
    else:
        print_tables(list(tables(compared, titles)))


def _compared(
    folder: Path,
    other: Path | None,
    against: str,
    named: list[str],
    metrics: list[str],
    models: tuple[str, ...] | None,
    clock: bool,
) -> tuple[RunComparison, tuple[str, str]]:
    """Compare two runs, or without another one the strategies of a run; return the titles of both sides too."""
    from dataclasses import replace

    from ctxbench.harness.compare.compare import compare, strategies
    from ctxbench.harness.compare.figures import measured
    from ctxbench.harness.folder.remote import fetched
    from ctxbench.harness.folder.run import load
    from ctxbench.scenarios.errors import RunError

    from .arguments import find_strategy

    before = load(fetched(folder))
    after = before if other is None else load(fetched(other))
    names = list(dict.fromkeys(find_strategy(after, name) for name in named)) or list(after.manifest.plan.strategies)
    if other is None:
        base = find_strategy(before, against)
        pairs = [(name, base) for name in names if name != base]
        if not pairs:
            raise RunError(f"{folder}: {base} alone has nothing to be compared with: name another run")
        figures = measured(before, _billed(before, models), clock)
        return compare(figures, figures, pairs, _rules(figures, metrics)), (base, "this one")
    one, two = (measured(run, _billed(run, models), clock) for run in (before, after))
    pairs = [(name, name) for name in names if name in one.sums]
    comparison = compare(one, two, pairs, _rules(two, metrics))
    # A strategy that only one run has is no news to who named the strategies to compare.
    apart = [] if named else strategies(one, two)
    return replace(comparison, unpaired=(*apart, *comparison.unpaired)), ("before", "after")


def _billed(run: Run, models: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the models to bill under: none where there is to be no bill (`models` is None)."""
    from ctxbench.harness.bill.recorded import billed_models

    return () if models is None else billed_models(run, models)


def _rules(figures: MeasuredRun, metrics: list[str]) -> Rules:
    """Return the usual margins of some metrics. Raises SpecError for an unknown one."""
    from ctxbench.harness.compare.gate import REST, GatePolicy, MetricPolicy
    from ctxbench.metrics.figures import METRICS
    from ctxbench.scenarios.errors import SpecError
    from ctxbench.scenarios.spec import suggestion

    known = dict.fromkeys([*figures.metrics, *METRICS])
    for name in metrics:
        if name not in known:
            raise SpecError(f"unknown metric {name!r}{suggestion(name, known)}")
    return GatePolicy({name: MetricPolicy() for name in metrics or [REST]}).rule


def gate(
    context: typer.Context,
    run: RunArgument = Path("runs"),
    baseline: Annotated[Path, typer.Option("--baseline", "-b", help="The file of the baseline.", metavar="FILE")] = (
        Path("baseline.json")
    ),
    update: Annotated[
        bool, typer.Option("--update", help="Write the baseline from the run, to be reviewed and committed.")
    ] = False,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            help="File of guarded metrics and their margins (docs/ci.md).",
            metavar="FILE",
            show_default="everything in the baseline, with the usual margins",
        ),
    ] = None,
    markdown: MarkdownOption = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.", metavar="FILE")] = None,
    as_json: JsonOption = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="A model to bill under; repeat it.",
            show_default=USUAL_MODELS,
            autocompletion=completion.models,
            rich_help_panel=_UPDATE_PANEL,
        ),
    ] = None,
    cost: Annotated[
        bool, typer.Option("--cost/--no-cost", help="Compare the bill, or leave it out.", rich_help_panel=_UPDATE_PANEL)
    ] = True,
) -> None:
    """Compare a run with a baseline: exit code 0 if it passes, 1 if it fails, 2 if it cannot decide.

    --update writes the baseline instead: a small JSON file with a line for each strategy and metric, with the figure of
    every conversation. Latency is not in it, because it differs between machines.

    The gate fails if a metric is worse or is no longer measured. If it cannot tell, it passes, unless the policy says
    otherwise. It cannot decide if the recordings, a metric's formula or a model's prices differ from the baseline.
    """
    from ctxbench.harness.compare.figures import measured, worst_step
    from ctxbench.harness.compare.gate import CODES, read_baseline
    from ctxbench.harness.compare.gate import gate as decide
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.gate import as_json as exact
    from ctxbench.reports.gate import as_junit, tables
    from ctxbench.scenarios.errors import UserError

    from .output import print_json, print_tables, write_markdown, write_text

    if as_json and str(markdown) == "-":
        raise UserError("give --json or --markdown -, not both: there is one standard output")
    _check_options(context, update)
    if update:
        _update(run_folder(run), baseline, tuple(model or ()) if cost else None)
        return
    before = read_baseline(baseline)
    opened = load(run_folder(run))
    rules = _policy(policy, before, opened)
    after = measured(opened, _models(before, rules))  # a bill that nothing guards is not made
    decision = decide(before, after, rules)
    step = partial(worst_step, opened)
    if junit is not None:
        write_text(as_junit(decision), junit)
    shown = list(tables(decision, step))
    if markdown is not None:
        write_markdown(shown, markdown)
    if as_json:
        print_json(exact(decision, step))
    elif str(markdown) != "-":
        print_tables(shown)
    raise typer.Exit(CODES[decision.result])


def _check_options(context: typer.Context, update: bool) -> None:
    """Raise UserError for an option on the command line that the other use of `gate` has."""
    from ctxbench.scenarios.errors import UserError

    others = ("policy", "markdown", "junit", "as_json") if update else ("model", "cost")
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in others and source is not None and source.name == "COMMANDLINE":
            why = "--update writes the baseline and compares nothing" if update else "the baseline names what is billed"
            raise UserError(f"{parameter.opts[0]}: {why}: leave it out{'' if update else ', or add --update'}")


def _update(folder: Path, file: Path, models: tuple[str, ...] | None) -> None:
    """Write the figures of a run as a baseline; - is standard output."""
    from ctxbench.harness.compare.figures import measured
    from ctxbench.harness.compare.gate import baseline_text, write_baseline
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.render import count

    from .streams import say

    run = load(folder)
    figures = measured(run, _billed(run, models))
    if str(file) == "-":
        typer.echo(baseline_text(figures), nl=False)
        return
    write_baseline(figures, file)
    strategies = count(len(figures.sums), "strategy", "strategies")
    sizes = count(len(figures.digests), "conversation"), strategies, count(len(figures.metrics), "metric")
    say(f"written: {file} ({' × '.join(sizes)})")


def _models(baseline: MeasuredRun, policy: GatePolicy) -> list[str]:
    """Return the models whose bill the policy guards."""
    from ctxbench.harness.compare.figures import billed_model

    models = {name: billed_model(name) for name in baseline.metrics}
    guarded = [model for name, model in models.items() if model and policy.rule(name, baseline.metrics[name])]
    return list(dict.fromkeys(guarded))


def _policy(file: Path | None, baseline: MeasuredRun, run: Run) -> GatePolicy:
    from ctxbench.harness.compare.gate import GatePolicy, read_policy

    if file is None:
        return GatePolicy()
    return read_policy(file, baseline.metrics, [*baseline.sums, *run.manifest.plan.strategies])
