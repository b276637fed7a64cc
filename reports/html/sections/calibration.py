"""How far the graders of this run agree with people, and what the shares come to without their errors."""

from __future__ import annotations

import pandas as pd

from ....harness.calibrating.profiles import Profiles
from ...corrected import corrected_of, corrected_table
from ...profiles import tables
from ...results import Results
from ..section import Section


def section(results: Results) -> Section | None:
    """None where nothing was graded."""
    found = results.summary.answers
    if found is None or not found.found:
        return None
    profiles = Profiles()
    best = found.found[0]
    corrected = corrected_of(best, profiles.of(best.grader))
    known = {grader: profiles.of(grader) for grader in dict.fromkeys(each.grader for each in found.found)}
    rows = [
        {"strategy": each.strategy, "set": name, "seen": each.seen, "corrected": value.value}
        for each in corrected
        for name, value in each.by.items()
    ]
    return Section(
        "calibration",
        "How far the grader can be believed",
        "Graders err. These were put over answers that people had labelled (`ctxbench calibrate`): the outcome.",
        (*tables(known), corrected_table(corrected)),
        {"corrected": pd.DataFrame(rows)} if rows else {},
    )
