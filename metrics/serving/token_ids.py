"""Requests as the token ids that a server would see, in one plain chat form.

    tools      START TOOLS SEPARATOR, every tool as a line of JSON, END
    message    START role SEPARATOR, NAME and the name if it has one, the text, its calls, END
    call       CALL, the tool's name, ARGUMENTS, the arguments, CALLED
    reply      START assistant SEPARATOR; the model goes on from there

Words in capitals and the roles are one id each, beyond those of any encoding. So a message has as many tokens as
`TokenCounter` counts, an answer continues its prompt, and equal messages have equal ids. Images and recorded reasoning
are left out, as there.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...scenarios.model import Message, Tool
from ..tokens import text_encoder

Ids = NDArray[np.int32]

START, SEPARATOR, END, NAME, CALL, ARGUMENTS, CALLED, TOOLS, SYSTEM, USER, ASSISTANT, TOOL, OTHERS = range(
    1 << 24, (1 << 24) + 13
)
"""From `OTHERS` on ids are free."""
_ROLES = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT, "tool": TOOL}
REPLY = np.array((START, ASSISTANT, SEPARATOR), np.int32)


class TokenIds:
    """Token ids in one encoding. Raises SpecError for an encoding that has none."""

    __slots__ = ("_text",)

    def __init__(self, encoding: str) -> None:
        self._text = text_encoder(encoding)

    def message(self, message: Message) -> Ids:
        """A message as part of a prompt."""
        ids = [START, _ROLES[message.role], SEPARATOR]
        if message.name:
            ids += (NAME, *self._text(message.name))
        ids += self._text(message.text)
        for call in message.calls:
            ids += (CALL, *self._text(call.name), ARGUMENTS, *self._text(call.arguments), CALLED)
        ids.append(END)
        return np.array(ids, np.int32)

    def tools(self, tools: Iterable[Tool]) -> Ids:
        """The tool schemas, which stand before all messages; nothing if there are none."""
        lines = [msgspec.json.encode((each.name, each.description, each.parameters)).decode() for each in tools]
        if not lines:
            return REPLY[:0]
        return np.array((START, TOOLS, SEPARATOR, *self._text("\n".join(lines)), END), np.int32)


def answer(message: Ids) -> Ids:
    """What the model generates of its message: all but the start of the reply."""
    return message[len(REPLY) :]
