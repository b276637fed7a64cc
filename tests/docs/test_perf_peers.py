"""The table of peers: a row for each pair, also where there is no figure, and both sides called in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest

from ctxbench.scenarios.model import Conversation
from tests.docs.scripts import SCRIPTS, script
from tests.perf import pairs
from tests.perf.peers import Count, Peer, Step


@pytest.fixture(scope="module")
def perf_peers() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SCRIPTS))
        yield script("perf_peers")


def test_what_is_missing_is_a_row(perf_peers: ModuleType) -> None:
    """A measured pair has its figures and ratio; one of a library that cannot be installed says why."""
    one, other = pairs.PAIRS[0], next(pair for pair in pairs.PAIRS if pair.extra == "adapter-distil")
    sides = pairs.Side(3.0, 700), pairs.Side(0.05, 650)
    rows = {one.extra: [pairs.Measured(one.component, "1.8", size, *sides) for size in pairs.SIZES]}
    why = {other.extra: "cannot be installed: no wheel"}
    table = perf_peers.table({**rows, other.extra: []}, why)
    (first,) = [line for line in table.splitlines() if f"`{one.component}`" in line]
    (second,) = [line for line in table.splitlines() if f"`{other.component}`" in line]
    named = f"| {one.library} 1.8 | `{one.component}` | `{one.spec}` "
    assert first.startswith(f"{named}| 3 | 0.05 | 60 × | 3 | 0.05 | 60 × |")
    assert first.endswith(f"| 700 / 650 | {one.differs} |")
    assert second.endswith("| – | – | – | – | – | – | – | cannot be installed: no wheel |")
    renewed = perf_peers.table({other.extra: []}, {other.extra: "failed: its log"}, table)
    assert first in renewed.splitlines()
    assert second not in renewed
    assert "failed: its log |" in renewed


def test_the_page_has_every_pair(perf_peers: ModuleType) -> None:
    """The docs have a row for each pair, under its own name beside the strategy of ours; if not: `make perf-peers`."""
    page = perf_peers.PAGE.read_text("utf-8")
    assert perf_peers._PLACE.search(page)
    for pair in pairs.PAIRS:
        assert f"| `{pair.component}` | `{pair.spec}` |" in page
        assert pair.differs in page


def test_an_unknown_extra_is_one_line(perf_peers: ModuleType) -> None:
    """A wrong name says which there are, before anything is installed."""
    with pytest.raises(SystemExit, match=r"no pair has the extra adapter-x: give some of adapter-langchain, "):
        perf_peers.main("no.whl", "adapter-x")


@pytest.mark.parametrize("grows", [True, False])
def test_sides_are_called_in_turn(grows: bool) -> None:
    """Both are called at each call that is timed, by one counter; a side without memory is spared those before."""
    called: list[int] = []

    def start(conversation: Conversation, count: Count) -> Step:
        assert count("two words") == count("two words") > 0

        def step(at: int) -> Sequence[Any]:
            called.append(at)
            return conversation.messages[:at]

        return step

    pair = pairs.Pair("adapter-x", "msgspec", "all", Peer("all", start, grows, calls=5), "none", "Nothing.")
    measured = pairs.measured(pair, 120, rounds=1)
    calls = list(pairs.conversation("assistant", 120).calls())
    assert called == (calls if grows else calls[-6:])
    assert measured.peer.tokens == measured.ours.tokens > 0
    assert measured.peer.ms > 0
