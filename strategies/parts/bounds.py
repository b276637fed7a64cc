"""Parameters that a strategy cannot take: the error names the one that is wrong, and the value it was given."""

from __future__ import annotations


def at_least(low: float, *, at_most: float | None = None, below: float | None = None, **given: float | None) -> None:
    """Raise ValueError for the first of the parameters that is out of bounds. One that is None has no value to check.

    at_least(1, limit=-1)  →  ValueError: limit must be at least 1, not -1
    """
    limits = f"at least {low}"
    limits += "" if at_most is None else f" and at most {at_most}"
    limits += "" if below is None else f" and below {below}"
    for name, value in given.items():
        if value is None:
            continue
        over = (at_most is not None and value > at_most) or (below is not None and value >= below)
        if over or not value >= low:
            raise ValueError(f"{name} must be {limits}, not {value}")


def one_limit(max_tokens: int | None, model: str | None) -> None:
    """Raise ValueError if both a number of tokens and a model, for its context window, are to be the limit."""
    if max_tokens is not None and model is not None:
        raise ValueError(f"give max_tokens or model, not both: max_tokens={max_tokens}, model={model!r}")
