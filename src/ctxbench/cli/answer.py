"""`ctxbench lab answer` and `ctxbench lab quality`: answers from each strategy's context, and their grades."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import typer

from ctxbench.scenarios.errors import UserError

from .answering import answered_by
from .arguments import ModelOptions, run_folder
from .replies import end
from .streams import command, resumable, say


def answer(
    run: Path = Path("runs"),
    *,
    answerer: str = "offline",
    grader: str = "rules",
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

    Args:
        corrected: Correct the shares for the grader's known errors against human labels.
    """
    from ctxbench.harness.answers.figures import figures as of
    from ctxbench.harness.folder.remote import located
    from ctxbench.harness.folder.run import load
    from ctxbench.harness.graders.profiles import Profiles
    from ctxbench.reports import answers as shown
    from ctxbench.reports.calibration import corrected_of, corrected_table
    from ctxbench.reports.results import spent_json

    from .output import put

    opened = load(run_folder(run))
    plan = opened.manifest.plan
    settings = reach.settings(summariser=plan.summariser, embedder=plan.embedder, answerer=answerer)
    _, remote = located(run)
    with nullcontext() if remote is None else remote.alone():
        graded = answered_by(opened, settings, grader, overwrite)
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


def quality(
    *,
    out: Path = Path("runs/quality"),
    in_brief: bool = False,
    answerer: str = "",
    grader: str = "",
    record: Path | None = None,
    as_json: bool = False,
    strict: bool = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Answer and grade the scenario `questions` with a small model, from recorded replies.

    This needs no key, weights or network: the replies come with ctxbench. Rules grade the answers, and so does the
    model itself; all is stored in a run folder as usual. With --answerer a model of your own answers:

        ctxbench lab quality --answerer "openai/qwen3(api_base='http://127.0.0.1:11434/v1')"

    Args:
        answerer (-a MODEL): A model of your own, by its litellm name. [default: the small one, from its recorded
            replies]
        grader (-g GRADER): A grader of its answers beside `rules`.
        record (FILE): Call the model where a reply is missing, and write the replies to this file (`make record`).
            Needs the weights of `make local-model`; a stopped recording continues.
    """
    from ctxbench.harness.answers.tally import Tally, answer_tallies
    from ctxbench.harness.folder.run import load
    from ctxbench.harness.models.local import NAME
    from ctxbench.harness.quality import contexts, conversations, replayed
    from ctxbench.harness.quality import record as recorded
    from ctxbench.reports.answers import all_json, answers_of, by_graders

    from .output import print_json, print_tables
    from .progress import counting

    if grader and not answerer:
        raise UserError("--grader grades the answers of a model of your own: name it with --answerer")
    replies = settings = None
    tallies = dict[Tally, None]()
    if answerer:
        settings = reach.settings(answerer=answerer)
        opened = contexts(out)
        for by in dict.fromkeys(("rules", grader or "rules")):
            graded = answered_by(opened, settings, by)
            tallies |= dict.fromkeys(answer_tallies(graded.answers, graded.grades, graded.answerer, graded.grader))
    else:
        kept, shown = resumable("finished work is stored"), counting(conversations(), "conversations")
        with kept, redirect_stdout(sys.stderr), shown as done:
            replies = replayed(out, done) if record is None else recorded(record, out, done)
    answers = answers_of(load(out))
    if as_json:
        print_json(all_json(answers))
    elif answers is not None:
        print_tables(by_graders(answers, brief=in_brief))
        if not in_brief:
            typer.echo(f"\nresults: {out}/   ({command('report', out)} --all)")
    if replies is not None and answers is not None:
        of_model = [figures for figures in answers.figures if figures.answerer == NAME]
        tallies |= dict.fromkeys(tally for figures in of_model for tally in figures.replies)
        if record is not None and not replies.lacking:
            say(f"written: {record}: {len(replies.asked):,} replies")
    end(list(tallies), strict, settings, out, anew="another --out with another --cassette")
