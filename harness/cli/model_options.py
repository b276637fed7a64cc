"""What commands have to do with models: their options, and what is said of them at the end."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .streams import say

if TYPE_CHECKING:
    from ...strategies.events import Failed
    from ..models import Settings


MODELS = "Models"
"""Over the options in the help."""

_MOST = 3


class CassetteMode(StrEnum):
    """What is done with the cassette."""

    auto = "auto"
    replay = "replay"
    record = "record"


CassetteOption = Annotated[
    Path | None,
    typer.Option(
        help="Where replies are recorded.", show_default="~/.cache/ctxbench/cassette.sqlite", rich_help_panel=MODELS
    ),
]
ModeOption = Annotated[
    CassetteMode,
    typer.Option(
        help="auto: replay what is recorded, record the rest. replay: never call. record: always call.",
        rich_help_panel=MODELS,
    ),
]
GgufOption = Annotated[
    Path | None,
    typer.Option(help="The weights of `local`.", show_default="those of `make local-model`", rich_help_panel=MODELS),
]
SpendOption = Annotated[
    float | None,
    typer.Option(metavar="DOLLARS", help="The most that this command may spend at providers.", rich_help_panel=MODELS),
]
BaseOption = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar="CTXBENCH_API_BASE",
        help="An OpenAI-compatible server, for model names openai/NAME.",
        show_default=False,
        rich_help_panel=MODELS,
    ),
]
TimeoutOption = Annotated[
    float, typer.Option(metavar="SECONDS", help="How long one call of a model may take.", rich_help_panel=MODELS)
]
RetriesOption = Annotated[
    int, typer.Option(min=0, help="How often a call that may pass is tried again.", rich_help_panel=MODELS)
]


def say_what_models_did(folder: Path, settings: Settings) -> None:
    """Say what was paid, what was not for want of money, and what failed: strategies go on without, and should not hide
    it."""
    say_what_was_spent(settings)
    from ...metrics.value import grouped
    from ...reports.render import count
    from ..models.provider import GIVEN_UP

    failures = _failures(folder)
    given_up = grouped((None, each.why) for each in failures if GIVEN_UP in each.why)
    failed = grouped((each.used, f"{each.why}; {each.instead}") for each in failures if GIVEN_UP not in each.why)
    for _, (text, times) in given_up[:_MOST]:
        say(
            f"{text}: {count(times, 'call')} not made. Once it answers, --overwrite makes the run whole; "
            "what was answered is replayed"
        )
    for used, (text, times) in failed[:_MOST]:
        say(f"{'not as it was asked for' if used else 'failed'} {count(times, 'time')}: {text}")
    if len(failed) > _MOST:
        say(f"{count(len(failed) - _MOST, 'other reason')} too: `ctxbench report` has them in the table Why")


def answered_by_none(folder: Path) -> list[str]:
    """The strategies that asked a model and never had an answer: their figures are of what they do without one."""
    from ..answers.figures import unanswered
    from ..folder.run import load

    return unanswered(load(folder).table("events"))


def say_what_was_spent(settings: Settings) -> None:
    """Calls that were paid, and those that the limit did not allow."""
    from ...scenarios.errors import SetupError
    from ..models.cassette import Cassette
    from ..models.recorded import Purse, in_dollars

    try:
        with Cassette(settings.path(), read_only=True) as cassette:
            spent = Purse(cassette, settings.command).spent()
    except SetupError:  # no model of this run needed one
        return
    if spent.calls:
        unknown = f" and {spent.unpriced:,} calls whose price is not known" if spent.unpriced else ""
        say(f"models: {spent.calls:,} calls, ${spent.dollars:.4f}{unknown}; replies are in {settings.path()}")
    if spent.refused:
        say(
            f"the spend limit of {in_dollars(settings.spend_limit or 0)} was reached: "
            f"{spent.refused:,} calls were not made. "
            "With a higher one and --overwrite the run is whole; what was paid for is replayed"
        )


def _failures(folder: Path) -> list[Failed]:
    """What strategies needed and could not have, or not as they asked for it."""
    import msgspec

    from ...strategies.events import Failed
    from ..folder.run import load

    events = load(folder).table("events")
    decoder = msgspec.json.Decoder(Failed)
    return [decoder.decode(text) for text in events.event[events.kind == "failed"]]
