"""A strategy of somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

PLUGIN = """
from dataclasses import dataclass
from itertools import count
from ctxbench.scenarios.model import Message
from ctxbench.strategies.base import Prompt

@dataclass(frozen=True)
class Counts:
    '''Says how often it was asked. Nothing of it says that it may be copied, and it cannot be.'''
    fails_on: str = ""

    def start(self, desk):
        calls = count(1)
        def view(context):
            if self.fails_on and self.fails_on in context.messages[-1].text:
                raise ValueError("no idea")
            return context.sending([*context.messages, Message("counts:0", "system", f"call {next(calls)}")])
        return view

@dataclass(frozen=True)
class Asks(Counts):
    '''The same, with a model asked at every call.'''

    def start(self, desk):
        def view(context):
            desk.complete(Prompt("{conversation}", (context.messages[-1].text or "-",), 50))
            return context
        return view
"""


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(PLUGIN)
    return f"{tmp_path}/mine.py"
