"""The newest messages of a history, as a request that a provider takes: what windows and summaries send of it."""

from __future__ import annotations

from typing import NamedTuple

from ...scenarios.view import Messages
from ..base import Desk


class Newest(NamedTuple):
    """What is sent of a history. A summary of what is not sent goes between the two."""

    head: Messages
    """System messages."""
    tail: Messages
    """The user message that opened the turn, if the newest messages go on with one; then they, calls with results."""


def newest(desk: Desk, history: Messages, start: int, room: int | None = None, user_first: bool = True) -> Newest:
    """The messages from `start` on, fewer if they do not fit in `room` tokens, and every system message before them.

    `room` is for all that are not the system's. With `user_first` the user message that opened the turn stays, if it
    fits beside the newest message: providers take no request without one, Anthropic none that begins otherwise.
    """
    if room is not None:
        start = max(start, desk.fit(history, room) if room > 0 else len(history))
    first = start
    opening = desk.opening(history, start) if user_first else None
    while opening is not None and room is not None:
        later = desk.fit(history, room - desk.tokens(history[opening]))
        if later >= len(history):
            start, opening = first, None
        elif later > start:
            start, opening = later, desk.opening(history, later)
        else:
            break
    rest = desk.whole(history[start:])
    if opening is None:
        return Newest(desk.systems(history[:start]), rest)
    between = desk.systems(history[opening:start])
    return Newest(desk.systems(history[:opening]), history[opening : opening + 1] + between + rest)
