"""What notebooks and programs use: open a finished run, and have its figures as data frames.

from ctxbench.harness import api

run = api.load("runs/standard")
api.summary(run, "claude-sonnet-5")                         # one row per strategy
api.growth(run)                                             # tokens of a call by turn
api.bill(run, "claude-sonnet-5")                            # one row per conversation and strategy
run.table("steps").groupby("strategy").tokens_sent.sum()    # any table, whole
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..metrics import figures
from ..metrics.value import Missing
from .bill.bill import bill as billed
from .bill.simulation import Scheme
from .compare.figures import measured, overall
from .folder.run import Run, load, rows_of, steps_of, uneven

__all__ = ["Run", "bill", "growth", "load", "summary"]


def summary(run: Run, *models: str) -> pd.DataFrame:
    """Return one row per strategy and one column per metric (`metrics.figures.METRICS`), NaN where a value is missing.

    With models there are columns of the bill for each, such as `cost(MODEL)` in US dollars and `cache_hit_rate(MODEL)`.
    As in the report, figures are over the conversations that every strategy finished; they equal those of
    `ctxbench compare` to the last digit.
    """
    values = overall(measured(run, rows_of, models, clock=True))
    rows = {
        strategy: {name: np.nan if isinstance(value, Missing) else value for name, value in metrics.items()}
        for strategy, metrics in values.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("strategy")


def growth(run: Run) -> pd.DataFrame:
    """Return tokens of a call by strategy and turn: conversations, mean tokens_full and tokens_sent, saving."""
    steps = steps_of(run)
    conversations = run.table("results").conversation.nunique()
    return figures.growth(steps[~steps.conversation.isin(uneven(run.failures, conversations))])


def bill(run: Run, *models: str) -> pd.DataFrame:
    """Return one row per conversation, strategy and model: tokens read, written and fresh, and the costs in US dollars.

    `base` is the cost of the whole history. The columns are those of `bill.Billed.conversations`.
    """
    return billed(run, [Scheme(model) for model in models]).conversations()
