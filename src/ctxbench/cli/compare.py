"""`ctxbench compare` and `ctxbench gate`: runs or strategies compared in pairs of conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import ComparedModelsOption, JsonOption, MarkdownOption, RunArgument, run_folder
from .streams import say


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
    model: ComparedModelsOption = None,
    clock: Annotated[
        bool, typer.Option("--clock", help="Compare latency too, for runs on the same idle machine.")
    ] = False,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs of the same recordings, or the strategies of one run: better, same, worse, or cannot tell.

    Differences are in pairs of conversations, and intervals over conversations. What only one side has is counted.
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
    put(lambda: exact(compared), lambda: tables(compared, titles), as_json, markdown)


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
    model: ComparedModelsOption = None,
) -> None:
    """Compare a run with a baseline: exit code 0 if it passes, 1 if it fails, 2 if it cannot decide.

    --update writes the baseline instead, billed under --model: a small JSON file with a line for each strategy and
    metric, with the figure of every conversation. Latency is not in it, because it differs between machines.

    The gate fails if a metric is worse or is no longer measured. If it cannot tell, it passes, unless the policy says
    otherwise. It cannot decide if the recordings, a metric's formula or a model's prices differ from the baseline.
    """
    from ctxbench.api.verdict import compared_models, gate_of
    from ctxbench.harness.compare.figures import measured
    from ctxbench.harness.compare.gate import CODES, baseline_text, write_baseline
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.compare import as_junit, gate_json
    from ctxbench.reports.render import count
    from ctxbench.scenarios.errors import UserError

    from .output import print_json, print_tables, write_markdown, write_text

    if as_json and str(markdown) == "-":
        raise UserError("give --json or --markdown -, not both: there is one standard output")
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is not None and source.name == "COMMANDLINE"
        if is_given and parameter.name in (("policy", "markdown", "junit", "as_json") if update else ("model",)):
            why = "--update writes the baseline and compares nothing" if update else "the baseline names what is billed"
            raise UserError(f"{parameter.opts[0]}: {why}: leave it out{'' if update else ', or add --update'}")
    opened = load(run_folder(run))
    if update:
        figures = measured(opened, compared_models(opened, model or ()))
        if str(baseline) == "-":
            typer.echo(baseline_text(figures), nl=False)
            return
        write_baseline(figures, baseline)
        strategies = count(len(figures.sums), "strategy", "strategies")
        sizes = count(len(figures.digests), "conversation"), strategies, count(len(figures.metrics), "metric")
        say(f"written: {baseline} ({' × '.join(sizes)})")
        return
    answer = gate_of(opened, baseline, policy)
    if junit is not None:
        write_text(as_junit(answer.decision), junit)
    if markdown is not None:
        write_markdown(answer.tables, markdown)
    if as_json:
        print_json(gate_json(answer.decision, answer.step))
    elif str(markdown) != "-":
        print_tables(answer.tables)
    raise typer.Exit(CODES[answer.result])
