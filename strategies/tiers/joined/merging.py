"""What is sent again, put among what is sent, in the order in which all of it was said."""

from __future__ import annotations

from collections.abc import Sequence

from ....scenarios.view import Messages, Span


def merged(history: Messages, sent: Messages, places: Sequence[int]) -> Messages:
    """The messages that are sent, and those of these places in the history, ascending, that are not among them.

    What was written in place of others keeps its neighbour after it: what is put before that comes between.
    """
    where = _Where(history)
    waiting = list(reversed(places))
    made: list[Span] = []
    for span in sent.spans:
        for start, piece in where.pieces(span):
            while start is not None and waiting and waiting[-1] < start:
                made += history[waiting[-1] : waiting.pop() + 1].spans
            made.append(piece)
    while waiting:
        made += history[waiting[-1] : waiting.pop() + 1].spans
    return _joined(made)


class _Where:
    """The places of spans in a history."""

    def __init__(self, history: Messages) -> None:
        self._stretches: dict[int, list[tuple[int, int, int]]] = {}
        """Of each store, its stretches: start, stop, and the place of the start."""
        place = 0
        for store, start, stop in history.spans:
            self._stretches.setdefault(id(store), []).append((start, stop, place))
            place += stop - start

    def pieces(self, span: Span) -> list[tuple[int | None, Span]]:
        """A span cut where it is cut in the history, each piece with its place; None if it is not of the history."""
        found: list[tuple[int | None, Span]] = []
        for start, stop, place in sorted(self._stretches.get(id(span.store), ())):
            low, high = max(start, span.start), min(stop, span.stop)
            if low < high:
                found.append((place + low - start, Span(span.store, low, high)))
        return found or [(None, span)]


def _joined(spans: Sequence[Span]) -> Messages:
    made = Messages()
    for span in spans:
        made = made + Messages((span,))
    return made
