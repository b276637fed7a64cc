"""Small conversations that break context libraries, each for one reason. They have no seed and no length.

`make_all` gives them all, `traps/enormous_result` (about 400 000 characters in one tool result) among them.
"""

from __future__ import annotations

from ...model import Conversation
from .agents import (
    enormous_result,
    parallel_tool_calls,
    tool_call_bad_json,
    tool_only_turns,
    unanswered_call,
)
from .speech import contradictions, first_assistant, several_systems, system_changed
from .text import (
    empty_and_blank,
    exact_code,
    long_single_user_message,
    repeated_identical,
    unicode_text,
)

TRAPS = (
    parallel_tool_calls,
    unanswered_call,
    enormous_result,
    contradictions,
    exact_code,
    empty_and_blank,
    unicode_text,
    system_changed,
    several_systems,
    tool_only_turns,
    first_assistant,
    long_single_user_message,
    repeated_identical,
    tool_call_bad_json,
)


def make_all() -> tuple[Conversation, ...]:
    """Every trap, in a fixed order."""
    return tuple(trap() for trap in TRAPS)
