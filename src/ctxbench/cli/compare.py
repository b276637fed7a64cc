"""`ctxbench compare` and `ctxbench gate`: runs or strategies compared in pairs of conversations."""

from __future__ import annotations

from pathlib import Path

import typer

from ctxbench.scenarios.errors import UserError

from .arguments import run_folder
from .streams import say


def compare(
    run: Path,
    other: Path | None = None,
    *,
    against: str = "none",
    strategy: list[str] | None = None,
    metric: list[str] | None = None,
    model: list[str] | None = None,
    clock: bool = False,
    every: bool = False,
    markdown: Path | None = None,
    as_json: bool = False,
) -> None:
    """Compare two runs of the same recordings, or the strategies of one run: better, same, worse, or cannot tell.

    Prints one table of what moved beyond its threshold. Differences are in pairs of conversations, and intervals over
    conversations. Strategies of two runs are compared by name. What only one side has is counted.

    Args:
        run (RUN): The run folder to compare with, or the only one.
        other (OTHER): The other run folder. Without it, compare the strategies of RUN.
        against (STRATEGY): Within one run: the strategy to compare the others with.
        strategy (-s SPEC): Compare this strategy only; repeat it. [default: all]
        metric (KEY|FILE.py:NAME): Compare by this metric only, or by your own in a file; repeat it. [default: all
            except latency]
        model (-m MODEL): A model whose bill is compared; repeat it. `none` leaves the bill out. [default: the first
            three of: recorded models, claude-sonnet-5, gpt-5.6, gemini-2.5-pro]
        clock: Compare latency too, for runs on the same idle machine.
        every (--all): Print all that moved, not what moved most alone.
    """
    from ctxbench.api.verdict import comparison_of
    from ctxbench.harness.folder.remote import fetched
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.compare import as_json as exact
    from ctxbench.reports.compare import tables

    from .output import check_form, put

    check_form(as_json, markdown)
    before, after = load(fetched(run)), None if other is None else load(fetched(other))
    compared, titles = comparison_of(before, after, against, strategy or (), metric or (), model or (), clock)
    put(lambda: exact(compared), lambda: tables(compared, titles, every), as_json, markdown)


def gate(
    context: typer.Context,
    run: Path = Path("runs"),
    *,
    baseline: Path = Path("baseline.json"),
    update: bool = False,
    metric: list[str] | None = None,
    policy: Path | None = None,
    markdown: Path | None = None,
    junit: Path | None = None,
    every: bool = False,
    as_json: bool = False,
    model: list[str] | None = None,
) -> None:
    """Compare a run with a baseline: exit code 0 if it passes, 1 if it fails, 2 for a mistake or damage.

    --update writes the baseline instead, billed under --model: a small JSON file with a line for each strategy and
    metric, with the figure of every conversation. Latency is not in it, because it differs between machines.

    Figures are compared exactly: the gate fails if any metric got worse in any conversation, unless the policy allows
    it, and if something is no longer measured or measured differently. Strategies are compared by name.

    Args:
        baseline (-b FILE): The file of the baseline.
        update: Write the baseline from the run, to be reviewed and committed.
        policy (FILE): File of guarded metrics, and how much worse each may get (docs/ci.md). [default: everything in
            the baseline, and not at all]
        junit (FILE): Write JUnit XML to this file.
        every (--all): Print all that got worse or better, not what moved most alone.
        model (-m MODEL): A model whose bill is compared; repeat it. `none` leaves the bill out. [default: those of the
            baseline, or else the first three of: recorded models, claude-sonnet-5, gpt-5.6, gemini-2.5-pro]
    """
    from ctxbench.api.names import metric_keys
    from ctxbench.api.verdict import compared_models, gate_of
    from ctxbench.harness.compare.figures import measured_by_name
    from ctxbench.harness.compare.gate import baseline_text, models_of, write_baseline
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.compare import as_junit, gate_json, gate_tables
    from ctxbench.reports.render import count
    from ctxbench.reports.render import markdown as markdown_of

    from .output import print_json, print_tables, write_text

    if as_json and str(markdown) == "-":
        raise UserError("give --json or --markdown -, not both: there is one standard output")
    senseless = ("policy", "markdown", "junit", "every", "as_json") if update else ("model",)
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE" and parameter.name in senseless:
            why = "--update writes the baseline and compares nothing" if update else "the baseline names what is billed"
            raise UserError(f"{parameter.opts[0]}: {why}: leave it out{'' if update else ', or add --update'}")
    opened = load(run_folder(run))
    own = metric_keys(metric or ())
    if update:
        kept, usual = () if model else models_of(baseline), compared_models(opened)
        models = compared_models(opened, model or kept)
        figures = measured_by_name(opened, models)
        if str(baseline) == "-":
            typer.echo(baseline_text(figures), nl=False)
            return
        write_baseline(figures, baseline)
        strategies = count(len(figures.sums), "strategy", "strategies")
        sizes = count(len(figures.digests), "conversation"), strategies, count(len(figures.metrics), "metric")
        billed = f"billed under {', '.join(models)}" if models else "without a bill"
        if kept and {*models} != {*usual}:
            billed += f", as this file was; this run names {', '.join(usual)}: -m takes others"
        say(f"written: {baseline} ({' × '.join(sizes)}), {billed}")
        return
    answer = gate_of(opened, baseline, policy, own)
    tables = list(gate_tables(answer.decision, answer.look, every))
    if junit is not None:
        write_text(as_junit(answer.decision), junit)
    if markdown is not None:
        write_text(markdown_of(tables), markdown)
    if as_json:
        print_json(gate_json(answer.decision, answer.look))
    elif str(markdown) != "-":
        print_tables(tables)
    raise typer.Exit(0 if answer.passes else 1)
