"""The steps of a run as figures read them: the table `steps` with times, the window and the cache policy."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from .run import Run, windows
from .schema import SCHEMAS

_LOG = ("added_from", "added_to", "marks", "tools_added")
# Without the columns of lists: as a data frame they take ten times the space of the rest.
_PLAIN = [name for name in SCHEMAS["steps"].names if name not in _LOG]


def rows_of(run: Run, table: str) -> pd.DataFrame:
    """Return a table of a run with the columns that the figures need (`compare.figures`)."""
    return steps_of(run) if table == "steps" else run.table(table)


def steps_of(run: Run) -> pd.DataFrame:
    """Return the steps of a run without the context log, with `latency_ns`, the model's `window` and the `policy`."""
    # Without a copy: Arrow's memory of a column is that of the frame.
    steps: pd.DataFrame = run.arrow("steps", _PLAIN).to_pandas(split_blocks=True, self_destruct=True)
    sizes, names, strategies = windows(run), steps.conversation.cat, steps.strategy.cat
    policies, of_strategy = np.unique([working_policy(text) for text in strategies.categories], return_inverse=True)
    return steps.assign(
        latency_ns=run.arrow("timings", ["latency_ns"]).column("latency_ns").to_numpy(),
        window=np.array([sizes.get(str(name), 0) for name in names.categories], np.int64)[names.codes],
        policy=pd.Categorical.from_codes(of_strategy[strategies.codes], pd.Index(policies)),
    )


_TIERED = re.compile(r"\btiered\b(?:\((?P<parameters>[^|]*)\))?")
_POLICY = re.compile(r"\bpolicy='(?P<name>\w+)")
DEFAULT_POLICY = "lru_k"
"""Cache policy of the Working tier where the strategy's text names none."""


def working_policy(strategy: str) -> str:
    """Return the cache policy of a strategy's Working tier; empty if it has no such tier.

    The text is searched, not parsed: a strategy of a plug-in's file can be read where that file is not.
    """
    # `|` ends a stage: a policy of a later one is no policy of this tier.
    tiered = _TIERED.search(strategy)
    if tiered is None:
        return ""
    policy = _POLICY.search(tiered["parameters"] or "")
    return policy["name"] if policy else DEFAULT_POLICY


def lacking_newest(run: Run) -> frozenset[str]:
    """Return the strategies that sent some calls without the newest message."""
    steps = run.arrow("steps", ["strategy", "newest"]).to_pandas()
    return frozenset(map(str, steps.strategy[~steps.newest].unique()))
