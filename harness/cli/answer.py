"""`ctxbench answer`: have the probes of a run answered from what each strategy would send, and the answers graded."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from .models import (
    MODELS,
    BaseOption,
    CassetteMode,
    CassetteOption,
    GgufOption,
    ModeOption,
    RetriesOption,
    SpendOption,
    TimeoutOption,
    say_what_was_spent,
)
from .paste import same_command
from .runs import RunArgument, chosen
from .say import say

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
            help="Who answers: `offline` (finds spans, no model), `local` (a GGUF file), or a litellm model.",
        ),
    ] = "offline",
    grader: Annotated[
        str, typer.Option("--grader", "-g", metavar="GRADER", help="Who grades: `rules`, `llm`, `logit` or `ragas`.")
    ] = "rules",
    rounds: Annotated[
        int,
        typer.Option(min=0, help="How often a model may call tools before it has to answer.", rich_help_panel=MODELS),
    ] = 4,
    answer_tokens: Annotated[
        int,
        typer.Option(
            min=1, help="The most that an answer may take; a model that thinks needs more.", rich_help_panel=MODELS
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
        int, typer.Option(min=1, help="Calls of a provider's model at once.", rich_help_panel=MODELS)
    ] = 4,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Answer and grade again; what a cassette has is replayed.")
    ] = False,
    corrected: Annotated[
        bool,
        typer.Option("--corrected", help="Correct the shares for the errors that the grader makes beside people."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Have a run's probes answered from what each strategy would send, and the answers graded.

    The run has what would be sent for every probe, so nothing is replayed, unless a model calls a tool that a strategy
    offers. Answers and grades are kept in the run folder: what is there is not made again. The bounds last_turn and
    evidence_only are answered as well.
    """
    from ...metrics.tokens import TokenCounter
    from ...reports.answering import answers_of
    from ...reports.answering import notes as said_of
    from ...reports.answers import as_json as exact
    from ...reports.answers import tables as shown
    from ...reports.corrected import corrected_json, corrected_of, corrected_table
    from ...reports.measures import as_json as orders_json
    from ...reports.measures import measures, pairs
    from ...reports.measures import table as orders_table
    from ...scenarios.errors import Stopped
    from ..answering.answers import answer as answered
    from ..answering.chat import ByModel
    from ..answering.figures import figures as of
    from ..answering.offline import Offline
    from ..answering.questions import Probes
    from ..calibrating.profiles import Profiles
    from ..grading import grader as named
    from ..loading import load
    from ..models import Models, Settings
    from .progress import counting
    from .summary import print_json, print_tables

    found = load(chosen(run))
    plan = found.manifest["plan"]
    settings = Settings(
        plan["summariser"],
        plan["embedder"],
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
    made = ByModel(models, TokenCounter(plan["encoding"]), rounds, answer_tokens)
    answering = made if answerer != "offline" else Offline(TokenCounter(plan["encoding"]))
    try:
        with redirect_stdout(sys.stderr), counting(found.manifest["conversations"], "conversations") as done:
            by = named(grader, models=models)
            given = answered(found, answering, by, Probes(found, models), again=overwrite, done=done)
    except (Stopped, KeyboardInterrupt):
        say(f"stopped; what is finished is kept. To go on: {same_command()}")
        raise
    say_what_was_spent(models.settings)
    figures = of(given.answers, given.grades, given.answerer, given.grader)
    profiles = Profiles()
    notes = list(said_of(given, profiles))
    orders = pairs(measures(found, answers_of(found)))
    extra = corrected_of(figures, profiles.of(given.grader)) if corrected else None
    if as_json:
        print_json(
            exact(figures, notes)
            | {"orders": orders_json(orders)}
            | ({"corrected": corrected_json(extra)} if extra is not None else {})
        )
    else:
        print_tables(
            [*shown(figures, notes), orders_table(orders), *([corrected_table(extra)] if extra is not None else [])]
        )
    if not given.answers.answer.notna().any():
        say(f"error: {answering.name} answered nothing: the reasons are in the table Why answers or grades are missing")
        raise typer.Exit(2)


def _checked(settings: Settings) -> Settings:
    """With the full name of the answerer. What strategies asked is known from the run: it was looked at there."""
    from msgspec.structs import replace

    found = replace(settings, summariser="offline", embedder="offline").checked()
    return replace(found, summariser=settings.summariser, embedder=settings.embedder)
