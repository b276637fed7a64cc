"""Conversations whose messages have exactly so many tokens."""

from ctxbench.scenarios.model import Conversation, Message, ToolCall
from tests.strategies.scripted_models import COUNTER


def sized(message: Message, tokens: int) -> Message:
    """Return the message with a text by which it has exactly so many tokens."""
    words = tokens - COUNTER.message(message)
    for count in range(words, words + 3):
        text = " a" * count
        longer = Message(message.id, message.role, text, calls=message.calls, answers=message.answers)
        if COUNTER.message(longer) == tokens:
            return longer
    raise AssertionError(f"no text gives {tokens} tokens")


def agent(results: int, base: int = 4_000, call: int = 200, result: int = 5_000, names: str = "") -> Conversation:
    """A question of `base` tokens, then steps of a call and a result; the names are those of the tools."""
    said = [sized(Message("u", "user"), base)]
    for at in range(1, results + 1):
        tool = ToolCall(f"call{at}", names[at - 1] if names else "read", '{"path": "a.py"}')
        said.append(sized(Message(f"c{at}", "assistant", calls=(tool,)), call))
        said.append(sized(Message(f"r{at}", "tool", answers=tool.id), result))
    return Conversation("agent", tuple(said))


def talk_of(*tokens: int) -> Conversation:
    """User and assistant in turn, m0, m1 …, with messages of so many tokens."""
    said = [sized(Message(f"m{at}", "assistant" if at % 2 else "user"), size) for at, size in enumerate(tokens)]
    return Conversation("chat", tuple(said))


def words(tokens: int) -> str:
    """Return a text of exactly so many tokens."""
    text = " a" * tokens
    assert COUNTER.text(text) == tokens
    return text
