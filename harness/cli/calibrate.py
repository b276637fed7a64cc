"""`ctxbench calibrate`: graders beside human labels."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

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
from .streams import same_command, say, say_what_was_passed_over

if TYPE_CHECKING:
    from ..graders.calibration import Calibrated
    from ..graders.labels import LabelledSet


SAID = 8
"""Bad records that are named one by one."""


class Language(StrEnum):
    """Of the question."""

    en = "en"
    zh = "zh"


def calibrate(
    inputs: Annotated[
        list[Path], typer.Argument(help="Answers with labels: files, or folders of them.", metavar="PATH")
    ],
    grader: Annotated[
        list[str] | None,
        typer.Option("--grader", "-g", metavar="SPEC", help="A grader; repeat it to compare.", show_default="rules"),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="So many answers of each set, to as many questions as can be.")
    ] = None,
    by_system: Annotated[
        bool, typer.Option("--by-system", help="A sample with as many answers of each system.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the sample, the halves and the resamples.")] = 0,
    language: Annotated[Language | None, typer.Option(help="Only questions in this language.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="Only questions of this kind: plain, temporal, preference, update, unanswerable.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="Only answers of this system.")] = None,
    attacked: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Let N of the answers speak to the grader, and count what it believes."),
    ] = 0,
    resamples: Annotated[int, typer.Option(min=1000, max=100_000, help="Of the bootstrap.")] = 2000,
    date: Annotated[
        str,
        typer.Option(help="A date to be kept in the profile.", metavar="YYYY-MM-DD", show_default=False),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where profiles are kept.", show_default="~/.cache/ctxbench/profiles"),
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the ROC curves, as .svg or .png.", metavar="FILE")] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Whom graders ask that need a model: `local` (a GGUF file), or a litellm model name.",
            rich_help_panel=MODELS,
        ),
    ] = "local",
    cassette: CassetteOption = None,
    cassette_mode: ModeOption = CassetteMode.auto,
    gguf: GgufOption = None,
    spend_limit: SpendOption = None,
    api_base: BaseOption = "",
    timeout: TimeoutOption = 60.0,
    retries: RetriesOption = 4,
    strict: Annotated[bool, typer.Option("--strict/--keep-going", help="Stop at the first bad record.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Compare graders with the labels of people, answer by answer.

    What is found is kept as the grader's profile, which reports quote beside its scores. Known formats of labelled
    answers: EVOUNA, HalluQA, MT-RAG's ratings, LoCoMo's recorded answers, and JSON Lines of your own
    ({"question", "accepted", "candidate", "correct"}).
    """
    from ...metrics.grading.baselines import BASELINES
    from ...reports.calibration import as_json as exact
    from ...reports.calibration import tables
    from ...reports.figures.style import check
    from ...scenarios.errors import RunError, Stopped
    from ..graders.attacks import ATTACKS
    from ..graders.calibration import Options, calibrated
    from ..graders.labels import sample_of
    from ..graders.registry import grader as named
    from ..models import Models, Settings
    from .output import print_json, print_tables
    from .progress import counting

    _check_date(date)
    if figure is not None:
        check(figure)
    if out is not None and out.exists() and not out.is_dir():
        raise RunError(f"{out}: is a file; profiles are kept in a folder: name another")
    settings = Settings(
        grader=model,
        cassette=str(cassette or ""),
        mode=cassette_mode.value,
        gguf=str(gguf or ""),
        api_base=api_base,
        spend_limit=spend_limit,
        timeout=timeout,
        retries=retries,
        command=uuid4().hex,
    )
    models = Models(settings)
    graders = [named(each, settings, models) for each in dict.fromkeys(grader or ["rules"])]
    chosen = {"language": language and language.value, "kind": kind, "system": system}
    sets = _parts(_sets(inputs, strict), {name: value for name, value in chosen.items() if value is not None})
    if sample is not None:
        sets = [sample_of(each, sample, seed, by_system) for each in sets]
    size = len(graders) * sum(len(each.answers) + attacked * len(ATTACKS) for each in sets)
    options = Options(resamples, seed, attacked, date)
    try:
        with redirect_stdout(sys.stderr), counting(size, "answers") as done:
            found = [calibrated(each, graders, BASELINES, options, done) for each in sets]
    except (Stopped, KeyboardInterrupt):
        say(f"stopped; what models replied is in {settings.path()}. To go on: {same_command()}")
        raise
    say_what_was_spent(settings)
    if figure is not None:
        from ...reports.figures.agreement import roc
        from ...reports.figures.style import save

        save(roc(found), figure)
    if as_json:
        print_json(exact(found))
    else:
        print_tables(list(tables(found)))
    _keep(found, out)


def _check_date(text: str) -> None:
    """Raise a UserError for what is no day."""
    from datetime import date

    from ...scenarios.errors import UserError

    try:
        if text and date.fromisoformat(text).isoformat() != text:
            raise ValueError
    except ValueError:
        raise UserError(f"--date {text!r} is no day: give it as 2026-11-22") from None


def _sets(inputs: Sequence[Path], strict: bool) -> list[LabelledSet]:
    """The labelled sets of all files, and what is to be said of the reading."""
    from ...scenarios.errors import RunError
    from ...scenarios.labelled import FORMATS, read
    from ...scenarios.source import Problems
    from ..graders.labels import sets_of

    problems = Problems(strict=strict)
    sets = sets_of(read(inputs, problems))
    for problem in problems.found[:SAID]:
        say(f"left out: {problem}")
    if len(problems.found) > SAID:
        say(f"left out: {len(problems.found) - SAID:,} more")
    say_what_was_passed_over(problems.ignored, problems.notes)
    if not sets:
        raise RunError(f"no labelled answer could be read; formats of such answers are {', '.join(FORMATS)}")
    return sets


def _parts(sets: Sequence[LabelledSet], only: dict[str, str]) -> list[LabelledSet]:
    """Of each set the answers asked for. A set without any is left out, and it is said. Raises RunError if all are."""
    from ...scenarios.errors import RunError
    from ..graders.labels import part_of

    parts = [part_of(each, only) for each in sets] if only else list(sets)
    there = [
        f"{each.name} has {name} {', '.join(sorted({getattr(answer, name) or '(none)' for answer in each.answers}))}"
        for each, part in zip(sets, parts, strict=True)
        if not part.answers
        for name in only
    ]
    kept = [each for each in parts if each.answers]
    if not kept:
        wanted = ", ".join(f"{name} {value!r}" for name, value in only.items())
        raise RunError(f"no answer has {wanted}: {'; '.join(there)}")
    for each in there:
        say(f"left out: {each}")
    return kept


def _keep(found: Sequence[Calibrated], folder: Path | None) -> None:
    """Write the profiles. A grader that graded nothing has none; exit code 2."""
    from ..graders.profiles import keep, user_folder

    profiles = [profile for each in found for profile in each.profiles]
    kept = [keep(each, folder or user_folder()) for each in profiles if each.graded]
    if kept:
        say(f"kept: {', '.join(map(str, kept))}")
    if empty := dict.fromkeys(f"{each.grader} on {each.set}" for each in profiles if not each.graded):
        say(f"error: nothing was graded by {'; '.join(empty)}: the reasons are in the table without a grade")
        raise typer.Exit(2)
