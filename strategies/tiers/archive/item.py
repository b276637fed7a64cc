"""What is archived: a message, under an id that no other has, with the tokens that its caller counted."""

from __future__ import annotations

from typing import NamedTuple

from ....scenarios.model import Message


class Item(NamedTuple):
    """One message of the tier. The id is the caller's: a message's own is unique within its conversation only."""

    id: str
    tokens: int
    message: Message
