"""Tables, figures and pages for people. Tables choose columns, templates place them, neither computes."""

from collections.abc import Sequence

LOSE = 5.0  # points of quality whose loss is accepted unless the reader says otherwise (`--lose`)


def report_options(models: Sequence[str], lose: float) -> list[str]:
    """Return the options of a command that reports with the same models, where any are named, and accepted loss."""
    return [word for name in models for word in ("-m", name)] + ["--lose", f"{lose:g}"] * (lose != LOSE)
