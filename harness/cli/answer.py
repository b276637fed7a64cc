"""`ctxbench answer`: have the probes of a run answered from what each strategy would send, and the answers graded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from .arguments import RunArgument, chosen
from .model_options import (
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
from .streams import command, same_command, say

if TYPE_CHECKING:
    from ...reports.answers import Answers
    from ...reports.render import Table
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
    from ...reports.answers import answers_of
    from ...reports.answers import as_json as exact
    from ...reports.answers import notes as said_of
    from ...reports.answers import tables as shown
    from ...reports.calibration import corrected_json, corrected_of, corrected_table
    from ...reports.measures import as_json as orders_json
    from ...reports.measures import measures, pairs
    from ...reports.measures import table as orders_table
    from ...scenarios.errors import Stopped
    from ..answers.answer import Offline
    from ..answers.answer import answer as answered
    from ..answers.chat import ByModel
    from ..answers.figures import figures as of
    from ..answers.questions import RunProbes
    from ..folder.run import load
    from ..graders.profiles import Profiles
    from ..graders.registry import grader as named
    from ..models import Models, Settings
    from .output import print_json, print_tables
    from .progress import counting

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
            given = answered(found, answering, by, RunProbes(found, models), again=overwrite, done=done)
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


def quality(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")] = Path("runs/quality"),
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Ask the model itself what has no reply yet, and write the replies to this file: `make record`. Needs "
            "the weights of `make local-model`; a recording that was stopped goes on.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Have the scenario `quality` answered and graded by a small model, from replies that were recorded with it.

    No key, no weights and no network: the replies come with ctxbench. The answers are graded by the rules too, and are
    kept in a run folder like any other's.
    """
    from ...reports.answers import all_json, answers_of, run_tables
    from ...scenarios.errors import Stopped
    from ..folder.run import load
    from ..quality import conversations, replayed
    from ..quality import record as recorded
    from .output import print_json, print_tables
    from .progress import counting

    try:
        with redirect_stdout(sys.stderr), counting(conversations(), "conversations") as done:
            replies = replayed(out, done) if record is None else recorded(record, out, done)
    except (Stopped, KeyboardInterrupt):
        say(f"stopped; what is finished is kept. To go on: {same_command()}")
        raise
    found = answers_of(load(out))
    if as_json:
        print_json(all_json(found))
    elif found is not None:
        print_tables([*run_tables(found), *_of_itself(found)])
        typer.echo(f"\nresults: {out}/   ({command('report', out)})")
    if not replies.are_whole:
        say(replies.in_words())
    elif record is not None:
        say(f"written: {record}: {len(replies.asked):,} replies")


def _of_itself(found: Answers) -> Iterator[Table]:
    """What is to be known of a model that grades its own answers."""
    from ...reports.render import Table
    from ..models.local import NAME

    for (answerer, grader), notes in found.notes.items():
        if answerer == NAME and NAME in grader:
            yield Table("Of the model's own grades", (), (), notes)
