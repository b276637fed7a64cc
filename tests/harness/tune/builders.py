"""Recordings in which what is said early is used later, so that a shorter context costs less and holds less."""

from pathlib import Path

import msgspec

from ctxbench.scenarios.model import Conversation, Message, ToolCall


def recording(folder: Path, conversations: int = 8, turns: int = 6) -> Path:
    """In turn t a code is said, and the one of two turns before is used in a tool call."""
    path = folder / "codes.jsonl"
    path.write_bytes(b"".join(conversation(number, turns).to_json() + b"\n" for number in range(conversations)))
    return path


def conversation(number: int, turns: int = 6) -> Conversation:
    """One of them; the higher its number, the longer what is said."""
    said: list[Message] = [Message("", "system", "You keep codes.")]
    for turn in range(turns):
        used = f'{{"code": "{code(number, max(0, turn - 2))}"}}'
        said += [
            Message("", "user", f"The code is {code(number, turn)}. " + "Please keep it. " * (2 + number)),
            Message("", "assistant", calls=(ToolCall(f"call{turn}", "look_up", used),)),
            Message("", "tool", "It is known. " * 10, answers=f"call{turn}"),
            Message("", "assistant", "I have kept it."),
        ]
    return Conversation(f"c{number}", tuple(msgspec.structs.replace(each, id=f"m{at}") for at, each in enumerate(said)))


def code(number: int, turn: int) -> str:
    """An identifier that is nowhere else."""
    return f"KX-{number:03d}-{turn:04d}-Q"
