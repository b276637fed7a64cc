"""Lossy figures: extractive summaries, and embeddings by product quantisation. The originals are kept beside both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...metrics.extract import extract
from ...metrics.tokens import TokenCounter
from ...metrics.value import Missing, Value
from ...metrics.values import values
from ...scenarios.model import Conversation
from ...strategies.tiers.archive import Coding, Item
from ...strategies.tiers.archive.coding import Dictionary
from ...strategies.tiers.archive.draft import blocks
from ...strategies.tiers.archive.vectors import Quantised, exact
from ..models.embedding import Lexical
from .rows import Coded, Lossy

SHARE = 0.1
"""Tokens of a summary: 10:1 (004 §2.3)."""
NEAREST = 10
RERANKED = (0, 100, 200)


def summarised(items: Sequence[Item], coding: Coding, counter: TokenCounter) -> Lossy | Missing:
    """The summaries of all blocks."""
    share = coding.summary or SHARE
    tokens = summary_tokens = original = stored = had = kept = 0
    for block, _ in blocks(items, coding.block_tokens):
        texts = [item.message.text for item in block if item.message.text]
        size = sum(map(counter.text, texts))
        text = extract(texts, int(size * share), counter.text)
        tokens, summary_tokens = tokens + size, summary_tokens + counter.text(text)
        original += sum(len(each.encode()) for each in texts)
        stored += len(Dictionary().compress(text.encode(), coding.level))
        there = {value.text for each in texts for value in values(each)}
        had, kept = had + len(there), kept + len(there & {value.text for value in values(text)})
    if not tokens:
        return Missing("undefined", "the messages have no texts")
    found: Value = kept / had if had else Missing("undefined", "there are no values in the texts")
    return Lossy(tokens, summary_tokens, original, stored, found)


def coded(conversations: Sequence[Conversation], counter: TokenCounter) -> Coded | Missing:
    """The embeddings of all texts, searched with the probes' questions."""
    questions = [probe.question for conversation in conversations for probe in conversation.probes]
    if not questions:
        return Missing("undefined", "the recordings have no probes to search with")
    texts = [message.text for conversation in conversations for message in conversation.messages if message.text]
    embedder = Lexical()
    found = embedder.embed(texts, False, counter).vectors
    asked = embedder.embed(questions, True, counter).vectors
    quantised = Quantised(found)
    if quantised.exact:
        return Missing("undefined", f"{len(texts)} texts are too few to learn centroids from")
    nearest = exact(found, asked, NEAREST)
    recall = []
    for rerank in RERANKED:
        places = quantised.search(asked, NEAREST, rerank)
        same = [len(set(one) & set(other)) for one, other in zip(nearest.tolist(), places.tolist(), strict=True)]
        recall.append((rerank, float(np.mean(same)) / NEAREST))
    each = (quantised.bytes_each, quantised.kept_bytes_each)
    return Coded(len(texts), len(questions), found.shape[1], *each, tuple(recall))
