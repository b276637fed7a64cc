"""Short benchmarks whose instructions `tests/perf/instructions.py` counts: what users wait for, on small inputs.

    python -m tests.perf.counted prepare FOLDER     # write the recordings and the run that they read
    python -m tests.perf.counted FOLDER             # the benchmarks, under valgrind

They are small, so that all of them take a minute there.
"""

import sys
from functools import partial
from pathlib import Path

from ctxbench.harness.compare.compare import ComparisonRule, compare
from ctxbench.harness.compare.figures import measured
from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.replay import ConversationIndex, RecordedContext, replay
from ctxbench.metrics.cache.prefixes import CacheMark
from ctxbench.metrics.cache.requests import MessageSizes, RequestStep, requests
from ctxbench.metrics.cache.rules import cache_of, rule_for
from ctxbench.metrics.statistics.comparison import Margin
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from ctxbench.strategies.chain import parse
from tests.perf.marks import Benchmarks, count
from tests.perf.peers import recorded

STRATEGIES = {
    "none": "assistant",
    "window(max_tokens=8000)": "assistant",
    "archive": "coding",
    "tiered": "assistant",
}
"""Strategies that are replayed, each with the embedded conversation that it acts on."""
MODELS = ("claude-sonnet-5", "gpt-4o", "deepseek-chat", "gemini-2.5-pro")
STEPS = 200


def replayed(conversation: Conversation, text: str) -> int:
    """Replay a conversation, counting its tokens with it."""
    services = RecordedContext(ConversationIndex(conversation, TokenCounter()))
    return sum(1 for _ in replay(conversation, parse(text), services))


def simulated() -> None:
    """Ask the caches of some providers for a conversation that keeps its prefix."""
    roles = ("system", *("user", "assistant") * STEPS)
    messages = MessageSizes((200,) * len(roles), roles, 500)
    steps = [
        RequestStep(
            2 * number,
            [(2 * number, 2 * number + 2)],
            (),
            903 + 400 * number,
            (),
            10.0 * number,
            10.0 * number + 2,
            2 * number + 2,
            200,
        )
        for number in range(STEPS)
    ]
    rules = [rule.rules for model in MODELS if (rule := rule_for(model, None)) and rule.rules]
    caches = [cache_of(each).request for each in rules]
    for request in requests(steps, messages):
        request.marks = (CacheMark(len(request.prefixes) - 1),)
        for ask in caches:
            ask(request)


def compared(run: Path) -> object:
    """Measure a run, and compare its strategies."""
    figures = measured(load(run))
    names = list(figures.sums)
    return compare(
        figures, figures, [(name, names[0]) for name in names[1:]], lambda *_: ComparisonRule("lower", Margin(0.01))
    )


def recordings(folder: Path) -> Path:
    return folder / "talks.jsonl"


def prepare(folder: Path) -> None:
    """Write a megabyte of recordings, and a run of some of them."""
    _, *talks = recorded("talks")
    recordings(folder).write_bytes(b"".join(talk.to_json() + b"\n" for talk in talks))
    some = folder / "some.jsonl"
    some.write_bytes(b"".join(talk.to_json() + b"\n" for talk in talks[:5]))
    plan = Plan(RunInputs((str(some),)), ("none", "window(max_tokens=2000)"), probes=False, answers=False)
    execute(plan, folder / "run")


def benchmarks(folder: Path) -> Benchmarks:
    """Return the benchmarks, which read what was prepared."""
    talks = {"assistant": recorded("talks")[0], "coding": recorded("coding")[0]}
    return {
        **{f"replay {text}": partial(replayed, talks[kind], text) for text, kind in STRATEGIES.items()},
        "simulate four caches": simulated,
        "read 1 MB of JSON lines": lambda: list(read(find([recordings(folder)], Problems()), Problems())),
        "compare two strategies": lambda: compared(folder / "run"),
    }


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(Path(sys.argv[2]))
    else:
        count(benchmarks(Path(sys.argv[1])))
