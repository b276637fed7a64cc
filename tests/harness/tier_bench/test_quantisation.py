"""Embeddings in codes, beside exact search."""

from __future__ import annotations

import sys

import pytest
from msgspec.structs import replace

from ctxbench.harness.tier_bench.archive import Coded, coded
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.model import Probe
from tests.builders import talk

pytest.importorskip("faiss")
SAID = talk(*[("user", f"row {at} holds {at * 7919 % 1000} of the {at % 13} kinds") for at in range(700)])
SAID = replace(SAID, probes=tuple(Probe(f"p{at}", f"which row holds {at * 31}?", ("1",)) for at in range(20)))


def test_16_to_1_and_what_it_loses() -> None:
    """A code is a sixteenth of its vector; it loses recall, and re-ranking gives it back."""
    found = coded([SAID])
    assert isinstance(found, Coded)
    assert found.bytes_each == found.width * 4 // 16
    assert found.recall[0] < min(found.recall[100], found.recall[200])


def test_without_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ctxbench\[tiers\]'"):
        coded([SAID])
