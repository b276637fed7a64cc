"""Have a run's questions answered and graded by models: what the commands `run` and `answer` share."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import typer

from ctxbench.scenarios.errors import UserError

from .progress import counting
from .streams import resumable, say

if TYPE_CHECKING:
    from pathlib import Path

    from ctxbench.harness.answers.answer import Answerer
    from ctxbench.harness.answers.chat import CallEstimate
    from ctxbench.harness.answers.store import Answered
    from ctxbench.harness.folder.run import Run
    from ctxbench.harness.models import Settings

ASK_ABOVE = 1.0  # US dollars that an estimate may come to before the user is asked


def answered_by(
    opened: Run,
    settings: Settings,
    grader: str,
    overwrite: bool = False,
    sample: int = 0,
    replies: Path | None = None,
) -> Answered:
    """Answer and grade a run, with the estimated cost first, and note in its manifest what was spent.

    The answers are graded by rules as well: those grades cost nothing. `replies` is a file that has the answers.

    Raises UserError if the user does not agree to the cost, or cannot be asked.
    """
    from msgspec.structs import replace

    from ctxbench.harness.answers.answer import Offline, RunProbes, answer
    from ctxbench.harness.answers.chat import ByModel, estimates
    from ctxbench.harness.answers.replies import read_replies
    from ctxbench.harness.graders.registry import grader as named
    from ctxbench.harness.models import Models
    from ctxbench.harness.models.cassette import note_spending
    from ctxbench.metrics.grading.rules import RulesGrader
    from ctxbench.metrics.tokens import TokenCounter

    counter = TokenCounter(opened.manifest.plan.encoding)
    known = settings if replies is None else replace(settings, answerer="offline")
    models = Models(replace(checked(known), run=str(opened.folder)))
    answerer: Answerer = Offline(counter) if models.settings.answerer == "offline" else ByModel(models, counter)
    if replies is not None:
        answerer = read_replies(replies, settings.answerer)
    with resumable("finished work is stored"), redirect_stdout(sys.stderr):
        by, probes = named(grader, models=models), RunProbes(opened, models, sample)
        if not settings.replay:
            _agreed(estimates(opened, answerer, by, probes, again=overwrite), settings)
        with counting(opened.manifest.conversations, "conversations") as done:
            graded = answer(opened, answerer, by, probes, again=overwrite, done=done)
        if not graded.grader.startswith("rules"):
            answer(opened, answerer, RulesGrader(), probes)
    note_spending(settings.path(), settings.command, opened.folder)
    return graded


def check_answering(settings: Settings, grader: str) -> None:
    """Raise a UserError for an answer model or a grader that could not work, before anything is measured."""
    from ctxbench.harness.graders.registry import grader as named
    from ctxbench.harness.models import Models

    named(grader, models=Models(checked(settings)))


def checked(settings: Settings) -> Settings:
    """Return settings with the full name of the answer model. The run has checked the models of its strategies."""
    from msgspec.structs import replace

    full = replace(settings, summariser="offline", embedder="offline").checked()
    return replace(full, summariser=settings.summariser, embedder=settings.embedder)


def _agreed(asked: list[CallEstimate], settings: Settings) -> None:
    """Print what is going to be asked, and ask the user where it is dear. Raises UserError without consent."""
    from ctxbench.reports.render import count, tokens

    for estimate in asked:
        dollars, calls = estimate.dollars, count(estimate.calls, "call")
        cost = "its price is not known" if dollars is None else f"${dollars:,.2f} at most" if dollars else "no charge"
        size = f"{tokens(estimate.input_tokens)} tokens in, {tokens(estimate.output_tokens)} out at most"
        say(f"to ask: {estimate.model}: {calls}, {size}: {cost}, less what is recorded already")
    total = sum(estimate.dollars or 0.0 for estimate in asked)
    if total <= ASK_ABOVE or settings.spend_limit is not None:
        return
    if not sys.stdin.isatty():
        raise UserError(f"models would be called for up to ${total:,.2f}: give --spend-limit DOLLARS")
    if not typer.confirm(f"Call models for up to ${total:,.2f}?", err=True):
        raise UserError("no model was called")
