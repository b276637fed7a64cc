"""The accesses of a conversation that really happened: each message as it arrives, and what is gone back to.

A message that arrives is put into the cache and is no look-up. Before it come the look-ups of what it refers to
(`metrics.references`): a model reads before it answers. A probe's evidence is looked up when the probe is asked. System
messages are no part of the trace: Focus holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import numpy as np

from ....metrics.language import words
from ....metrics.references import references
from ....metrics.tfidf import Scores, TfIdf
from ....scenarios.model import Conversation, Message
from .trace import Likeness, Trace


def recorded(conversation: Conversation, count: Callable[[Message], int], seconds: bool = False) -> Trace:
    """The trace of one conversation; items are its messages by their places. `count` gives a message's tokens.

    The clock is the number of the access; with `seconds` it is the recorded time, where a message without one has that
    of the message before, and nothing goes back.
    """
    messages = conversation.messages
    ids: list[int] = []
    counted: list[bool] = []
    times: list[float] = []
    looked_up = {at: list(each) for at, each in groupby(references(conversation), key=lambda reference: reference.at)}
    now = 0.0
    for at, message in enumerate(messages):
        now = max(now, message.time or now)
        of_message = [each.to for each in looked_up.get(at, ()) if each.kind != "probe"]
        of_probes = [each.to for each in looked_up.get(at, ()) if each.kind == "probe"]
        arrives = [] if message.role == "system" else [at]
        ids += [*of_message, *arrives, *of_probes]
        counted += [True] * len(of_message) + [False] * len(arrives) + [True] * len(of_probes)
        times += [now] * (len(ids) - len(times))
    clock = np.array(times if seconds else range(len(ids)), np.float64)
    sizes = np.array([count(message) for message in messages], np.int64)
    return Trace(
        conversation.id,
        np.array(ids, np.int64),
        sizes,
        clock,
        np.array(counted, np.bool_),
        _likeness(conversation, ids),
    )


def _likeness(conversation: Conversation, ids: list[int]) -> Likeness:
    """TF-IDF cosine of every message with the one that is accessed. The index is made when it is first asked for."""
    said: list[list[str]] = []
    index = TfIdf()

    def likeness(at: int) -> Scores:
        if not said:
            said.extend(words(message.text) for message in conversation.messages)
            index.add(said)
        return index.cosine(said[ids[at]])

    return likeness
