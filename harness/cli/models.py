"""What `ctxbench run` has to do with models: words of its options, and what it says of them at the end."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from .say import say

if TYPE_CHECKING:
    from ..models import Settings

MODELS = "Models"
"""Over the options in the help."""

_MOST = 3


class CassetteMode(StrEnum):
    """What is done with the cassette."""

    auto = "auto"
    replay = "replay"
    record = "record"


def say_what_models_did(folder: Path, settings: Settings) -> None:
    """Say what was paid, what was not for want of money, and what failed: strategies go on without, and should not hide
    it."""
    _say_what_was_spent(settings)
    failed = _failures(folder)
    for why, times in failed[:_MOST]:
        say(f"failed {times:,} times, and the strategy did without: {why}")
    if len(failed) > _MOST:
        say(f"failed for {len(failed) - _MOST:,} other reasons too: they are in the run's table `events`")


def _say_what_was_spent(settings: Settings) -> None:
    from ...scenarios.errors import SetupError
    from ..models.cassette import Cassette
    from ..models.spending import Purse

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
            f"the spend limit of ${settings.spend_limit:g} was reached: {spent.refused:,} calls were not made. "
            "With a higher one and --overwrite the run is whole; what was paid for is replayed"
        )


def _failures(folder: Path) -> list[tuple[str, int]]:
    """Why something failed that strategies needed, and how often, most often first."""
    from collections import Counter

    import msgspec

    from ...strategies.events import Failed
    from ..load import load

    events = load(folder).table("events")
    failed = events.event[events.kind == "failed"]
    counted = Counter(msgspec.json.decode(text, type=Failed).why for text in failed)
    return counted.most_common()
