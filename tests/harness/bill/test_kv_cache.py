"""A stored run on an own server: the requests as they were sent, invariants of what is computed, and the command."""

from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ctxbench.harness.bill.kv_cache import ServerRow, Serving
from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import Run, load
from ctxbench.metrics.serving.block_cache import BlockCache
from ctxbench.metrics.serving.radix_cache import RadixCache
from ctxbench.metrics.serving.serve import REPLY, Served, TokenIds
from ctxbench.reports.kv_cache import totals
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation, Message, Tool
from ctxbench.strategies.window import Window
from tests.harness.command import ctxbench
from tests.harness.runs import fail, plan, recording

STRATEGIES = ("none", "window(max_tokens=1000)", "summary(threshold=8)", "archive(threshold=20)", "last_turn")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four conversations with tools and long results, under a strategy of each sort."""
    folder = tmp_path_factory.mktemp("serving")
    path = recording(folder, conversations=4, turns=8, size=60)
    tool = Tool("tool", "does it", '{"type": "object", "properties": {"a": {"type": "integer"}}}')
    said = [msgspec.json.decode(line, type=Conversation) for line in path.read_bytes().splitlines()]
    path.write_bytes(b"".join(msgspec.structs.replace(each, tools=(tool,)).to_json() + b"\n" for each in said))
    execute(plan(path, strategies=STRATEGIES), folder / "run")
    return load(folder / "run")


def prompts(serving: Serving, strategy: str) -> list[np.ndarray]:
    """The prompts of every conversation, one after the other, as they are given to a server."""
    found = []

    class Kept(BlockCache):
        def begin(self, ids: object) -> object:
            found.append(np.asarray(ids))
            return super().begin(ids)

    serving.strategies = [strategy]
    list(serving.rows(Kept, [None], 1))
    return found


def test_requests_are_those_that_were_sent(run: Run) -> None:
    """Every prompt is the tools and the messages of the context, rendered one by one, and the start of the reply."""
    ids = TokenIds("o200k_base")
    steps = run.table("steps").set_index(["strategy", "conversation"]).sort_index()
    for strategy in STRATEGIES:
        made = iter(prompts(Serving(run), strategy))
        for conversation in run.conversations():
            tools = ids.tools(conversation.tools)
            more = len(tools) - run.table("conversations").tools_tokens[0]
            rows = steps.loc[(strategy, conversation.id)]
            for context, sent, added in zip(
                run.contexts(conversation, strategy), rows.tokens_sent, rows.tools_added, strict=True
            ):
                prompt = next(made)
                messages = [ids.message(message) for message in context]
                assert len(prompt) == sent + more
                assert prompt[: len(tools)].tolist() == tools.tolist()
                rest = np.concatenate((*messages, REPLY))
                assert prompt[-len(rest) :].tolist() == rest.tolist()
                between = prompt[len(tools) : len(prompt) - len(rest)]
                assert (len(between) > 0) == (len(added) > 0)
                assert len(set(between.tolist())) == (len(added) > 0)
        assert next(made, None) is None


@pytest.mark.parametrize("make", [BlockCache, RadixCache])
def test_servers(run: Run, make: type[BlockCache | RadixCache]) -> None:
    """What is computed is what is not read; a server of its own for each; without a limit nothing is evicted."""
    rows = {(row.strategy, row.memory): row for row in Serving(run).rows(make, [4096, None], 2)}
    assert len(rows) == 2 * len(STRATEGIES)
    count = {row.strategy: len(row.calls) for row in rows.values()}
    assert len(set(count.values())) == 1
    for (_, memory), row in rows.items():
        assert all(call.computed >= call.tokens - call.read for call in row.calls if not call.refused)
        if memory is None:
            assert row.evicted == 0
            assert not any(call.waited or call.refused for call in row.calls)
    (alone,) = (row for row in Serving(run).rows(make, [4096], 2) if row.strategy == "last_turn")
    assert alone == rows["last_turn", 4096]


def test_more_at_a_time_share_the_memory(run: Run) -> None:
    """One after the other, the whole history is there at each call; four side by side drive each other out."""
    serving = Serving(run)
    serving.strategies = ["none"]
    read = {
        count: sum(call.read for row in serving.rows(BlockCache, [4096], count) for call in row.calls)
        for count in (1, 4)
    }
    assert read[1] > 1.5 * read[4]


def timed(tmp_path: Path, *times: tuple[float | None, ...]) -> Run:
    """Conversations of a user and an assistant in turn, with the time of each message."""
    lines = []
    for number, each in enumerate(times):
        said = [
            Message(f"m{at}", ("user", "assistant")[at % 2], f"{number} {at} " * 20, time=time)
            for at, time in enumerate(each)
        ]
        lines.append(Conversation(f"c{number}", tuple(said)).to_json() + b"\n")
    (tmp_path / "t.jsonl").write_bytes(b"".join(lines))
    execute(plan(tmp_path / "t.jsonl", strategies=("none",)), tmp_path / "run")
    return load(tmp_path / "run")


def order(run: Run, concurrency: int | None, longest: float = math.inf) -> str:
    """Which conversation's call begins when."""
    found = ""
    first = {tuple(TokenIds("o200k_base").message(each.messages[0])[:6]): each.id[1:] for each in run.conversations()}

    class Kept(BlockCache):
        def begin(self, ids: object) -> object:
            nonlocal found
            found += first[tuple(np.asarray(ids)[:6])]
            return super().begin(ids)

    list(Serving(run).rows(Kept, [None], concurrency, longest))
    return found


def test_the_clock_is_the_recorded_one(tmp_path: Path) -> None:
    """Together they begin at once; as recorded, when they did; a long pause may be cut."""
    run = timed(tmp_path, (0.0, 1.0, 101.0, 102.0), (50.0, 51.0, 60.0, 61.0, 70.0, 71.0), (500.0, 501.0, 502.0, 503.0))
    assert order(run, None) == "0111022"
    assert order(run, 1) == "0011122"
    assert order(run, 2) == "0111220"  # 2 begins when 1 is over, in the long pause of 0
    assert order(run, 3) == "0122110"
    assert order(run, 2, longest=2.0) == "0101212"  # 0 and 1 begin again after 3 s; 0 is over, and 2 begins after 4 s
    assert Serving(run).assumed == (7, 0, 0, 0)


def test_times_that_are_not_known_are_assumed_and_counted(tmp_path: Path) -> None:
    """No times at all, and one message that has none: neither the pause before its call nor how long it took."""
    run = timed(tmp_path, (None,) * 6, (100.0, 101.0, None, 110.0))
    serving = Serving(run)
    assert serving.assumed == (5, 3, 4, 1)
    assert sum(len(row.calls) for row in serving.rows(BlockCache, [None], None)) == 5


def test_conversations_that_one_strategy_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are served to none, and counted."""
    fail(monkeypatch, Window, "question 1")
    path = recording(tmp_path, conversations=3, turns=2)
    execute(plan(path, strategies=("none", "window(max_tokens=400)")), tmp_path / "run")
    serving = Serving(load(tmp_path / "run"))
    assert serving.failed == 1
    rows = list(serving.rows(BlockCache, [None], 8))
    assert [len(row.calls) for row in rows] == [2 * 4] * 2
    fail(monkeypatch, Window, "question")
    execute(plan(path, strategies=("none", "window(max_tokens=400)")), tmp_path / "all")
    with pytest.raises(RunError, match="no conversation was finished by every strategy"):
        Serving(load(tmp_path / "all"))


def test_an_encoding_without_ids(tmp_path: Path) -> None:
    """The error says what to do."""
    path = recording(tmp_path, conversations=1, turns=1)
    execute(Plan(RunInputs((str(path),)), ("none",), encoding="chars4"), tmp_path / "run")
    with pytest.raises(RunError, match="chars4, which has no token ids: run again with --encoding o200k_base"):
        Serving(load(tmp_path / "run"))


def test_savings_are_over_the_calls_that_both_get_served() -> None:
    """A call that one of the two is refused counts for neither; without any there is no saving."""
    small, large, no = (
        Served(10, 0, 10, False, 0, False),
        Served(40, 0, 40, True, 1, False),
        Served(9, 0, 0, False, 0, True),
    )
    rows = [ServerRow("none", 64, 0, [large, no, large]), ServerRow("other", 64, 0, [small, small, no])]
    none, other = totals(rows)
    assert (none.saved, other.saved) == (0, 1 - 10 / 40)
    assert (other.calls, other.tokens, other.computed, other.refused) == (3, 20, 20, 1)
    assert (none.waited, none.sent_back) == (2, 2)
    (alone,) = totals(rows[1:])
    assert alone.saved is None


def test_the_command(run: Run) -> None:
    """A table a memory size, without a limit as the last, and what was assumed."""
    shown = ctxbench("lab", "kv-cache", run.folder, "--memory", 4096, "--memory", 8192, cwd=run.folder).stdout
    assert [line for line in shown.splitlines() if line.startswith("vLLM")] == [
        "vLLM, blocks of 16, KV cache of 4,096 tokens",
        "vLLM, blocks of 16, KV cache of 8,192 tokens",
        "vLLM, blocks of 16, unlimited KV cache",
    ]
    assert "8 conversations at a time; as one ends the next begins." in shown
    assert "Assumed: 60 calls of 64 without times come 10 s after the answer before." in shown


def test_the_command_as_json(run: Run) -> None:
    """The exact figures; SGLang has pages of one token unless told otherwise."""
    ran = ctxbench(
        "lab", "kv-cache", run.folder, "-e", "sglang", "--memory", 4096, "--as-recorded", "--json", cwd=run.folder
    )
    found = json.loads(ran.stdout)
    assert found["engine"] == "SGLang, pages of 1"
    assert "Assumed: 4 conversations without times begin with the first one." in found["assumed"]
    rows = totals(Serving(run).rows(lambda size: RadixCache(size, 1), [4096, None], None))
    names = ("strategy", "memory", "computed", "evicted")
    assert [[row[name] for name in names] for row in found["rows"]] == [
        [getattr(row, name) for name in names] for row in rows
    ]


def test_memory_of_less_than_a_block(run: Run) -> None:
    """It is an error in one line."""
    ran = ctxbench("lab", "kv-cache", run.folder, "--memory", 8, cwd=run.folder, code=2)
    assert ran.stderr == "error: --memory 8 is less than one block of 16 tokens\n"


def test_a_provider_s_cache_of_the_same_kind(recordings: Path, tmp_path: Path) -> None:
    """DeepSeek cached any common prefix in units of 64, answers too, for hours: so does a server without a limit.

    Of the recorded prompts it reported 98.70 % as read, in its tokens. Ours are o200k_base, without what it adds.
    """
    execute(plan(recordings / "mini-swe-agent", strategies=("none",)), tmp_path / "run")
    run = load(tmp_path / "run")
    usage = run.table("messages").dropna(subset=["usage_input"])
    (row,) = Serving(run).rows(lambda size: BlockCache(size, 64), [None], None)
    (total,) = totals([row])
    assert len(row.calls) == len(usage) == 1080
    assert total.hit_rate == pytest.approx(usage.usage_cache_read.sum() / usage.usage_input.sum(), abs=0.001)
