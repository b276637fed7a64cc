"""`make perf`: every figure beside its bound or peer, in one group, measured in one run. Ratios are in brackets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from ctxbench.harness.engine import shard
from ctxbench.harness.engine.plan import groups
from ctxbench.harness.engine.workers import run_shards
from ctxbench.harness.replay import ContextLog, ConversationIndex, RecordedContext, Step, replay
from ctxbench.metrics.measure import measure
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, budget_of
from ctxbench.strategies.chain import parse
from tests.builders import answering, calling, talk
from tests.perf import langchain_peers as lc

pytestmark = pytest.mark.perf
Bench = Any
PAIR = ("none", "window(max_tokens=8000)")


def count_all(corpus: list[Conversation], count: Callable[[str], int] | None = None) -> None:
    counter = TokenCounter()
    if count is not None:
        counter._count = count
    for conversation in corpus:
        for message in conversation.messages:
            counter.message(message)


def shards(corpus: list[Conversation], specs: Sequence[str], folder: Path) -> Iterator[list[shard.PartTask]]:
    work = shard.Work(str(folder), "", tuple(specs), "o200k_base")
    for number, group in enumerate(groups(iter(corpus))):
        yield [shard.PartTask(work, number, part, tuple(group) if part == shard.OWN else ()) for part in work.parts]


def tiktoken_count() -> Callable[[str], int]:
    os.environ["TIKTOKEN_CACHE_DIR"] = str(distribution("litellm").locate_file("litellm/litellm_core_utils/tokenizers"))
    import tiktoken

    encoding = tiktoken.get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))


@pytest.mark.benchmark(group="a run of none + window, files read beforehand")
class TestRun:
    def test_floor_counting_every_text_once(self, benchmark: Bench, corpus: list[Conversation]) -> None:
        """The bound: our counter over every recorded message, once."""
        benchmark.pedantic(count_all, (corpus,), rounds=5, warmup_rounds=1)

    def test_floor_the_same_with_tiktoken(self, benchmark: Bench, corpus: list[Conversation]) -> None:
        """The same bound with the reference tokenizer."""
        benchmark.pedantic(count_all, (corpus, tiktoken_count()), rounds=3, warmup_rounds=1)

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_run(self, benchmark: Bench, corpus: list[Conversation], tmp_path: Path, jobs: int) -> None:
        """Replay, measure and store."""

        def fresh() -> tuple[tuple[object, ...], dict[str, object]]:
            shutil.rmtree(tmp_path)
            tmp_path.mkdir()
            shard._counter.cache_clear()
            return (shards(corpus, PAIR, tmp_path), lambda _: None), {"jobs": jobs}

        benchmark.pedantic(run_shards, setup=fresh, rounds=5, warmup_rounds=1)


WORKERS = "two workers: twice the recordings through twenty strategies; 1.7 times one is asked for"
TWENTY = (
    "none",
    "last_turn",
    *(f"window(max_tokens={size})" for size in range(1000, 10_000, 1000)),
    *(f"window(messages={count})" for count in range(5, 50, 5)),
)


@pytest.mark.benchmark(group=WORKERS)
@pytest.mark.parametrize("jobs", [1, 2])
def test_workers(benchmark: Bench, corpus: list[Conversation], tmp_path: Path, jobs: int) -> None:
    """One and two workers, their start with it."""

    def fresh() -> tuple[tuple[object, ...], dict[str, object]]:
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        return (shards(corpus * 2, TWENTY, tmp_path), lambda _: None), {"jobs": jobs}

    benchmark.pedantic(run_shards, setup=fresh, rounds=3)


HALF = """
import sys
from pathlib import Path
from tests.perf import test_speed
from tests.perf.conftest import recorded
from ctxbench.harness.engine.workers import run_shards
from ctxbench.metrics.tokens import TokenCounter
TokenCounter()
corpus = recorded()
print("ready", flush=True)
sys.stdin.readline()
run_shards(test_speed.shards(corpus, test_speed.TWENTY, Path(sys.argv[1])), lambda _: None)
"""


@pytest.mark.benchmark(group=WORKERS)
def test_bound_two_processes_with_half_each(benchmark: Bench, tmp_path: Path) -> None:
    """The bound on this machine: two processes that share nothing and have their half in memory already."""

    def fresh() -> tuple[tuple[list[subprocess.Popen[str]]], dict[str, object]]:
        halves = []
        for name in ("a", "b"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
            command = [sys.executable, "-c", HALF, str(tmp_path / name)]
            halves.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for half in halves:
            assert half.stdout is not None
            half.stdout.readline()
        return (halves,), {}

    def go(halves: list[subprocess.Popen[str]]) -> None:
        for half in halves:
            assert half.stdin is not None
            half.stdin.write("go\n")
            half.stdin.flush()
        for half in halves:
            half.communicate()
            assert half.returncode == 0

    benchmark.pedantic(go, setup=fresh, rounds=3)


def long_talk(messages: int) -> Conversation:
    said: list[Message] = [Message("s", "system", "You answer from the documents. " * 40)]
    while len(said) < messages:
        n = len(said)
        said += [
            Message(f"m{n}", "user", f"What does section {n % 97} say about permission {n % 13}?"),
            calling(f"m{n + 1}", f"c{n}"),
            answering(f"m{n + 2}", f"c{n}", f"Section {n % 97}. " + "The role may read and write. " * (n % 60)),
            Message(f"m{n + 3}", "assistant", f"Section {n % 97} allows reading and writing."),
        ]
    return talk(*said)


@pytest.mark.benchmark(group="growth: the last 400 steps of one conversation of n messages")
@pytest.mark.parametrize("strategy", PAIR)
@pytest.mark.parametrize("size", [1_000, 10_000, 100_000])
def test_growth(benchmark: Bench, size: int, strategy: str) -> None:
    """Time a step must not grow with the conversation: flat within 2×."""
    conversation = long_talk(size)
    services = RecordedContext(ConversationIndex(conversation, TokenCounter()))
    services.index.advance(len(conversation.messages))
    made = parse(strategy)
    view = made.start(services)
    last = list(conversation.calls())[-400:]

    def steps() -> None:
        log = ContextLog(conversation.messages)
        for at in last:
            context = view(Context(Messages.prefix(conversation.messages, at), (), ()))
            log.add(Step(at, context, 0))

    benchmark.pedantic(steps, rounds=20, warmup_rounds=1)


@pytest.mark.benchmark(group="growth: all of one conversation of n messages under none, log and figures")
@pytest.mark.parametrize("size", [1_000, 10_000, 100_000])
def test_growth_whole(benchmark: Bench, size: int) -> None:
    """Ten times the messages take ten times the time; the log has as many entries as there are steps."""
    conversation = long_talk(size)
    services = RecordedContext(ConversationIndex(conversation, TokenCounter()))
    services.index.advance(len(conversation.messages))

    def whole() -> None:
        log = ContextLog(conversation.messages)
        for step in replay(conversation, parse("none"), services):
            log.add(step)
        found = measure([shard.cell_of(services.index, log, budget_of(parse("none")))])
        assert len(found["added_from"][1]) == len(log.runs.at)

    benchmark.pedantic(whole, rounds=3, warmup_rounds=1)


@pytest.fixture(scope="module")
def history() -> Conversation:
    """500 messages."""
    return long_talk(500)


@pytest.mark.benchmark(group="window(max_tokens=8000) on a 500-message history, one call")
class TestWindow:
    def test_ours(self, benchmark: Bench, history: Conversation) -> None:
        """Our window."""
        services = RecordedContext(ConversationIndex(history, TokenCounter()))
        services.index.advance(len(history.messages))
        view = parse("window(max_tokens=8000)").start(services)
        context = Context(Messages.prefix(history.messages, len(history.messages)))
        benchmark(view, context)

    def test_langchain_trim_messages(self, benchmark: Bench, history: Conversation) -> None:
        """The peer, with tiktoken as its counter: 50 times slower is asked for. It keeps the same messages."""
        from langchain_core.messages import trim_messages

        ours = TokenCounter()
        made, cost = lc.langchain(history), lc.cost(history, tiktoken_count())
        assert cost(made) == sum(map(ours.message, history.messages))
        kept = benchmark(
            trim_messages,
            made,
            max_tokens=7200,
            strategy="last",
            token_counter=cost,
            include_system=True,
            start_on=("human", "ai"),
        )
        services = RecordedContext(ConversationIndex(history, ours))
        view = parse("window(max_tokens=8000, user_first=False)").start(services)
        sent = view(Context(Messages.prefix(history.messages, len(history.messages)))).messages
        assert [message.id for message in kept] == [message.id for message in sent]


@pytest.mark.benchmark(group="ctxbench --help, a fresh process")
@pytest.mark.parametrize("command", ["python -c pass", "ctxbench --help"])
def test_start(benchmark: Bench, command: str) -> None:
    """Under half a second is asked for; a bare interpreter is the bound."""
    first, *rest = command.split()
    words = [str(Path(sysconfig.get_path("scripts")) / first), *rest]
    benchmark.pedantic(subprocess.run, (words,), {"capture_output": True, "check": True}, rounds=5, warmup_rounds=1)
