"""Replies of models: what failed, cost and is missing at the end of a command; `ctxbench lab cassette` moves them.

Every command that calls models ends the same way (`end`): 2 if a model gave no usable reply at all, 0 with a count on
the last line if some are missing, and 2 for that too with `--strict`. What was measured is printed and stored before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ctxbench.scenarios.errors import SetupError

from .streams import say

if TYPE_CHECKING:
    from ctxbench.harness.answers.tally import Tally
    from ctxbench.harness.models import Settings

ANEW = "a new --cassette asks for them anew"
AGAIN = f"--overwrite with {ANEW}"
_MOST_REASONS = 3  # reasons that are printed one by one
_MOST_STRATEGIES = 4  # strategies that are named of those that asked a model in vain


def end(
    tallies: Sequence[Tally],
    strict: bool,
    settings: Settings | None = None,
    run: Path | None = None,
    *,
    anew: str = AGAIN,
    failed: bool = False,
) -> None:
    """End a command that called models: print what that cost, and which replies are missing.

    `settings` are those of its models, and `run` is the run folder it works on. Exits with code 2 if a model gave no
    usable reply at all, if `strict` and one is missing, or if the command has failed otherwise. A strategy whose own
    model never replied counts alone: its figures show what it does without a model. `anew` says how to have
    others in place of recorded replies.
    """
    from ctxbench.harness.answers.tally import in_all
    from ctxbench.reports.render import count

    if settings is not None:
        report_spending(settings, run)
    some = [tally for tally in in_all(tallies) if tally.usable and tally.missing]
    words = [
        f"{tally.missing:,} of {count(tally.asked, 'reply', 'replies')} of the {tally.role} {tally.model} "
        f"({_reason(tally)})"
        for tally in some
    ]
    if some:
        say(f"missing: {'; '.join(words)}. {_remedy(some, anew)}")
    unanswered = [tally for tally in tallies if not tally.usable]
    for tally in in_all(unanswered):
        strategies = [part.strategy for part in unanswered if part[:2] == tally[:2] and part.strategy]
        more = len(strategies) - _MOST_STRATEGIES
        named = ", ".join(strategies[:_MOST_STRATEGIES]) + (f" and {more:,} more" if more > 0 else "")
        asking = f"that {named} asked for" if strategies else "asked for"
        what = f"the {tally.role} {tally.model} gave no usable reply, of {tally.asked:,} {asking}"
        reason = _reason(tally)
        say(f"error: {what}: {reason}{'' if reason.endswith('?') else '.'} {_remedy([tally], anew)}")
    if unanswered or (strict and some) or failed:
        raise typer.Exit(2)


def _reason(tally: Tally) -> str:
    from ctxbench.harness.models.provider import shown

    return shown(tally.why.removeprefix(f"{tally.model}: "))


def _remedy(tallies: Sequence[Tally], anew: str) -> str:
    """Return how to have the replies that are missing."""
    if any(tally.failed for tally in tallies):
        return "Once that is mended, the same command asks for what failed, and for nothing else"
    return f"These replies are recorded as they are: {anew}"


def report_model_calls(folder: Path) -> None:
    """Print the failures of calls, which strategies survive silently."""
    from ctxbench.harness.answers.tally import failures
    from ctxbench.harness.folder.run import load
    from ctxbench.harness.models.provider import GIVEN_UP
    from ctxbench.metrics.value import grouped
    from ctxbench.reports.render import count

    known = failures(load(folder))
    given_up = grouped((None, failure.why) for failure in known if GIVEN_UP in failure.why)
    others = [failure for failure in known if GIVEN_UP not in failure.why]
    failed = grouped(
        (f"{failure.what} not as requested" if failure.used else "failed", f"{failure.why}; {failure.instead}")
        for failure in others
    )
    for _, (text, times) in given_up[:_MOST_REASONS]:
        say(
            f"{text}: {count(times, 'call')} not made. Once it answers, the same command completes the run and replays "
            "the recorded replies"
        )
    for head, (text, times) in failed[:_MOST_REASONS]:
        say(f"{head} {count(times, 'time')}: {text}")
    if len(failed) > _MOST_REASONS:
        say(f"{count(len(failed) - _MOST_REASONS, 'other reason')} too: see the table Why of `ctxbench report --all`")


def report_spending(settings: Settings, run: Path | None = None) -> None:
    """Print what the calls of this command cost, on a run folder or on none."""
    from ctxbench.harness.models.cassette import in_dollars, spending
    from ctxbench.reports.render import count

    if (known := spending(settings.path(), settings.command, run)) is None:
        return
    spent, by_run = known
    earlier = by_run.dollars - spent.dollars
    if spent.refused:
        before = f", {in_dollars(round(earlier, 6))} of it by earlier commands on this run" if earlier > 0 else ""
        say(
            f"the spend limit of {in_dollars(settings.spend_limit or 0)} was reached{before}: "
            f"{spent.refused:,} calls were not made. "
            "The same command with a higher limit completes the run and replays the recorded replies"
        )
    if spent.calls or spent.unanswered:
        unknown = f" and {spent.unpriced:,} calls whose price is not known" if spent.unpriced else ""
        notes = [f"replies are in {settings.path()}"]
        if earlier > 0:
            notes.append(f"earlier commands on this run cost ${earlier:.4f}")
        if spent.unanswered:
            notes.append(f"{count(spent.unanswered, 'try', 'tries')} had no answer: charged as the most it can cost")
        say(f"models: {spent.calls:,} calls, ${spent.dollars:.4f}{unknown}; {'; '.join(notes)}")


def export(*, to: Path, cassette: Path | None = None) -> None:
    """Write every reply of a cassette as one JSON line."""
    from ctxbench.harness.folder.files import placed
    from ctxbench.harness.models.cassette import Cassette, write_lines

    with Cassette(_path(cassette), read_only=True) as opened:
        if str(to) == "-":
            sys.stdout.buffer.writelines(write_lines(opened))
            sys.stdout.buffer.flush()
            return
        try:
            with placed(to) as draft, draft.open("wb") as file:
                file.writelines(write_lines(opened))
        except OSError as error:
            raise SetupError(f"{to}: {error.strerror or error}") from None
    say(f"written: {to}")


def import_(file: Path, *, cassette: Path | None = None) -> None:
    """Add exported lines to a cassette. Replies that it has already stay.

    Args:
        file (FILE): Lines that `ctxbench lab cassette export` wrote.
    """
    from ctxbench.harness.models.cassette import Cassette, entries
    from ctxbench.scenarios.files import lines_of

    with Cassette(_path(cassette)) as into:
        new = into.put_many(entries(lines_of(file), str(file)))
    say(f"{new:,} new replies in {_path(cassette)}")


def _path(file: Path | None) -> Path:
    from ctxbench.harness.models import Settings

    return Settings(cassette=str(file or "")).path()
