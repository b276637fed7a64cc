"""`ctxbench lab calibrate`, `validate`, `claims` and `tiers`: parts of ctxbench beside what is known of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import typer

from ctxbench.scenarios.errors import RunError, UserError

from .arguments import ModelOptions, Seed, run_folder
from .replies import ANEW, end, report_spending
from .streams import report_problems, resumable, say

if TYPE_CHECKING:
    from ctxbench.harness.graders.calibration import LabelledSet
    from ctxbench.harness.graders.profiles import Profile


_MOST_NAMED = 8  # bad records, or calls that cannot be compared, that are printed one by one


def calibrate(
    inputs: list[Path],
    *,
    grader: list[str] | None = None,
    sample: str = "",
    seed: Seed = 0,
    out: Path | None = None,
    columns: str = "",
    as_json: bool = False,
    strict: bool = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Compare graders with human labels, answer by answer.

    The result is stored as the grader's profile, which reports show beside its scores. Known formats of labelled
    answers: EVOUNA, HalluQA, MT-RAG's ratings, LoCoMo's recorded answers, and JSON Lines of your own
    ({"question", "accepted", "candidate", "correct"}). Any other CSV, TSV or JSON is read by --columns. The exit code
    is 2, after the tables, if a grader graded nothing, and with --strict if any reply of its model is missing.

    Args:
        inputs (PATH): Answers with labels: files, or folders of them.
        grader (-g GRADER): A grader; repeat it to compare. [default: rules]
        sample (N[,by=system]): Use a sample of N answers of each set, spread over the questions, or drawn equally from
            each system. [default: all]
        seed: Seed of the sample and the resamples.
        out (-o FOLDER): Folder of the profiles. [default: ~/.cache/ctxbench/profiles]
        columns (NAME=COLUMN,…): Read CSV, TSV or JSON by columns: question=Q,gold=G,answer=A,label=L; also id, system,
            kind and exact_dates (true where the question is about a conversation: a date less exact than the gold is
            wrong).
    """
    from ctxbench.harness.answers.tally import profile_tally
    from ctxbench.harness.graders.calibration import calibrated, sample_of
    from ctxbench.harness.graders.registry import grader as named
    from ctxbench.harness.models import Models
    from ctxbench.reports import calibration as shown

    from .output import put
    from .progress import counting

    if out is not None and out.exists() and not out.is_dir():
        raise RunError(f"{out}: is a file; name a folder for the profiles")
    settings = reach.settings()
    models = Models(settings)
    # Every grader is made before anything is graded: a misspelt one must not cost what the first one graded.
    graders = [named(part, settings, models) for part in dict.fromkeys(grader or ["rules"])]
    sets = _sets(inputs, strict, columns)
    if sample:
        number, _, by = sample.partition(",")
        if not number.isdecimal() or by not in ("", "by=system"):
            raise UserError(f"--sample {sample!r}: write 300, or 300,by=system")
        sets = [sample_of(part, int(number[:9]), seed, bool(by)) for part in sets]
    size = len(graders) * sum(len(part.answers) for part in sets)
    kept = f"replies of models are in {settings.path()}"
    # Standard output is for figures, whatever a library prints.
    with resumable(kept), redirect_stdout(sys.stderr), counting(size, "answers") as done:
        results = [calibrated(part, graders, done, seed) for part in sets]
    put(lambda: shown.as_json(results), lambda: shown.tables(results), as_json)
    profiles = [profile for calibrated in results for profile in calibrated.profiles]
    tallies = [tally for profile in profiles if (tally := profile_tally(profile)) is not None]
    failed = _keep(profiles, out)
    end(tallies, strict, settings, anew=ANEW, failed=failed)


def _sets(inputs: Sequence[Path], strict: bool, columns: str) -> list[LabelledSet]:
    """Return the labelled sets of all files, and print problems of the reading. Raises UserError if there are none."""
    from ctxbench.harness.graders.calibration import sets_of
    from ctxbench.scenarios.labelled import FORMATS, parse_columns, read
    from ctxbench.scenarios.source import Problems

    problems = Problems(strict=strict)
    sets = sets_of(read(inputs, problems, parse_columns(columns) if columns else None))
    if columns and not sets and problems.errors:
        raise problems.errors[0]
    report_problems(problems, _MOST_NAMED)
    if not sets:
        raise RunError(f"no labelled answer could be read; formats of such answers are {', '.join(FORMATS)}")
    return sets


def _keep(profiles: Sequence[Profile], folder: Path | None) -> bool:
    """Write the profiles. A grader that graded nothing on a set has none there: return whether there is one."""
    from ctxbench.harness.answers.tally import profile_tally
    from ctxbench.harness.graders.profiles import keep, user_folder

    files = [keep(profile, folder or user_folder()) for profile in profiles if profile.graded]
    if files:
        say(f"written: {', '.join(map(str, files))}")
    empty = [profile for profile in profiles if not profile.graded]
    # Where a model failed to reply, that is said of the model.
    if names := dict.fromkeys(f"{part.grader} on {part.set}" for part in empty if profile_tally(part) is None):
        say(f"error: nothing was graded by {'; '.join(names)}: see the table without a grade")
    return bool(empty)


def validate(inputs: list[str], *, form: str | None = None, strict: bool = False, as_json: bool = False) -> None:
    """Check the cache models against recorded usage, call by call.

    The prompt cache of each model is simulated under the rules of the recording's date. Its cache reads are compared
    with those that the provider reported, and recorded costs with the cost of the reported usage.

    Args:
        inputs (PATH): Recordings that hold the provider's usage.
    """
    from ctxbench.harness.bill import usual_prices
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.metrics.validation.comparison import Counters
    from ctxbench.metrics.validation.validation import validation
    from ctxbench.reports import validation as shown
    from ctxbench.scenarios.source import Problems

    from .output import put

    problems = Problems(strict=strict)
    conversations = list(RunInputs(tuple(inputs), form).read(problems))
    validated = validation(conversations, Counters(), usual_prices())
    report_problems(problems)
    left_out = validated.replayed.left_out
    for error in left_out[:_MOST_NAMED]:
        say(f"not compared: {error}")
    if len(left_out) > _MOST_NAMED:
        say(f"not compared: {len(left_out) - _MOST_NAMED:,} more; --json has all")
    if not (validated.rows or validated.costs or validated.replayed.without_rule or left_out):
        raise RunError("no recorded call reports its usage: there is nothing to compare with")
    left = [str(problem) for problem in problems.errors]
    put(lambda: {**shown.as_json(validated), "problems": left}, lambda: shown.tables(validated), as_json)


def claims(
    run: Path | None = None,
    *,
    only: list[str] | None = None,
    recordings: list[str] | None = None,
    effort: Literal["quick", "usual", "slow"] = "usual",
    embedder: str = "offline",
    in_brief: bool = False,
    as_json: bool = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Measure each claim by its protocol: it holds, fails, or cannot be told, and why.

    The 95 % interval decides, never a point. Strategies that the run lacks run on its conversations. If all claims are
    measured, they are stored in the run folder and `ctxbench report` shows them. Every core has its claims: what is
    timed is least disturbed by itself (--only C28). The exit code is 2, after the tables, if the embedder gave no
    usable reply.

    Args:
        run (RUN): The run folder. [default: a run of `standard`, made for the claims]
        only (C05): Show this claim only, with every setting; repeat it. [default: all]
        recordings (-r PATH): Recordings for claims that can use them; repeat it.
        effort: quick: leave out what takes a minute (hybrid scores, large indexes). slow: also build an index of a
            million vectors (15 minutes, 3 GiB).
    """
    from ctxbench.harness.claims.registry import chosen, measure, write
    from ctxbench.harness.claims.rows import ClaimInputs, ClaimSettings
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.claims import as_json as exact
    from ctxbench.reports.claims import brief, tables

    from .output import print_json, print_tables
    from .progress import counting

    models, claims_chosen = reach.settings(embedder=embedder), chosen(only or ())
    strategies = tuple(dict.fromkeys(name for claim in claims_chosen for name in claim.strategies))
    own = "" if run is None else str(load(run_folder(run)).folder)  # its errors come before anything is measured
    with TemporaryDirectory(prefix="ctxbench-claims-") as folder, redirect_stdout(sys.stderr):
        settings = ClaimSettings(
            folder=folder,
            run=own,
            strategies=strategies,
            recordings=tuple(recordings or ()),
            quick=effort == "quick",
            slow=effort == "slow",
            models=models,
            jobs=os.cpu_count() or 1,
        )
        inputs = ClaimInputs(settings)
        _ = inputs.recorded  # so are those of the recordings
        for note in inputs.notes:
            say(note)
        with counting(len(claims_chosen), "claims") as done:
            findings = measure(claims_chosen, inputs, done)
        if own and not only:
            written = write(inputs.run, findings, settings)
            say(f"written: {written}")
    if as_json:
        print_json(exact(findings))
    elif in_brief:
        typer.echo(brief(findings))
    else:
        print_tables(tables(findings, bool(only)))
    report_spending(models)
    for failure in inputs.failures:
        say(f"error: {failure}")
    if inputs.failures:
        raise typer.Exit(2)


def tiers(
    specs: list[str] | None = None,
    *,
    as_json: bool = False,
    strict: bool = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Measure memory tiers alone, beside the best known alternatives and the bound that none can exceed.

    Without a SPEC all tiers are measured on the acceptance loads of their design. There are

        all(index, strategy, turns)                                      a line for each tier
        working(trace, policies, capacity, seeds)                        hit rates of cache policies
        archive(recordings, format, level, dictionary)                   sizes, losses and speed
        rag(recordings, format, retrievers, k, index, words, embedder)   recall of evidence, latency

    Where recordings are read, the exit code is 2 if one was left out.

    Args:
        specs (TIER): A tier and what to measure it on, written as a strategy is: 'rag(recordings="talks.jsonl", k=10)'.
            [default: all]
    """
    from ctxbench.harness.tier_bench.archive import ArchiveBench
    from ctxbench.harness.tier_bench.bench import BenchSetup
    from ctxbench.harness.tier_bench.overview import Overview
    from ctxbench.harness.tier_bench.rag import RagBench
    from ctxbench.harness.tier_bench.working import Working
    from ctxbench.reports import tiers as shown
    from ctxbench.scenarios.source import Problems
    from ctxbench.scenarios.spec import parse, spec

    from .output import put
    from .progress import counting, watching

    kinds = {"all": Overview, "working": Working, "archive": ArchiveBench, "rag": RagBench}
    names = {kind: name for name, kind in kinds.items()}
    parsed = [parse(text, kinds, "tier") for text in specs or ["all"]]
    settings, problems = reach.settings(), Problems(strict=strict)
    with TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        bench = BenchSetup(Path(folder), settings, problems, counting, watching)
        measurements = {spec(names[type(tier)], tier): tier.measure(bench) for tier in parsed}
    report_problems(problems)
    put(
        lambda: {name: shown.as_json(measurement) for name, measurement in measurements.items()},
        lambda: [table for measurement in measurements.values() for table in shown.tables(measurement)],
        as_json,
    )
    end((), strict, settings, failed=bool(problems.errors))
