"""Numbers in words: how a figure is printed, wherever it is printed."""

from __future__ import annotations

import math

from ..metrics.figures import METRICS
from ..metrics.value import Missing, Value


def figure(name: str, value: Value) -> str:
    """A figure under its metric's unit: 12,345 · 61.2 % · 14 µs. A missing one is its reason in brackets."""
    return amount(METRICS[name].unit, value)


def amount(unit: str, value: Value) -> str:
    """A figure in some unit."""
    if isinstance(value, Missing):
        return f"({value.why})"
    if unit == "share":
        return percent(value)
    if unit == "usd":
        return f"${value:,.4f}" if value else "$0"
    if unit == "us":
        return f"{value:,.0f} µs" if value >= 10 else f"{value:.1f} µs"
    return f"{value:,}"


def percent(value: Value) -> str:
    """A share: 61.2 %, −4.0 %. What is not quite nothing or all never reads as 0 or 100."""
    match value:
        case Missing(why=why):
            return f"({why})"
        case _:
            text = f"{value:.1%}"
    if (text == "100.0%" and value < 1) or (text in ("0.0%", "-0.0%") and value != 0):
        text = f"{value:.3%}"
    return text.replace("%", " %").replace("-", "−")


def shares(low: float, high: float) -> str:
    """From one share to another: 40.1 to 52.3 %."""
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def tokens(value: float) -> str:
    """A rounded number of tokens: 950 · 12.3k · 1.45M."""
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1000:.1f}k" if value < 999_950 else f"{value / 1e6:.2f}M"


def dollars(value: float) -> str:
    """What something costs: $12.30, $0.0042, $0. What is not known is no zero."""
    if math.isnan(value):
        return "(unknown)"
    return f"${value:,.2f}" if value >= 1 or not value else f"${value:.4f}"


def count(number: int, one: str, many: str = "") -> str:
    """1 conversation, 2 conversations."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def printable(text: str) -> str:
    """Text that a terminal prints and does not obey: control, bidirectional and other invisible characters as `·`."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else "·" for char in text)
