"""Embeddings in codes, beside exact search."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ctxbench.harness.tier_bench.archive import Quantised
from ctxbench.scenarios.errors import MissingExtra

pytest.importorskip("faiss")


def some(count: int, width: int = 64, seed: int = 0) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    made = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def recall(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.mean([len(set(one) & set(other)) / len(one) for one, other in zip(true, found, strict=True)]))


def test_16_to_1_and_what_it_loses() -> None:
    """A code is a sixteenth of its vector; it loses recall, and re-ranking gives it back."""
    known, asked = some(2000), some(50, seed=1)
    coded, true = Quantised(known), np.argsort(-(asked @ known.T), axis=1)[:, :10]
    assert coded.bytes_each == 64 * 4 // 16
    alone, ranked, all_ranked = (recall(coded.search(asked, 10, rerank), true) for rerank in (0, 200, 2000))
    assert alone < ranked <= all_ranked
    assert all_ranked > 0.99


@pytest.mark.parametrize(("width", "size"), [(256, 64), (384, 96), (100, 25)])
def test_pieces(width: int, size: int) -> None:
    """As many as make the ratio, and a divisor of the width."""
    assert Quantised(some(700, width)).bytes_each == size


def test_without_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ctxbench\[tiers\]'"):
        Quantised(some(3))
