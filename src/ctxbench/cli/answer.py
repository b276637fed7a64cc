"""`ctxbench lab answer`: answers from each strategy's context, and their grades."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from ctxbench.scenarios.errors import UserError

from .answering import answered_by
from .arguments import ModelOptions, Sample, run_folder
from .replies import end
from .streams import resumable, say


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
        with resumable("nothing is written"):
            written = dumped(opened, RunProbes(opened, Models(settings), sample), dump)
        say(f"written: {dump}: {count(written.prompts, 'prompt')}, {tokens(written.tokens)} tokens")
        return
    if replies is not None and answerer == "offline":
        raise UserError(f"{replies}: whose replies are these? Name the model with --answerer")
    with nullcontext() if remote is None else remote.alone():
        graded = answered_by(opened, settings, grader, overwrite, sample, replies)
        if remote is not None:
            remote.push_answers()
    figures = of(graded.answers, graded.grades, graded.answerer, graded.grader, opened.units)
    profiles = Profiles()
    notes = list(shown.notes(graded, profiles))
    orders = shown.pairs(shown.measures(opened, shown.answers_of(opened)), opened.units)
    extra = corrected_of(figures, profiles.of(graded.grader)) if corrected else None

    def exact() -> dict[str, object]:
        more = {} if extra is None else {"corrected": {row.strategy: row for row in extra}}
        spent = spent_json(load(opened.folder).manifest)
        return {**shown.as_json(figures, notes), "orders": orders, "spent": spent, **more}

    tables = [*shown.tables(figures, notes), shown.agreement_table(orders)]
    put(exact, lambda: [*tables, *([corrected_table(extra)] if extra else [])], as_json)
    end(figures.replies, strict, settings, opened.folder)
