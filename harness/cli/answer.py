"""`ctxbench answer` and `ctxbench quality`: answers to probes from the context of each strategy, and their grades."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from .arguments import (
    MODELS_PANEL,
    BaseOption,
    CassetteMode,
    CassetteOption,
    GgufOption,
    JsonOption,
    ModeOption,
    RetriesOption,
    RunArgument,
    SpendOption,
    TimeoutOption,
    report_spending,
    run_folder,
)
from .streams import command, same_command, say

if TYPE_CHECKING:
    from ..models import Settings


def answer(
    run: RunArgument = Path("runs"),
    answerer: Annotated[
        str,
        typer.Option(
            "--answerer",
            "-a",
            metavar="MODEL",
            help="Answer model: `offline` (extractive baseline), `local` (a GGUF file), or a litellm model name.",
        ),
    ] = "offline",
    grader: Annotated[
        str, typer.Option("--grader", "-g", metavar="GRADER", help="Grader: `rules`, `llm`, `logit` or `ragas`.")
    ] = "rules",
    rounds: Annotated[
        int,
        typer.Option(min=0, help="Rounds of tool calls before a model has to answer.", rich_help_panel=MODELS_PANEL),
    ] = 4,
    answer_tokens: Annotated[
        int,
        typer.Option(
            min=1,
            help="Token limit of an answer; a reasoning model needs more.",
            rich_help_panel=MODELS_PANEL,
        ),
    ] = 256,
    cassette: CassetteOption = None,
    cassette_mode: ModeOption = CassetteMode.auto,
    gguf: GgufOption = None,
    spend_limit: SpendOption = None,
    api_base: BaseOption = "",
    timeout: TimeoutOption = 60.0,
    retries: RetriesOption = 4,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Number of calls to a provider at once.", rich_help_panel=MODELS_PANEL)
    ] = 4,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Answer and grade again; recorded replies are replayed.")
    ] = False,
    corrected: Annotated[
        bool,
        typer.Option("--corrected", help="Correct the shares for the grader's known errors against human labels."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer a run's probes from the context of each strategy, and grade the answers.

    The run stores the context of every probe, so nothing is replayed, unless a model calls a tool that a strategy
    offers. Answers and grades are stored in the run folder and reused. The bounds last_turn and evidence_only are
    answered as well.
    """
    from ...metrics.tokens import TokenCounter
    from ...reports.answers import agreement_json, agreement_table, answers_of, measures, pairs
    from ...reports.answers import as_json as exact
    from ...reports.answers import notes as notes_of
    from ...reports.answers import tables as shown
    from ...reports.calibration import corrected_json, corrected_of, corrected_table
    from ...scenarios.errors import Stopped
    from ..answers.answer import Offline, RunProbes
    from ..answers.answer import answer as answered
    from ..answers.chat import ByModel
    from ..answers.figures import figures as of
    from ..folder.run import load
    from ..graders.profiles import Profiles
    from ..graders.registry import grader as named
    from ..models import Models, Settings
    from .output import print_json, print_tables
    from .streams import counting

    opened = load(run_folder(run))
    plan = opened.manifest.plan
    settings = Settings(
        plan.summariser,
        plan.embedder,
        str(cassette or ""),
        cassette_mode.value,
        str(gguf or ""),
        api_base,
        spend_limit,
        timeout,
        retries,
        concurrency=concurrency,
        command=uuid4().hex,
        answerer=answerer,
    )
    models = Models(_checked(settings))
    model = ByModel(models, TokenCounter(plan.encoding), rounds, answer_tokens)
    answering = model if answerer != "offline" else Offline(TokenCounter(plan.encoding))
    try:
        with redirect_stdout(sys.stderr), counting(opened.manifest.conversations, "conversations") as done:
            by = named(grader, models=models)
            graded = answered(opened, answering, by, RunProbes(opened, models), again=overwrite, done=done)
    except (Stopped, KeyboardInterrupt):
        say(f"stopped; finished work is stored. To continue: {same_command()}")
        raise
    report_spending(models.settings)
    figures = of(graded.answers, graded.grades, graded.answerer, graded.grader)
    profiles = Profiles()
    notes = list(notes_of(graded, profiles))
    orders = pairs(measures(opened, answers_of(opened)))
    extra = corrected_of(figures, profiles.of(graded.grader)) if corrected else None
    if as_json:
        print_json(
            exact(figures, notes)
            | {"orders": agreement_json(orders)}
            | ({"corrected": corrected_json(extra)} if extra is not None else {})
        )
    else:
        print_tables(
            [*shown(figures, notes), agreement_table(orders), *([corrected_table(extra)] if extra is not None else [])]
        )
    if not graded.answers.answer.notna().any():
        say(f"error: {answering.name} answered nothing: see the table Why answers or grades are missing")
        raise typer.Exit(2)


def _checked(settings: Settings) -> Settings:
    """Return settings with the full name of the answer model. The run has checked the models of its strategies."""
    from msgspec.structs import replace

    checked = replace(settings, summariser="offline", embedder="offline").checked()
    return replace(checked, summariser=settings.summariser, embedder=settings.embedder)


def quality(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")] = Path("runs/quality"),
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Call the model where a reply is missing, and write the replies to this file (`make record`). Needs "
            "the weights of `make local-model`; a stopped recording continues.",
        ),
    ] = None,
    in_brief: Annotated[bool, typer.Option("--brief", help="Print the answers' table alone.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer and grade the scenario `questions` with a small model, from recorded replies.

    This needs no key, weights or network: the replies come with ctxbench. Rules grade the answers, and so does the
    model itself; all is stored in a run folder as usual.
    """
    from ...reports.answers import all_json, answers_of, by_graders
    from ...scenarios.errors import Stopped
    from ..folder.run import load
    from ..quality import conversations, replayed
    from ..quality import record as recorded
    from .output import print_json, print_tables
    from .streams import counting

    try:
        with redirect_stdout(sys.stderr), counting(conversations(), "conversations") as done:
            replies = replayed(out, done) if record is None else recorded(record, out, done)
    except (Stopped, KeyboardInterrupt):
        say(f"stopped; finished work is stored. To continue: {same_command()}")
        raise
    answers = answers_of(load(out))
    if as_json:
        print_json(all_json(answers))
    elif answers is not None:
        print_tables(by_graders(answers, brief=in_brief))
        if not in_brief:
            typer.echo(f"\nresults: {out}/   ({command('report', out)} --all)")
    if not replies.are_whole:
        say(replies.in_words())
    elif record is not None:
        say(f"written: {record}: {len(replies.asked):,} replies")
