"""`make perf`: every figure beside its bound or peer, in one group, measured in one run. Ratios are in brackets."""

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from ctxbench.harness.engine import shard
from ctxbench.harness.engine.plan import groups
from ctxbench.harness.engine.workers import run_shards
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation

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
        """Replay, measure and store, cold: nothing is found by content. The tokenizer is loaded, as for the floors."""

        def fresh() -> tuple[tuple[object, ...], dict[str, object]]:
            shutil.rmtree(tmp_path)
            tmp_path.mkdir()
            shard._counter.cache_clear()
            return (shards(corpus, PAIR, tmp_path), lambda _: None), {"jobs": jobs}

        benchmark.pedantic(run_shards, setup=fresh, rounds=5, warmup_rounds=1)


@pytest.mark.benchmark(group="start-up, a fresh process")
@pytest.mark.parametrize("command", ["python -c pass", "ctxbench --help", "ctxbench list"])
def test_start(benchmark: Bench, command: str) -> None:
    """0.12 and 0.25 s are aimed at; a bare interpreter is the bound. The floors above have no start in them."""
    first, *rest = command.split()
    words = [str(Path(sysconfig.get_path("scripts")) / first), *rest]
    benchmark.pedantic(subprocess.run, (words,), {"capture_output": True, "check": True}, rounds=5, warmup_rounds=1)
