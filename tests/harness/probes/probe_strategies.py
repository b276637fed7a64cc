"""Conversations with probes, and what becomes of them, for the tests."""

from pathlib import Path

from msgspec.structs import replace

from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import Run, load
from ctxbench.harness.probes import ProbeRow, ask_probes
from ctxbench.harness.replay import ContextLog, ConversationIndex
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation, Probe
from ctxbench.strategies.chain import parse
from tests.builders import talk
from tests.strategies.scripted_models import Replying

COUNTER = TokenCounter()
STATEFUL = (
    "summary(threshold=4, max_summary_tokens=60)",
    "layered(recent=1)",
    "archive(threshold=200) | window(max_tokens=3000)",
    "focus(limit=1500, system=0, functions=0)",
)
"""Strategies that keep something from call to call."""

PLUGIN = """
from dataclasses import dataclass
from itertools import count
from ctxbench.scenarios.model import Message
from ctxbench.strategies.base import Prompt

@dataclass(frozen=True)
class Counts:
    '''Says how often it was asked. Nothing of it says that it may be copied, and it cannot be.'''
    fails_on: str = ""

    def start(self, services):
        calls = count(1)
        def view(context):
            if self.fails_on and self.fails_on in context.messages[-1].text:
                raise ValueError("no idea")
            return context.sending([*context.messages, Message("counts:0", "system", f"call {next(calls)}")])
        return view

@dataclass(frozen=True)
class Asks(Counts):
    '''The same, with a model asked at every call.'''

    def start(self, services):
        def view(context):
            services.complete(Prompt("{conversation}", (context.messages[-1].text or "-",), 50))
            return context
        return view
"""


def asking(*probes: Probe) -> Conversation:
    """Ten turns, and probes."""
    said = [("system", "You help.")]
    for turn in range(10):
        said += [
            ("user", f"Turn {turn}: remember the code K{turn}00 please."),
            ("assistant", f"The code is K{turn}00."),
        ]
    return replace(talk(*said), probes=probes)  # type: ignore[arg-type]


def some() -> list[Conversation]:
    """A few conversations with probes of every kind."""
    return [*list(scenario("smoke"))[:3], asking(Probe("p", "Which code in turn 3?", ("K300",), ("m7",)))]


def run(
    folder: Path, said: Conversation | list[Conversation], *strategies: str, probes: bool = True, jobs: int = 1
) -> Run:
    """A run of some conversations."""
    path = folder.parent / "said.jsonl"
    path.write_bytes(b"".join(each.to_json() + b"\n" for each in (said if isinstance(said, list) else [said])))
    execute(Plan(RunInputs((str(path),)), strategies, probes=probes), folder, jobs=jobs)
    return load(folder)


def added(row: ProbeRow) -> list[tuple[int, int]]:
    """Return the messages that a probe adds to the context of its step."""
    return list(zip(row["added_from"], row["added_to"], strict=True))


def found(conversation: Conversation, spec: str) -> list[ProbeRow]:
    books = ConversationIndex(conversation, COUNTER)
    return ask_probes(books, parse(spec), Replying(), ContextLog(conversation.messages))
