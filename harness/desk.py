"""The desk that the harness gives a strategy: one conversation's token ledger and structure."""

from __future__ import annotations

from ..metrics.ledger import Ledger
from ..metrics.structure import Structure
from ..metrics.tokens import TokenCounter
from ..scenarios.model import Conversation, Message, Tool
from ..scenarios.view import Messages


class RecordedDesk:
    """What strategies are given while a conversation is replayed (`strategies.base.Desk`), and what measures them.

    One desk serves every strategy of a conversation: its books hold what was said, not what was decided.
    """

    __slots__ = ("_counter", "_tools", "ledger", "structure")

    def __init__(self, conversation: Conversation, counter: TokenCounter) -> None:
        self.ledger = Ledger(counter, conversation.messages)
        self.structure = Structure(conversation.messages)
        self._counter = counter
        self._tools: tuple[tuple[Tool, ...], int] = ((), 0)

    def advance(self, at: int) -> None:
        """Enter what was said before message `at` into the books, so that no strategy is timed for it."""
        self.ledger.advance(at)
        self.structure.advance(at)

    def tools(self, tools: tuple[Tool, ...]) -> int:
        """Tokens of the tool schemas of a request."""
        if tools is not self._tools[0]:
            self._tools = (tools, self._counter.tools(tools))
        return self._tools[1]

    def tokens(self, message: Message) -> int:
        return self.ledger.tokens(message)

    def total(self, messages: Messages) -> int:
        return self.ledger.total(messages)

    def fit(self, messages: Messages, budget: int) -> int:
        return self.ledger.fit(messages, budget)

    def systems(self, messages: Messages) -> Messages:
        return self.structure.systems(messages)

    def whole(self, messages: Messages) -> Messages:
        return self.structure.whole(messages)
