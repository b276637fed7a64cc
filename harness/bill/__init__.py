"""The bill of a run: its requests rebuilt from the context log, provider caches simulated over them, and prices."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ctxbench.metrics.prices import BUNDLED, Prices
from ctxbench.scenarios.errors import SpecError

CacheRules = Literal["recording", "latest", "stored", "document"]
"""Rules of the recording's date; the latest; those of content that the caller stores by the hour (Gemini); or those of
design document 000."""

MODELS = ("claude-sonnet-5", "gpt-5.6", "gemini-2.5-pro")
"""Models that a run is billed under besides the recorded one: three providers that cache by different rules."""


OWN_MODELS = "recorded models"  # stands for a model where recordings of several are billed each under its own


def usual_prices(batch: bool = False) -> Prices:
    """Return the default prices of bills: bundled ones under those of CTXBENCH_PRICES. Raises SetupError."""
    file = os.environ.get("CTXBENCH_PRICES")
    return Prices(Path(file) if file else None, batch) if file or batch else BUNDLED


def check_priced(models: Sequence[str]) -> None:
    """Raise SpecError for a model without a usual price, before anything is measured."""
    prices = usual_prices()
    for name in models:
        if name != OWN_MODELS and prices.tariff(name) is None:
            raise SpecError(prices.unknown(name))
