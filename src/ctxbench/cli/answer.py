"""`ctxbench lab answer`: answers from each strategy's context, and their grades, as `ctxbench run` has them made."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ctxbench.api import trust
from ctxbench.scenarios.errors import SetupError, UserError

from .arguments import ModelOptions, Sample, run_folder
from .progress import counting
from .replies import AGAIN, end
from .streams import resumable, say

if TYPE_CHECKING:
    from ctxbench.harness.answers.answer import Answerer
    from ctxbench.harness.answers.chat import CallEstimate
    from ctxbench.harness.answers.store import Answered
    from ctxbench.harness.folder.run import Run
    from ctxbench.harness.models import Settings

ASK_ABOVE = 1.0  # US dollars that an estimate may come to before the user is asked


def answer(
    run: Path = Path("runs"),
    *,
    answerer: str = "offline",
    grader: str = "rules",
    sample: Sample = 0,
    dump: Path | None = None,
    replies: Path | None = None,
    overwrite: bool = False,
    corrected: bool = False,
    strict: bool = False,
    as_json: bool = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Answer a run's probes from the context of each strategy, and grade the answers.

    The run stores the context of every probe, so nothing is replayed, unless a model calls a tool that a strategy
    offers. Answers and grades are stored in the run folder and reused; the same command asks again for those alone that
    a model failed to give. The bounds last_turn and evidence_only are answered as well. The exit code is 2, after the
    tables, if the answer model or the grader gave no usable reply, and with --strict if any reply is missing.

    Thousands of prompts are best answered elsewhere, by a batch API, a GPU or a cluster:

        ctxbench lab answer runs/now --dump prompts.jsonl
        ctxbench lab answer runs/now --replies replies.jsonl --answerer openai/gpt-4o-mini

    Args:
        sample (N): Ask so many of the questions alone, spread evenly over their kinds, under every strategy. [default:
            all]
        dump (FILE): Write every distinct prompt as a line of JSON (digest, text, tokens), and answer nothing.
        replies (FILE): Take the replies from a file of lines {"digest": …, "reply": …}, made by the --answerer, instead
            of calling it.
        corrected: Correct the shares for the grader's known errors against human labels.
        strict: Exit with code 2 if a reply of a model, or in the file, is missing.
    """
    from ctxbench.harness.answers.answer import RunProbes
    from ctxbench.harness.answers.figures import figures as of
    from ctxbench.harness.answers.replies import dump as dumped
    from ctxbench.harness.folder.remote import located
    from ctxbench.harness.folder.run import load
    from ctxbench.harness.graders.profiles import Profiles
    from ctxbench.harness.models import Models
    from ctxbench.reports import answers as shown
    from ctxbench.reports.calibration import corrected_of, corrected_table
    from ctxbench.reports.render import count, tokens
    from ctxbench.reports.results import spent_json

    from .output import put

    opened = load(run_folder(run))
    plan = opened.manifest.plan
    settings = reach.settings(summariser=plan.summariser, embedder=plan.embedder, answerer=answerer)
    _, remote = located(run)
    if dump is not None:
        if str(dump) == "-":
            raise SetupError("--dump -: name a file")
        with resumable("nothing is written"):
            prompts, size = dumped(opened, RunProbes(opened, Models(settings), sample), dump)
        say(f"written: {dump}: {count(prompts, 'prompt')}, {tokens(size)} tokens")
        return
    effects = trust.run_effects(plan)
    if answerer != "offline" and replies is None and not trust.is_approved(opened.folder / "manifest.json", effects):
        how = "If you trust whoever made this run, set CTXBENCH_TRUST=1"
        trust.refuse(opened.folder, effects, how)
    if replies is not None and answerer == "offline":
        raise UserError(f"{replies}: whose replies are these? Name the model with --answerer")
    with nullcontext() if remote is None else remote.alone():
        graded = answered_by(opened, settings, grader, overwrite, sample, replies)
        if remote is not None:
            remote.push_answers()
    figures = of(graded.answers, graded.grades, graded.answerer, graded.grader, opened.units)
    profiles = Profiles()
    notes = list(shown.notes(graded, profiles))
    extra = corrected_of(figures, profiles.of(graded.grader)) if corrected else None

    def exact() -> dict[str, object]:
        more = {} if extra is None else {"corrected": {row.strategy: row for row in extra}}
        spent = spent_json(load(opened.folder).manifest)
        return {**shown.as_json(figures, notes), "spent": spent, **more}

    put(exact, lambda: [*shown.tables(figures, notes), *([corrected_table(extra)] if extra else [])], as_json)
    anew = AGAIN if replies is None else "a file that has others replaces them"
    end(figures.replies, strict, settings, opened.folder, anew=anew)


def answered_by(
    opened: Run, settings: Settings, grader: str, overwrite: bool = False, sample: int = 0, replies: Path | None = None
) -> Answered:
    """Answer and grade a run, with the estimated cost first, and note in its manifest what was spent.

    The answers are graded by rules as well: those grades cost nothing. `replies` is a file that has the answers.

    Raises UserError if the user does not agree to the cost, or cannot be asked.
    """
    from msgspec.structs import replace

    from ctxbench.harness.answers.answer import Offline, RunProbes, answer
    from ctxbench.harness.answers.chat import ByModel, estimates
    from ctxbench.harness.answers.replies import check_replies, read_replies
    from ctxbench.harness.graders.registry import grader as named
    from ctxbench.harness.models import Models
    from ctxbench.harness.models.cassette import note_spending
    from ctxbench.metrics.grading.rules import RulesGrader
    from ctxbench.metrics.tokens import TokenCounter

    counter = TokenCounter(opened.manifest.plan.encoding)
    known = settings if replies is None else replace(settings, answerer="offline")
    models = Models(replace(checked(known), run=str(opened.folder)))
    answerer: Answerer = Offline(counter) if models.settings.answerer == "offline" else ByModel(models, counter)
    probes = RunProbes(opened, models, sample)
    if replies is not None:
        check_replies(answerer := read_replies(replies, settings.answerer), opened, probes, replies)
    with resumable("finished work is stored"), redirect_stdout(sys.stderr):
        by = named(grader, models=models)
        if not settings.replay:
            _agreed(estimates(opened, answerer, by, probes, again=overwrite), settings)
        with counting(opened.manifest.conversations, "conversations") as done:
            graded = answer(opened, answerer, by, probes, again=overwrite, done=done)
        if not graded.grader.startswith("rules"):
            answer(opened, answerer, RulesGrader(), probes, ask=False)
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
        raise UserError(f"models would be called for up to ${total:,.2f}, so none was: give --spend-limit DOLLARS")
    if not typer.confirm(f"Call models for up to ${total:,.2f}?", err=True):
        raise UserError("no model was called")
