"""The load of design document 001 §5: ten turns, one tool call each, 50 000 characters each."""

from __future__ import annotations

import pytest

from ctxbench.harness.invariants import steps
from ctxbench.scenarios.model import Conversation, Message, Tool, ToolCall
from ctxbench.strategies.base import Context
from ctxbench.strategies.chain import parse
from tests.strategies.tool_results import COUNTER

WINDOW = 128_000


def result(turn: int) -> str:
    """50 000 characters of a manual in Chinese, about 33 000 tokens."""
    rows = (
        f"第{turn}.{at}条 权限组{at * 7 % 13}的管理员在系统设置中选择“角色{(turn * 31 + at) % 97}”，"
        f"再把模块{at * 5 % 41}授权给部门{(turn + at) % 29}，保存后{at % 9 + 1}分钟内生效。"
        for at in range(1200)
    )
    return "\n".join(rows)[:50_000]


def load() -> Conversation:
    """From the fifth turn on the user asks about what was said four turns before."""
    said = [Message("s", "system", "你是文档助手。")]
    for turn in range(1, 11):
        question = f"权限组{turn}怎么配置？" if turn < 5 else f"你之前说的权限组{turn - 4}再详细说一下"
        call = ToolCall(f"k{turn}", "search_docs", f'{{"query": "权限组{turn}配置"}}')
        said += [
            Message(f"u{turn}", "user", question),
            Message(f"c{turn}", "assistant", calls=(call,)),
            Message(f"t{turn}", "tool", result(turn), answers=call.id),
            Message(f"a{turn}", "assistant", "先打开系统设置，再选择角色并授权。" * 12),
        ]
    return Conversation("load", tuple(said), (Tool("search_docs", "检索文档"),))


def tokens(context: Context) -> int:
    return sum(map(COUNTER.message, context.messages)) + COUNTER.tools(context.tools)


@pytest.fixture(scope="module")
def sent() -> dict[str, list[int]]:
    """Tokens of the call that answers each turn, and last of all 20 calls together, by strategy."""
    talk = load()
    made = {}
    for text in ("none", "archive", "archive(fresh=False)", "archive(trigger='keyword')"):
        every = [tokens(step.context) for step in steps(parse(text), talk)]
        made[text] = [*every[1::2], sum(every)]
    return made


def test_without_it_the_context_overflows(sent: dict[str, list[int]]) -> None:
    """§5's first row: the fourth turn is over 128K tokens; the tenth has ten results."""
    everything = sent["none"]
    assert [each > WINDOW for each in everything[:10]] == [False] * 3 + [True] * 7
    assert everything[9] == pytest.approx(10 * everything[0], rel=0.02)


def test_with_placeholders(sent: dict[str, list[int]]) -> None:
    """§5's second row holds for neither reading of it, and its saving does for both.

    A turn whose tool returns 50 000 characters pays for them once (fresh), so no later turn is below the first, as the
    table has it; or no turn ever does (not fresh). What is the table's is what grows: a placeholder a turn.
    """
    everything, fresh, never = sent["none"], sent["archive"], sent["archive(fresh=False)"]
    growth = (fresh[9] - fresh[0]) / 9
    assert 250 < growth < 600
    assert fresh[9] < everything[0] * 1.15
    assert never[9] < 10 * 600
    assert 1 - fresh[10] / everything[10] > 0.8
    assert 1 - never[10] / everything[10] > 0.95


def test_with_one_result_loaded(sent: dict[str, list[int]]) -> None:
    """§5's third row: from the fifth turn on one old result more; twice the second row's total, and over 70 % saved."""
    everything, fresh, loading = sent["none"], sent["archive"], sent["archive(trigger='keyword')"]
    assert all(more - less < 1000 for more, less in zip(loading[:4], fresh[:4], strict=True))
    assert all(abs(more - less - everything[0]) < 2500 for more, less in zip(loading[4:10], fresh[4:10], strict=True))
    assert 1.5 < loading[10] / fresh[10] < 2.5
    assert 1 - loading[10] / everything[10] > 0.7
