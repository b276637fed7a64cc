"""The bill of a stored run: by hand, the invariants of its sums, the command, and what broke the prefix of a prompt."""

import json
import re
from collections.abc import Callable
from functools import partial
from itertools import accumulate, chain, repeat
from pathlib import Path

import msgspec
import pandas as pd
import pytest
from msgspec.structs import replace

from ctxbench.harness.bill.bill import bill as billed_as
from ctxbench.harness.bill.requests import RunRequests, breaks
from ctxbench.harness.bill.simulation import Scheme
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, lacking_newest, load
from ctxbench.metrics.cache.mechanisms import AutomaticRules
from ctxbench.metrics.cache.requests import PLACEMENTS
from ctxbench.metrics.cache.rules import rule_for
from ctxbench.metrics.prices import BUNDLED, Price, TokenUsage
from ctxbench.metrics.tokens import PRIMING, TokenCounter
from ctxbench.reports.bill import assumptions
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Call, Conversation, Media, Message, ToolCall, Usage
from ctxbench.strategies.events import Called
from tests.harness.command import ctxbench
from tests.harness.runs import plan, recording
from tests.strategies.sized import agent

bill = partial(billed_as, factor=1.0)
"""Bills in our own tokens, so that they can be worked by hand."""

MODELS = ("claude-sonnet-5", "gpt-5.6", "gpt-4o", "deepseek-chat")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two conversations with long tool results, under a strategy of each sort."""
    folder = tmp_path_factory.mktemp("billing")
    strategies = ("none", "window(max_tokens=2000)", "summary(threshold=8)", "archive(threshold=20)", "cache_marks")
    execute(plan(recording(folder, conversations=2, turns=8, size=200), strategies=strategies), folder / "run")
    return load(folder / "run")


def conversation(folder: Path, *said: Message, strategies: tuple[str, ...] = ("none",)) -> Run:
    """A run over one conversation."""
    folder.mkdir(exist_ok=True)
    (folder / "t.jsonl").write_bytes(Conversation("t", said).to_json() + b"\n")
    execute(plan(folder / "t.jsonl", strategies=strategies), folder / "run")
    return load(folder / "run")


def price(model: str, tokens: int = 1) -> Price:
    tariff = BUNDLED.tariff(model)
    assert tariff is not None
    return tariff.at(tokens)


SAID = (
    Message("s", "system", "word " * 3000, time=1.79e9),
    Message("u", "user", "hi", time=1.79e9),
    Message("a", "assistant", "yes", time=1.79e9 + 5),
    Message("v", "user", "and then?", time=1.79e9 + 60),
    Message("b", "assistant", "no", time=1.79e9 + 65),
)


def test_by_hand(tmp_path: Path) -> None:
    """Two calls a minute apart: the first prompt is written, then read; what came since is written."""
    billed = bill(conversation(tmp_path, *SAID), [Scheme("claude-sonnet-5")])
    count = TokenCounter().message
    first, more = count(SAID[0]) + count(SAID[1]), count(SAID[2]) + count(SAID[3])
    calls = billed.calls(billed.schemes[0])
    assert calls[["read", "written", "fresh"]].to_numpy().tolist() == [[0, first, 3], [first, more, 3]]
    assert calls.output.tolist() == [count(SAID[2]), count(SAID[4])]
    paid = price("claude-sonnet-5")
    output = sum(calls.output) * paid.output
    row = billed.conversations().iloc[0]
    assert row.cost == pytest.approx(first * paid.read + (first + more) * paid.write + 6 * paid.input + output)
    assert row.uncached == pytest.approx((2 * first + more + 6) * paid.input + output)
    assert row.cost_fresh == pytest.approx(6 * paid.input)
    assert (row.hits, row.calls, row.over_window) == (1, 2, 0)


def test_the_document_s_worked_example(tmp_path: Path) -> None:
    """Under its own rules the second call pays a tenth of the long system prompt, and all of the rest."""
    billed = bill(conversation(tmp_path, *SAID), [Scheme("claude-sonnet-5", "document", rules="document")])
    first, second = billed.calls(billed.schemes[0]).itertuples()
    system, paid = TokenCounter().message(SAID[0]), price("claude-sonnet-5").input
    assert first.cost_written == pytest.approx(system * paid)  # writing costs nothing more
    assert second.cost_read == pytest.approx(0.1 * system * paid)
    assert second.cost_fresh == pytest.approx((second.tokens - system) * paid)


def test_content_stored_by_the_hour(tmp_path: Path) -> None:
    """What is created is paid as input, read at once, and kept for an hour at the price of its day."""
    billed = bill(conversation(tmp_path, *SAID[:3]), [Scheme("gemini-3.8-flash", rules="stored")])
    row = billed.conversations().iloc[0]
    assert row.created == row.read == 0  # 3 000 tokens are fewer than its least size
    long = (Message("s", "system", "word " * 5000, time=1.79e9), *SAID[1:3])
    row = bill(conversation(tmp_path / "long", *long), billed.schemes).conversations().iloc[0]
    assert row.created == row.read == row.tokens - 3
    assert row.token_hours == pytest.approx(row.created)
    paid = price("gemini-3.8-flash")
    tariff = BUNDLED.tariff("gemini-3.8-flash")
    assert tariff is not None
    assert row.cost_storage == pytest.approx(row.created * (tariff.at(1, 1.79e9).storage or 0))
    assert row.cost_storage > 0
    assert row.cost_written == pytest.approx(row.created * paid.input)


def test_every_token_is_billed_once(run: Run) -> None:
    """Read, written and fresh are together what was sent, in every cell, under every model and placement of marks."""
    steps = run.table("steps")
    sent = steps.groupby(["conversation", "strategy"], observed=True).tokens_sent.sum()
    schemes = [Scheme(model, placement) for model in MODELS for placement in PLACEMENTS]
    found = bill(run, schemes).conversations()
    assert len(found) == 2 * 5 * len(schemes)
    for row in found.itertuples():
        whole = row.read + row.written + row.written_1h + row.fresh
        assert whole == row.tokens == sent[row.conversation, row.strategy]
        assert 0 <= row.hits <= row.calls
    parts = found[["cost_read", "cost_written", "cost_fresh", "cost_output", "cost_storage"]].sum(axis=1)
    assert found.cost.tolist() == pytest.approx(parts.tolist())
    assert set(found[found.written > 0].model) == {"claude-sonnet-5", "gpt-5.6"}


def test_the_bound_is_under_every_placement(run: Run) -> None:
    """No placement of marks has a lower bill than hindsight; other providers have no such bound."""
    schemes = [Scheme("claude-sonnet-5", placement) for placement in (*PLACEMENTS, "hindsight")]
    found = bill(run, [*schemes, Scheme("gpt-4o", "hindsight")]).conversations()
    assert set(found.model) == {"claude-sonnet-5"}
    costs = found.pivot(index=["conversation", "strategy"], columns="placement", values="cost")
    lowest = costs.pop("hindsight")
    assert (costs.min(axis=1) >= lowest - 1e-12).all()
    assert (lowest > 0).all()


def test_breaking_even(tmp_path: Path) -> None:
    """The first turn from which on the sum of all calls is under that of `none`; dearer at first, it is the third."""
    said = [Message("s", "system", "Be kind.")]
    for turn, words in enumerate((10, 10, 4000, 10)):
        said += [Message(f"u{turn}", "user", "word " * words), Message(f"a{turn}", "assistant", "yes")]
    strategies = ("none", "last_turn", "facts")
    billed = bill(conversation(tmp_path, *said, strategies=strategies), [Scheme("deepseek-v4-pro")])
    calls = billed.calls(billed.schemes[0])
    paid = {strategy: calls[calls.strategy == strategy].cost.cumsum().to_numpy() for strategy in strategies}
    found = billed.conversations().set_index("strategy").break_even
    for strategy in strategies[1:]:
        turns = [turn for turn in range(1, 5) if (paid[strategy][turn - 1 :] < paid["none"][turn - 1 :]).all()]
        assert found[strategy] == turns[0] if turns else found.isna()[strategy]
    assert found.isna()["none"]
    assert found["last_turn"] > 1


SUMMARY = "summary(threshold=8)"


def changed(run: Run, monkeypatch: pytest.MonkeyPatch, change: Callable[[Called], Called]) -> pd.DataFrame:
    """The own calls of a run, which from now on has them so."""
    events = run.table("events").dropna(subset=["input_tokens"]).reset_index(drop=True)
    assert set(events.strategy) == {SUMMARY}
    made = [change(msgspec.json.decode(text, type=Called)) for text in events.event]
    events["event"] = [msgspec.json.encode(each).decode() for each in made]
    whole = Run.table
    monkeypatch.setattr(Run, "table", lambda self, name: events if name == "events" else whole(self, name))
    return events


def test_the_strategy_s_own_calls(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stands at its step, in dollars; one whose price is not known makes the whole unknown, not free."""
    costs = chain([None], repeat(0.5))  # the first is of c0
    events = changed(run, monkeypatch, lambda call: replace(call, model="some/model", cost=next(costs)))
    assert events.conversation[0] == "c0"
    billed = bill(run, [Scheme("gpt-4o")])
    calls = billed.calls(billed.schemes[0])
    other = calls[(calls.conversation == "c1") & (calls.strategy == SUMMARY)]
    asked = events[events.conversation == "c1"]
    assert other.set_index("step").cost_own.loc[asked.step].tolist() == [0.5] * len(asked)
    found = billed.conversations().set_index(["conversation", "strategy"]).cost_own
    assert found["c1", SUMMARY] == 0.5 * len(asked)
    assert found.isna()["c0", SUMMARY]
    assert found["c1", "none"] == 0


def test_what_offline_summarised_is_not_free(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 tokens in and 100 out cost what each billed model takes for them; embeddings are no text, and stay free."""
    events = changed(run, monkeypatch, lambda call: replace(call, input_tokens=1000, output_tokens=100))
    billed = bill(run, [Scheme(model) for model in ("gpt-4o", "claude-sonnet-5")])
    for scheme in billed.schemes:
        each = price(scheme.model)
        found = billed.calls(scheme).groupby("strategy", observed=True).cost_own.sum()
        assert found[SUMMARY] == pytest.approx(len(events) * (1000 * each.input + 100 * each.output))
        assert found["none"] == 0
    changed(run, monkeypatch, lambda call: replace(call, role="embedder"))
    assert not bill(run, [Scheme("gpt-4o")]).conversations().cost_own.any()


def test_a_recorded_summary_costs_what_its_usage_says(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """400 of 1,000 tokens were read from the cache. They are the provider's own count."""
    counts = {"input_tokens": 1000, "output_tokens": 100, "cache_read": 400}
    events = changed(run, monkeypatch, lambda call: replace(call, model="m", cost=None, basis="recorded", **counts))
    billed = bill(run, [Scheme("gpt-4o")], factor=2)
    each = price("gpt-4o")
    cost = 600 * each.input + 400 * each.read + 100 * each.output
    found = billed.calls(billed.schemes[0]).groupby("strategy", observed=True).cost_own.sum()
    assert found[SUMMARY] == pytest.approx(len(events) * cost)


@pytest.mark.parametrize("model", ["claude-sonnet-5", "deepseek-reasoner", "gpt-4o"])
def test_summaries_cost_by_the_prompt_that_asks_for_them(run: Run, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    """Asked behind another system prompt, the last prompt and its answer are plain; as one message more, what the
    cache has of that prompt is read."""
    each, scheme, rule = price(model), Scheme(model), rule_for(model, None)
    assert rule is not None
    for prompt in ("separate", "history", "extends"):
        counts = {"input_tokens": 1000, "output_tokens": 100, "prompt": prompt}
        events = changed(run, monkeypatch, lambda call, counts=counts: replace(call, **counts))  # type: ignore[misc]
        calls = bill(run, [scheme]).calls(scheme)
        calls = calls[calls.strategy == SUMMARY].set_index(["conversation", "step"])
        for name, step in zip(events.conversation, events.step, strict=True):
            last, reply = calls.loc[(name, step - 1)], 100 * each.output
            cached = last.tokens - last.fresh
            if isinstance(rule.rules, AutomaticRules):
                cached = rule.rules.read(int(last.tokens))
            cost = {
                "separate": 1000 * each.input + reply,
                "history": (last.tokens + last.output) * each.input + reply,
                "extends": (last.tokens + last.output) * each.input + reply - cached * (each.input - each.read),
            }
            assert calls.loc[(name, step)].cost_own == pytest.approx(cost[prompt])


@pytest.mark.parametrize("size", [1, 2000])
def test_what_the_context_lacks_is_charged_as_read_again(tmp_path: Path, size: int) -> None:
    """The order's number is gone from the second context: that context once more, cached in steps of 128 tokens where
    it is long enough, the message that has the number, and 23 tokens of output. `none` lacks nothing."""
    told = Message("a", "user", "The order is ORD-77123. " + "Thanks! " * 50, time=1.79e9)
    asked = Message("c", "user", "Which order? " * size, time=1.79e9 + 20)
    answers = (
        Message("b", "assistant", "Yes.", time=1.79e9 + 5),
        Message("d", "assistant", "ORD-77123", time=1.79e9 + 25),
    )
    run = conversation(tmp_path, told, answers[0], asked, answers[1], strategies=("none", "last_turn"))
    calls, each = bill(run, [Scheme("gpt-4o")]).calls(Scheme("gpt-4o")), price("gpt-4o")
    found = calls.set_index(["strategy", "step"]).cost_refetch
    told_tokens, sent = TokenCounter().message(told), calls[calls.strategy == "last_turn"].tokens.iloc[1]
    cached = sent // 128 * 128 if size > 1 else 0
    assert found["last_turn", 1] == pytest.approx(
        cached * each.read + (sent - cached + told_tokens) * each.input + 23 * each.output
    )
    assert found["last_turn", 0] == found["none", 0] == found["none", 1] == 0


def test_a_bill_is_a_range_where_not_every_call_finds_the_cache(tmp_path: Path) -> None:
    """Calls find half of what is cached, and the rest costs as plain input."""
    said = [replace(message, text=message.text * size) for message, size in zip(SAID, (1, 400, 1, 400, 1), strict=True)]
    more = [Message("w", "user", "more " * 500, time=1.79e9 + 80), Message("c", "assistant", "so", time=1.79e9 + 85)]
    billed = bill(conversation(tmp_path, *said, *more), [Scheme("gpt-4o", reuse=0.5)])
    calls, each = billed.calls(billed.schemes[0]), price("gpt-4o")
    assert calls.read.tolist()[2] > 0
    missed = [tokens / 2 * (each.input - each.read) for tokens in calls.read.tolist()]
    assert calls.cost_missed.tolist() == pytest.approx(missed)
    assert not bill(billed.requests, [Scheme("gpt-4o", reuse=1.0)]).conversations().cost_missed.any()


def test_a_bill_begins_as_warm_as_the_recording(tmp_path: Path) -> None:
    """The first call read 2,000 tokens of other sessions; the second found half of what that left in the cache."""
    uses = (Usage(3100, 1, 2000, 1100), Usage(3200, 1, 1550, 1650))
    calls = [replace(SAID[at], call=Call("claude-sonnet-5", usage=used)) for at, used in zip((2, 4), uses, strict=True)]
    run = conversation(tmp_path, *SAID[:2], calls[0], SAID[3], calls[1])
    warm, cold = (bill(run, [Scheme("claude-sonnet-5", warm=is_warm)]) for is_warm in (True, False))
    assert [billed.calls(billed.schemes[0]).read[0] for billed in (warm, cold)] == [2000, 0]
    paid, row = price("claude-sonnet-5"), warm.conversations().iloc[0]
    assert row.cost_missed == pytest.approx(row.read / 2 * (paid.write - paid.read))
    other = bill(run, [Scheme("claude-opus-5")]).conversations().iloc[0]
    assert (other.cost_missed, other.found) == (0, warm.calls(warm.schemes[0]).read[1])


def in_arguments(message: Message) -> Message:
    """Return a message of as many tokens whose text is in the arguments of its call: one content block, not two."""
    if not message.calls:
        return message
    count = TokenCounter().message
    moved = (
        replace(message, text="", calls=(replace(message.calls[0], arguments=f'{{"path": "{" a" * size}"}}'),))
        for size in range(150, 200)
    )
    return next(other for other in moved if count(other) == count(message))


def test_a6_what_an_edit_leaves_in_the_cache(tmp_path: Path) -> None:
    """A6: with one mark at each prompt's end, the edit after 6 results finds the end of prompt 0 (4,000 tokens) 13
    positions back; after 10 it is the 21st, and nothing is read. Between edits, all of the prompt before is read."""
    clearing = f"anthropic.clear_tool_uses(trigger=30000, placeholder='{' a' * 6}')"
    run = conversation(tmp_path, *map(in_arguments, agent(11).messages), strategies=(clearing,))
    billed = bill(run, [Scheme("claude-sonnet-5")])
    calls = billed.calls(billed.schemes[0])
    assert (calls.tokens - PRIMING).tolist()[5:] == [30_000, 20_230, 25_430, 20_650, 25_850, 21_070]
    assert calls.read.tolist()[5:] == [24_800, 4_000, 20_230, 4_000, 20_650, 0]


THOUGHT = "word " * 200


def reasoned(model: str = "") -> tuple[Message, ...]:
    """A turn of two answers with reasoning, and two turns behind it."""
    look = (ToolCall("c", "look"),)
    said = [
        Message("u1", "user", "why? " * 3000),
        Message("a1", "assistant", thinking=THOUGHT, calls=look, call=Call(model)),
        Message("r1", "tool", "that " * 300, answers="c"),
        Message("a2", "assistant", "so", thinking=THOUGHT, call=Call(model)),
        Message("u2", "user", "and then?"),
        Message("a3", "assistant", "this"),
        Message("u3", "user", "and?"),
        Message("a4", "assistant", "well"),
    ]
    return tuple(replace(message, time=1.79e9 + 10 * at) for at, message in enumerate(said))


ALL, TURN = [("u1", 0), ("r1", 1), ("u2", 2)], [("u1", 0), ("u1", 0), ("u2", 0)]
"""End of what calls 2 to 4 read, and the answers before it that have their reasoning."""


@pytest.mark.parametrize(
    ("model", "kept", "read"),
    [
        ("claude-opus-4-5", [0, 1, 2, 2], ALL),
        ("claude-sonnet-4-5", [0, 1, 0, 0], TURN),
        ("gemini-2.5-pro", [0, 0, 0, 0], None),
        ("gpt-4o", [0, 0, 0, 0], None),
    ],
)
def test_reasoning_is_in_later_prompts(
    tmp_path: Path, model: str, kept: list[int], read: list[tuple[str, int]] | None
) -> None:
    """With `thinking`, prompts have the reasoning that the model's provider keeps, and are read up to where it goes."""
    run, scheme, count = conversation(tmp_path, *reasoned()), Scheme(model), TokenCounter()
    plain, counted = (bill(run, [scheme], thinking=on).calls(scheme) for on in (False, True))
    size = count.text(THOUGHT)
    assert (counted.tokens - plain.tokens).tolist() == [answers * size for answers in kept]
    if read is not None:
        ends = dict(zip((m.id for m in reasoned()), accumulate(map(count.message, reasoned())), strict=True))
        assert counted.read.tolist()[1:] == [ends[name] + answers * size for name, answers in read]


def test_hidden_reasoning_is_named(tmp_path: Path) -> None:
    """Reasoning without text and count is not billed, and the notes say of how many answers; so they do without
    the option."""
    hidden = [replace(m, thinking="", thinking_hidden=True) if m.id == "a1" else m for m in reasoned()]
    run, schemes = conversation(tmp_path, *hidden), [Scheme("claude-opus-4-5")]
    notes = [" ".join(assumptions(bill(run, schemes, thinking=on), schemes)) for on in (False, True)]
    assert "The reasoning of 2 answers is not billed in later prompts (`--thinking` bills it)" in notes[0]
    assert "of 2 answers with reasoning, all have it billed in later prompts, but for 1 whose text and" in notes[1]


def test_the_default_of_clear_thinking_is_what_older_models_do(tmp_path: Path) -> None:
    """A10: `anthropic.clear_thinking` sends Sonnet 4.5 what it strips itself, so that both bills are the same; under a
    model that keeps all reasoning, it writes the cache anew from the first answer on."""
    strategies = ("none", "anthropic.clear_thinking")
    run = conversation(tmp_path, *reasoned("claude-sonnet-4-5"), strategies=strategies)
    schemes = [Scheme("claude-sonnet-4-5"), Scheme("claude-opus-4-5")]
    costs = bill(run, schemes, thinking=True).conversations().set_index(["model", "strategy"]).cost
    none, cleared = (costs.xs(strategy, level="strategy") for strategy in strategies)
    assert cleared["claude-sonnet-4-5"] == pytest.approx(none["claude-sonnet-4-5"])
    assert cleared["claude-opus-4-5"] > none["claude-opus-4-5"]


def test_iterations_of_a_reply_are_added_up() -> None:
    """The provider's example (C1, C2): a compaction of 180,000 tokens before a reply on 23,000, plain and then read."""
    each = price("claude-opus-5")
    assert each.of(TokenUsage(203_000, 4500)) == pytest.approx(1.1275)
    assert each.of(TokenUsage(203_000, 4500, cached=180_000)) == pytest.approx(0.3175)


def test_a_price_that_is_not_known(run: Run) -> None:
    """It is an error with the nearest name: an unknown price is not nothing."""
    with pytest.raises(RunError, match=r"the price of gpt-5\.66 is not known; did you mean"):
        bill(run, [Scheme("gpt-5.66")])
    with pytest.raises(RunError, match=r"gemini-2\.5-pro: no price of stored content is known"):
        bill(run, [Scheme("gemini-2.5-pro", rules="stored")])


def test_the_command(run: Run) -> None:
    """A table a model, and JSON with the exact figures and what was assumed."""
    shown = ctxbench("bill", run.folder, "-m", "gpt-4o", cwd=run.folder).stdout
    assert "What does it cost under gpt-4o?" in shown
    assert "2 conversations have no times" in shown
    found = json.loads(ctxbench("bill", run.folder, "-m", "gpt-4o", "--json", cwd=run.folder).stdout)
    assert [row["strategy"] for row in found["bills"]][:2] == ["none", "window(max_tokens=2000)"]
    none = found["bills"][0]
    assert none["saved_against_none"] == 0
    rows = bill(run, [Scheme("gpt-4o")]).conversations()
    assert none["cost"] == pytest.approx(rows[rows.strategy == "none"].cost.sum())


def test_savings_of_calls_that_would_fail_are_marked(tmp_path: Path) -> None:
    """A window that cannot hold the newest message sends less; its saving has a star, as elsewhere."""
    said = [Message(f"m{at}", ("user", "assistant")[at % 2], "word " * 200) for at in range(6)]
    run = conversation(tmp_path, *said, strategies=("none", "window(max_tokens=100)", "window(messages=4)"))
    assert lacking_newest(run) == {"window(max_tokens=100)"}
    printed = ctxbench("bill", run.folder, "--model", "claude-sonnet-5", cwd=tmp_path).stdout.splitlines()
    rows = {name: next(line for line in printed if line.startswith(name)) for name in run.manifest.plan.strategies}
    assert {name: "%*" in row for name, row in rows.items()} == {
        "none": False,
        "window(max_tokens=100)": True,
        "window(messages=4)": False,
    }
    assert "* Part of this saving comes from calls that lack the newest message." in printed


def test_models_without_some_of_the_placements(run: Run) -> None:
    """The bill of each model has a column for each placement that it knows: `hindsight` is of few providers."""
    placements = ("--placement", "tail", "--placement", "hindsight")
    shown = ctxbench("bill", run.folder, "-m", "claude-sonnet-5", "-m", "gpt-4o", *placements, cwd=run.folder).stdout
    assert re.search(r"claude-sonnet-5, by where .*\n.* hindsight\n", shown)
    assert re.search(r"gpt-4o, by where .*\n.* tail\n", shown)


def test_a_range_is_printed_where_it_is_wide(run: Run) -> None:
    """By half of the calls a cost is from–to; where all but one in a thousand find the cache, it is one figure."""
    for reuse, cost in (("0.5", r"\$[\d.]+–\$[\d.]+ "), ("0.999", r"\$[\d.]+ ")):
        shown = ctxbench("bill", run.folder, "-m", "gpt-4o", "--reuse", reuse, cwd=run.folder).stdout
        assert re.search(rf"none +{cost}", shown)


def test_images_are_billed_by_each_models_own_rule(tmp_path: Path) -> None:
    """An image of 1,000 by 1,000 adds 1,296 tokens to both prompts of Claude and 765 to GPT-4o's; a file adds none."""
    shown = replace(SAID[1], media=(Media("image", 1000, 1000), Media("file")))
    models = ("claude-sonnet-4-5", "gpt-4o")
    texts = bill(conversation(tmp_path / "texts", *SAID), [Scheme(model) for model in models])
    run = conversation(tmp_path / "media", SAID[0], shown, *SAID[2:])
    schemes = [Scheme(model) for model in models]
    billed = bill(run, schemes)
    more = [billed.calls(scheme).tokens - texts.calls(scheme).tokens for scheme in schemes]
    assert [column.tolist() for column in more] == [[1296, 1296], [765, 765]]
    assert run.manifest.notes == (
        "1 image, 1 file: not counted in tokens; `ctxbench bill` adds them by each provider's rule",
    )
    assert texts.requests.run.manifest.notes == ()
    notes = assumptions(billed, schemes)
    rule = "developers.openai.com/api/docs/guides/images-vision (2026-06)"
    billed_by = "1 image billed by its rule; 1 file not billed, no published rule"
    assert f"gpt-4o, of 1 image, 1 file: {billed_by} ({rule})." in notes
    # The factor of texts leaves what the provider counts for an image as it is.
    scaled = billed_as(run, schemes[:1], factor=1.5).calls(schemes[0]).tokens
    plain = billed_as(texts.requests.run, schemes[:1], factor=1.5).calls(schemes[0]).tokens
    assert (scaled - plain - 1296).abs().max() <= 1


TURNS = tuple(Message(f"{role[0]}{at}", role, f"{role} {at}") for at in range(3) for role in ("user", "assistant"))
NOTE = Message("n", "user", "a note")

SOURCE = """
from dataclasses import dataclass
from ctxbench.scenarios.model import Message, Tool
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context

NOTE, OTHER = Message("n", "user", "a note"), Message("n", "user", "another note")

@dataclass(frozen=True)
class Sends:
    what: str = ""

    def start(self, services):
        def view(context):
            said = tuple(context.messages)
            first = len(said) == 1
            sent = {
                "dropped": said if first else said[1:],
                "inserted": said if first else (NOTE, *said),
                "replaced": said if first else (NOTE, *said[1:]),
                "rewritten": (NOTE if first else OTHER, *said),
                "taken back": (NOTE, *said) if first else said,
            }.get(self.what, said)
            tools = (Tool("load", "loads", "{}"),) if self.what == "tools" and not first else ()
            return Context(Messages.of(sent), (), tools)

        return view
"""


@pytest.mark.parametrize("cause", ["dropped", "inserted", "replaced", "rewritten", "taken back", "tools"])
def test_causes(cause: str, tmp_path: Path) -> None:
    """The second call does one thing to the first message; all of the first prompt is lost."""
    (tmp_path / "sends.py").write_text(SOURCE)
    (tmp_path / "t.jsonl").write_bytes(Conversation("t", TURNS[:4]).to_json() + b"\n")
    strategy = f"{tmp_path / 'sends.py'}:Sends(what={cause!r})"
    execute(plan(tmp_path / "t.jsonl", strategies=(strategy,)), tmp_path / "run")
    found = breaks(RunRequests(load(tmp_path / "run")))
    sent = [NOTE, TURNS[0]] if cause in ("rewritten", "taken back") else [TURNS[0]]
    lost = sum(map(TokenCounter().message, sent))
    assert found[["step", "kept", "lost", "before", "cause"]].to_numpy().tolist() == [[1, 0, lost, lost, cause]]


def test_what_was_reported_with_it(tmp_path: Path) -> None:
    """The strategy's own events of that step stand beside what happened; a history that grows breaks nothing."""
    said = [Message("s", "system", "Be kind.")]
    for turn in range(12):
        said += [Message(f"u{turn}", "user", f"word {turn} " * 50), Message(f"a{turn}", "assistant", "yes " * 50)]
    (tmp_path / "t.jsonl").write_bytes(Conversation("t", tuple(said)).to_json() + b"\n")
    execute(plan(tmp_path / "t.jsonl", strategies=("none", "summary(threshold=8)")), tmp_path / "run")
    found = breaks(RunRequests(load(tmp_path / "run")))
    assert set(found.strategy) == {"summary(threshold=8)"}
    assert set(found.cause) == {"replaced", "rewritten"}
    assert set(found.actions) == {"called, summarised"}
    assert (found.kept == 1).all()
