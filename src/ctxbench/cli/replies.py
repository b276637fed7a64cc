"""Replies of models: who is going to be called, and what failed, cost and is missing at the end of a command.

Every command that calls models ends the same way (`end`): 2 if a model gave no usable reply at all, 0 with a count on
the last line if some are missing, and 2 for that too with `--strict`. What was measured is printed and stored before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ctxbench.api import trust
from ctxbench.scenarios.errors import UserError

from .streams import say

if TYPE_CHECKING:
    from ctxbench.harness.answers.tally import Tally
    from ctxbench.harness.models import Settings

ANEW = "a new --cassette asks for them anew"
AGAIN = f"--overwrite with {ANEW}"
_MOST_REASONS = 3  # reasons that are printed one by one
_MOST_STRATEGIES = 4  # strategies that are named of those that asked a model in vain


_INNER = re.compile(r"""\b(?:model|summariser|embedder)\s*=\s*(['"])(.+?)\1""")
"""A model in the parameters of a grader, a strategy or a tier's measurement."""


def say_models(context: Any, places: Mapping[tuple[str, str], str], path: str) -> None:
    """Print which models a command is going to call: at which host, for about how much, and who named them.

    `places` has the place of each value that ctxbench.toml sets. What cannot be read is the command's to say. A
    strategy is taken to send the whole history.
    """
    given, named = context.params, dict[tuple[str, str], None]()
    for option in (*trust.MODELS, "strategy", "specs"):
        for text in [given[option]] if isinstance(given.get(option), str) else given.get(option) or ():
            inner = option in ("grader", "strategy", "specs")
            models = [model for _, model in _INNER.findall(text)] if inner else [text]
            named |= {(option, model): None for model in models if model.partition("(")[0].strip() not in trust.FREE}
    if not named:
        return
    from ctxbench.harness.engine.plan import DEFAULT_STRATEGIES, RunInputs
    from ctxbench.harness.models.settings import API_BASE, MODELS, check_model, host_of, model_spec, usual_access
    from ctxbench.metrics.prices import BUNDLED, TokenUsage

    with suppress(UserError):
        usual, lines, unit, tokens, asked = usual_access(), [], " per million tokens", 1_000_000, 1_000_000
        if path == "run":
            names = tuple(given["inputs"] or (() if given["form"] else ("standard",)))
            tokens, asked = RunInputs(names, given["form"], given["probes"], given["limit"] or 0).sizes()
            times, unit = len(given["strategy"] or DEFAULT_STRATEGIES), ""
            tokens, asked = times * tokens, (times + 2) * asked  # the two bounds are answered too
        for option, text in named:
            model, access = model_spec(text, usual)
            check_model(model)  # what is no model has no price
            source = context.get_parameter_source(option).name
            place = {"COMMANDLINE": "command line", "DEFAULT_MAP": places.get((path, option))}.get(source, "default")
            at = host_of(model, access)
            if at == access.api_base == usual.api_base:
                at += f" ({API_BASE if os.environ.get(API_BASE) == at else places.get(('', MODELS), MODELS)})"
            own = access.api_key_env
            key = f", with the key {own}" if own else ", without a key" * bool(access.api_base)
            dollars = BUNDLED.cost(model, TokenUsage(asked if option == "answerer" else tokens, 0))
            cost = "its price is not known" if dollars is None else f"about ${dollars:,.2f}{unit} read"
            lines.append(f"{model} ({option}, {place}) at {at}{key}, {cost}")
        say(f"models: {'; '.join(lines)}")


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
