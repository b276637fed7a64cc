"""Have a run's questions answered and graded by models: what the commands `run`, `answer` and `quality` share."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from . import completion
from .arguments import QUESTIONS_PANEL
from .progress import counting
from .streams import same_command, say, say_stopped

if TYPE_CHECKING:
    from ctxbench.harness.answers.estimate import CallEstimate
    from ctxbench.harness.answers.store import Answered
    from ctxbench.harness.folder.run import Run
    from ctxbench.harness.models import Settings

ASK_ABOVE = 1.0
"""US dollars that an estimate may come to before the user is asked."""


@dataclass(frozen=True)
class AnswerOptions:
    """Options of the commands that have a run's questions answered: who answers, who grades, and how."""

    answerer: Annotated[
        str,
        typer.Option(
            "--answerer",
            "-a",
            metavar="MODEL",
            help="Answer model: `offline` (extractive baseline), `local` (a GGUF file), or a litellm model name.",
            autocompletion=completion.models,
            rich_help_panel=QUESTIONS_PANEL,
        ),
    ] = "offline"
    grader: Annotated[
        str,
        typer.Option(
            "--grader",
            "-g",
            metavar="GRADER",
            help="Grader of the answers: `rules`, `llm`, `logit` or `ragas`.",
            rich_help_panel=QUESTIONS_PANEL,
        ),
    ] = "rules"
    rounds: Annotated[
        int,
        typer.Option(
            min=0,
            max=1000,
            help="Rounds of tool calls before a model has to answer.",
            rich_help_panel=QUESTIONS_PANEL,
        ),
    ] = 4
    answer_tokens: Annotated[
        int,
        typer.Option(
            min=1,
            max=10_000_000,
            help="Token limit of an answer; a reasoning model needs more.",
            rich_help_panel=QUESTIONS_PANEL,
        ),
    ] = 256
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            "-y",
            help=f"Do not ask before models are called for more than ${ASK_ABOVE:.0f} by the estimate.",
            rich_help_panel=QUESTIONS_PANEL,
        ),
    ] = False


def answered_by(opened: Run, settings: Settings, asking: AnswerOptions, overwrite: bool = False) -> Answered:
    """Answer and grade a run, with the estimated cost first, and note in its manifest what was spent.

    Raises UserError if the user does not agree to the cost, or cannot be asked.
    """
    from msgspec.structs import replace

    from ctxbench.harness.answers.answer import Offline, RunProbes, answer
    from ctxbench.harness.answers.chat import ByModel
    from ctxbench.harness.answers.estimate import estimates
    from ctxbench.harness.graders.registry import grader as named
    from ctxbench.harness.models import Models
    from ctxbench.harness.models.purse import note_spending
    from ctxbench.metrics.tokens import TokenCounter
    from ctxbench.scenarios.errors import Stopped

    counter = TokenCounter(opened.manifest.plan.encoding)
    models = Models(replace(checked(settings), run=str(opened.folder)))
    is_model = asking.answerer != "offline"
    answerer = ByModel(models, counter, asking.rounds, asking.answer_tokens) if is_model else Offline(counter)
    try:
        with redirect_stdout(sys.stderr):
            by = named(asking.grader, models=models)
            if settings.mode != "replay":
                _agreed(estimates(opened, answerer, by, again=overwrite), settings, asking)
            with counting(opened.manifest.conversations, "conversations") as done:
                graded = answer(opened, answerer, by, RunProbes(opened, models), again=overwrite, done=done)
    except (Stopped, KeyboardInterrupt):
        say_stopped(f"finished work is stored. To continue: {same_command()}")
        raise
    note_spending(settings.path(), settings.command, opened.folder)
    return graded


def checked(settings: Settings) -> Settings:
    """Return settings with the full name of the answer model. The run has checked the models of its strategies."""
    from msgspec.structs import replace

    full = replace(settings, summariser="offline", embedder="offline").checked()
    return replace(full, summariser=settings.summariser, embedder=settings.embedder)


def _agreed(asked: list[CallEstimate], settings: Settings, asking: AnswerOptions) -> None:
    """Print what is going to be asked, and ask the user where it is dear. Raises UserError without consent."""
    from ctxbench.scenarios.errors import UserError

    for estimate in asked:
        say(f"to ask: {_in_words(estimate)}")
    total = sum(estimate.dollars or 0.0 for estimate in asked)
    if total <= ASK_ABOVE or asking.yes or settings.spend_limit is not None:
        return
    if not sys.stdin.isatty():
        raise UserError(f"models would be called for up to ${total:,.2f}: give --yes, or --spend-limit DOLLARS")
    if not typer.confirm(f"Call models for up to ${total:,.2f}?", err=True):
        raise UserError("no model was called")


def _in_words(estimate: CallEstimate) -> str:
    from ctxbench.reports.render import count, tokens

    dollars = estimate.dollars
    cost = "its price is not known" if dollars is None else f"${dollars:,.2f} at most" if dollars else "no charge"
    size = f"{tokens(estimate.input_tokens)} tokens in, {tokens(estimate.output_tokens)} out at most"
    return f"{estimate.model}: {count(estimate.calls, 'call')}, {size}: {cost}, less what is recorded already"
