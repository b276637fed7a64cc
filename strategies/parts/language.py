"""The language of what a strategy writes into a context (headings, prompts, placeholders), and how it writes times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

from ctxbench.metrics.language import Language, language_of
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages

LanguageSetting = Literal["auto", "zh", "en"]

_LETTER = re.compile(r"[^\W\d_]")


class ConversationLanguage:
    """The language in which a strategy writes to one conversation: a given one, or with "auto" that of its user.

    "auto" is decided when the strategy first writes a text, by the history that it has read until then. It stays, since
    another heading would change the start of the context, and with it what a prompt cache can keep.
    """

    def __init__(self, setting: LanguageSetting) -> None:
        self._decided: Language | None = None if setting == "auto" else setting
        self._history = Messages()

    def read(self, history: Messages) -> None:
        """Take the history as it is now. It is looked into only when a text is written."""
        if self._decided is None:
            self._history = history

    @property
    def decided(self) -> Language:
        """The language, which is decided now if it has not been."""
        if self._decided is None:
            self._decided = user_language(self._history)
            self._history = Messages()
        return self._decided


def user_language(messages: Iterable[Message]) -> Language:
    """Return the language of most user messages, of as many in both that of the first; English if there is no text.

    A message counts once, so that one pasted log does not outvote what the user writes. Without user messages all
    others count. Messages without a letter do not.
    """
    with_text = [message for message in messages if _LETTER.search(message.text)]
    from_user = [message for message in with_text if message.role == "user"]
    counts = Counter(language_of(message.text) for message in from_user or with_text)
    return counts.most_common(1)[0][0] if counts else "en"


def moment(seconds: float | None, precision: Literal["minutes", "seconds"]) -> str:
    """Return a recorded time in UTC, as 2023-05-08 13:56; empty if there is none or no calendar has it."""
    if seconds is None:
        return ""
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(" ", precision)
    except (OverflowError, ValueError, OSError):
        return ""
