"""Compression, hit rates and cost saved: worked by hand, and against the contexts that were really sent."""

from pathlib import Path

import pytest

from ctxbench.api.runs import BenchmarkRun
from ctxbench.harness.bill.bill import bill
from ctxbench.harness.bill.simulation import Scheme
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load, steps_of
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.strategies.events import Compressed, Moved, Recalled, Summarised
from tests.harness.runs import plan, recording

SUMMARY = "summary(threshold=4, every=2, max_summary_tokens=40, language='en')"
ARCHIVE = "archive(threshold=20)"
TIERED = "tiered(limit=400, working=300, archive=4000, recall=150)"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two conversations with long tool results, under strategies that replace, and some that do not."""
    folder = tmp_path_factory.mktemp("measures")
    strategies = ("none", "window(messages=5)", SUMMARY, ARCHIVE, f"{SUMMARY} | window(messages=4)", TIERED)
    execute(plan(recording(folder, conversations=2, turns=12, size=60), strategies=strategies), folder / "run")
    return load(folder / "run")


@pytest.mark.parametrize("strategy", [SUMMARY, ARCHIVE])
def test_compression_is_that_of_the_contexts(run: Run, strategy: str) -> None:
    """At every call: the replaced messages that are not in the context, and what the strategy wrote for them."""
    count = TokenCounter().message
    replaced = standing_in = 0
    for conversation in run.conversations():
        events = run.events(conversation.id, strategy)
        recorded = {message.id: message for message in conversation.messages}
        for step, context in enumerate(run.contexts(conversation, strategy)):
            written = [message for message in context if recorded.get(message.id) != message]
            written = [message for message in written if message.id != "archive:note"]  # how to load, not a result
            sent = {message.id for message in context} - {message.id for message in written}
            gone = {message.id for message in written if message.id in recorded}
            for at, event in events:
                if at <= step and isinstance(event, Summarised):
                    gone.update(event.replaced)
            replaced += sum(count(recorded[name]) for name in gone - sent) if written else 0
            standing_in += sum(map(count, written))
    assert replaced > standing_in > 0
    steps = steps_of(run)
    assert METRICS["compression_ratio"].of(steps[steps.strategy == strategy]) == replaced / standing_in


def test_a_hit_rate_is_that_of_the_look_ups_after_an_eviction(run: Run) -> None:
    """Counted again from the events in order: what is looked up before the first eviction cannot miss."""
    hits = look_ups = 0
    for conversation in run.conversations():
        events = run.events(conversation.id, TIERED)
        first = min(at for at, event in events if isinstance(event, Moved) and event.source == "working" and event.to)
        for at, event in events:
            if isinstance(event, Recalled) and event.kind != "focus" and at >= first:
                look_ups += len(event.sources)
                hits += len(event.sources) * (event.kind == "working")
    assert 0 < hits < look_ups
    small = steps_of(run)
    assert METRICS["lru_k_hit_rate"].of(small[small.strategy == TIERED]) == hits / look_ups
    missing = METRICS["lru_k_hit_rate"].of(small[small.strategy == "none"])
    assert missing == Missing("unsupported", "no Working tier with LRU-K")


def test_archive_compression_is_that_of_its_files(run: Run) -> None:
    """Of all conversations, what the archive said of itself when it was written last; a window has none."""
    last = [
        [event for _, event in run.events(conversation.id, TIERED) if isinstance(event, Compressed)][-1]
        for conversation in run.conversations()
    ]
    content, stored = sum(event.content for event in last), sum(event.stored for event in last)
    assert content > 0
    assert stored > 0
    steps = steps_of(run)
    metric = METRICS["archive_compression_ratio"]
    assert metric.of(steps[steps.strategy == TIERED]) == content / stored
    assert metric.of(steps[steps.strategy == "none"]) == Missing("unsupported", "no Archive tier")


def test_cache_hits_by_hand(tmp_path: Path) -> None:
    """Of three calls the first cannot hit, the second reads the first's prompt, the third comes too late."""
    said = (
        Message("s", "system", "word " * 3000, time=1.79e9),
        Message("u", "user", "hi", time=1.79e9),
        Message("a", "assistant", "yes", time=1.79e9 + 5),
        Message("v", "user", "and then?", time=1.79e9 + 60),
        Message("b", "assistant", "no", time=1.79e9 + 65),
        Message("w", "user", "and now?", time=1.79e9 + 7200),
        Message("c", "assistant", "no", time=1.79e9 + 7205),
    )
    (tmp_path / "t.jsonl").write_bytes(Conversation("t", said).to_json() + b"\n")
    execute(plan(tmp_path / "t.jsonl", strategies=("none", "window(messages=2)")), tmp_path / "run")
    run = load(tmp_path / "run")
    figures = BenchmarkRun(run).summary("claude-sonnet-5").loc["none"]
    count = TokenCounter().message
    prompts = [sum(map(count, said[:at])) + 3 for at in (2, 4, 6)]
    first = count(said[0]) + count(said[1])
    assert figures["cache_hit_rate(claude-sonnet-5)"] == pytest.approx(first / sum(prompts), rel=1e-4)
    assert figures["cache_hit_rate_calls(claude-sonnet-5)"] == 1 / 2
    assert figures["cost_saving(claude-sonnet-5)"] == 0
    rows = bill(run, [Scheme("claude-sonnet-5")]).conversations().set_index("strategy")
    window = BenchmarkRun(run).summary("claude-sonnet-5").loc["window(messages=2)"]
    assert window["cost_saving(claude-sonnet-5)"] == 1 - rows.cost["window(messages=2)"] / rows.cost["none"]
