"""What stands for messages that are not sent, from the events: summaries in force, facts recalled, placeholders."""

from __future__ import annotations

from collections.abc import Iterable

from ...scenarios.model import Message
from ...strategies.events import Archived, Deleted, Event, Moved, Recalled, Summarised

FOCUS = "focus"
"""The tier that is sent: what leaves it is in one below."""


class Standing:
    """What a strategy has reported so far in a conversation."""

    __slots__ = ("_by", "_recalled", "_texts", "archived", "held")

    def __init__(self) -> None:
        self._by: dict[str, tuple[str, int]] = {}
        """Of each message that was summarised, who did, and the level that stands for it now."""
        self._texts: dict[tuple[str, int], str] = {}
        self._recalled: set[str] = set()
        self.archived: dict[str, str] = {}
        """The messages in the archive, by what the model asks for them with."""
        self.held: dict[str, str] = {}
        """The messages in a tier below what is sent, and in which."""

    def copy(self) -> Standing:
        """The same, to go on from. What was recalled for one call is not recalled for the next."""
        made = Standing()
        made._by, made._texts = dict(self._by), dict(self._texts)
        made.archived, made.held = dict(self.archived), dict(self.held)
        return made

    def hear(self, events: Iterable[Event]) -> None:
        """What was reported next."""
        for event in events:
            match event:
                case Summarised(replaced, summary, level, by):
                    self._by.update(dict.fromkeys(replaced, (by, level)))
                    self._texts[by, level] = summary
                case Recalled(sources):
                    self._recalled.update(sources)
                case Archived(message, uuid):
                    self.archived[uuid] = message
                case Deleted(uuids):
                    for uuid in uuids:
                        self.archived.pop(uuid, None)
                case Moved(sources, source, to):
                    for name in sources:
                        if source == FOCUS or name in self.held:
                            self.held[name] = to
                case _:
                    pass

    def stood_for(self, written: Iterable[Message]) -> frozenset[str]:
        """The messages of which a summary, or what was recalled, is among what the strategy wrote and sends."""
        texts = [message.text for message in written]
        sent = {who for who, text in self._texts.items() if any(text in each for each in texts)}
        return frozenset(name for name, who in self._by.items() if who in sent) | (
            frozenset(self._recalled) if texts else frozenset()
        )
