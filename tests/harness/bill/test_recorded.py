"""Recorded models of a run: who is billed, context windows, token factors, and recorded costs beside the bill."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ctxbench.harness.bill import MODELS, OWN_MODELS
from ctxbench.harness.bill.bill import bill, conversation_bills
from ctxbench.harness.bill.requests import TokenFactors, billed_models, hidden_prefixes, token_factors
from ctxbench.harness.bill.simulation import Scheme
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load, recorded_models
from ctxbench.metrics.prices import BUNDLED
from ctxbench.metrics.tokens import TokenCounter, token_factor
from ctxbench.reports.results import Results
from ctxbench.reports.verdict import guess, verdict
from ctxbench.scenarios.model import Call, Conversation, Message, Usage
from tests.harness.command import ctxbench
from tests.harness.runs import plan

CLAUDE, GPT = "claude-opus-4-5", "gpt-4o"


def message(name: str, role: str, words: int, call: Call | None = None) -> Message:
    return Message(name, role, "word " * words, call=call)  # type: ignore[arg-type]


def call(model: str, input: int | None, output: int = 0, cost: float | None = None, stop: str = "") -> Call:
    usage = None if input is None else Usage(input, output, cost=cost)
    return Call(model, usage=usage, stop=stop)


def talk(name: str, model: str, usage: list[tuple[int, int, float]]) -> Conversation:
    """A conversation whose questions have 100 words and whose answers have 50."""
    said = []
    for number, (prompt, answer, cost) in enumerate(usage):
        said.append(message(f"{name}{number}u", "user", 100))
        said.append(message(f"{name}{number}a", "assistant", 50, call(model, prompt, answer, cost)))
    return Conversation(name, tuple(said))


def run_of(folder: Path, *conversations: Conversation, strategies: tuple[str, ...] = ("none", "last_turn")) -> Run:
    (folder / "r.jsonl").write_bytes(b"".join(one.to_json() + b"\n" for one in conversations))
    execute(plan(folder / "r.jsonl", strategies=strategies), folder / "run")
    return load(folder / "run")


def counted(words: int) -> int:
    return TokenCounter().message(Message("", "user", "word " * words))


def test_token_factors_by_hand(tmp_path: Path) -> None:
    """Prompts grew by 450 recorded tokens while ours grew by a question and an answer; a shrunk prompt is left out."""
    usage = [(1000, 60, 0.0), (1450, 90, 0.0), (700, 90, 0.0)]
    factors = token_factors(run_of(tmp_path, talk("t", CLAUDE, usage)), CLAUDE)
    assert factors.prompt == pytest.approx(450 / (counted(100) + counted(50)))
    assert factors.answer == pytest.approx(240 / (3 * counted(50)))


def test_a_model_that_was_not_recorded_has_the_factor_of_its_family(tmp_path: Path) -> None:
    """By name, under any host; exactly 1 for OpenAI's own encoding, and where nobody measured it or ours is another."""
    run = run_of(tmp_path, talk("t", CLAUDE, [(1000, 60, 0.0)]))
    for model, factor in (("anthropic/claude-opus-4.5", 1.28), (GPT, 1.0), ("mistral-large", 1.0)):
        assert token_factors(run, model).prompt == factor
    # One call grows by nothing: the factor of prompts is the family's, that of answers is recorded.
    family = token_factor(CLAUDE)
    assert family is not None
    assert token_factors(run, CLAUDE).prompt == family.factor
    assert token_factors(run, CLAUDE).answer == pytest.approx(60 / counted(50))
    execute(plan(tmp_path / "r.jsonl", strategies=("none",), encoding="cl100k_base"), tmp_path / "other")
    assert token_factors(load(tmp_path / "other"), "claude-opus-4-6") == TokenFactors()


def test_the_bill_is_in_the_provider_s_tokens(tmp_path: Path) -> None:
    """Every part of a prompt is multiplied by the recorded factor and the parts add up; another model has none."""
    run = run_of(tmp_path, talk("t", CLAUDE, [(1000, 100, 0.0), (1400, 100, 0.0), (1800, 100, 0.0)]))
    factors = token_factors(run, CLAUDE)
    billed = bill(run, [Scheme(CLAUDE), Scheme(GPT)])
    ours, theirs = billed.calls(Scheme(GPT)), billed.calls(Scheme(CLAUDE))
    assert factors.prompt > 2
    assert theirs.tokens.tolist() == pytest.approx((ours.tokens * factors.prompt).tolist(), abs=1)
    assert theirs.tokens.tolist() == (theirs.read + theirs.written + theirs.written_1h + theirs.fresh).tolist()
    assert theirs.output.tolist() == pytest.approx((ours.output * factors.answer).tolist(), abs=1)
    price = BUNDLED.tariff(CLAUDE)
    assert price is not None
    assert theirs.cost_output.tolist() == pytest.approx((theirs.output * price.at(1).output).tolist())


def test_recorded_cost_beside_the_bill(tmp_path: Path) -> None:
    """The calls that say what they cost are billed under `none`, and both sums stand side by side."""
    run = run_of(tmp_path, talk("t", CLAUDE, [(1000, 50, 0.25), (1400, 50, 0.5)]))
    billed = bill(run, [Scheme(CLAUDE), Scheme(GPT)])
    cost = billed.against_recorded(Scheme(CLAUDE))
    calls = billed.calls(Scheme(CLAUDE))
    assert cost == (2, 0.75, pytest.approx(calls[calls.strategy == "none"].cost.sum()))
    assert billed.against_recorded(Scheme(GPT)) is None
    printed = ctxbench("bill", run.folder, cwd=tmp_path).stdout
    assert "2 calls that say what claude-opus-4-5 cost took $0.7500 as recorded" in " ".join(printed.split())


def test_the_recorded_model_is_billed_first(tmp_path: Path) -> None:
    """It comes before the usual ones, if it has a price and none is named."""
    run = run_of(tmp_path, talk("b", CLAUDE, [(500, 9, 0.0), (900, 9, 0.0)]))
    assert billed_models(run) == (CLAUDE, *MODELS[:2])
    assert billed_models(run, ("gpt-5.6",)) == ("gpt-5.6",)
    (tmp_path / "other").mkdir()
    assert billed_models(run_of(tmp_path / "other", talk("a", "nobody/knows-it", [(500, 9, 0.0)]))) == MODELS


def test_conversations_of_several_models_are_billed_each_under_its_own(tmp_path: Path) -> None:
    """Each has the bill that its model alone would give it; one without a priced model has that of most calls."""
    talks = {"a": GPT, "b": CLAUDE, "c": "nobody/knows-it"}
    run = run_of(tmp_path, *(talk(name, model, [(500, 9, 0.0), (900, 9, 0.0)]) for name, model in talks.items()))
    assert recorded_models(run) == {GPT: 2, CLAUDE: 2, "nobody/knows-it": 2}
    assert billed_models(run) == (OWN_MODELS, GPT, MODELS[0])
    alone = conversation_bills(run, [Scheme(OWN_MODELS)])  # each model in its own conversations, and kept so
    bills = conversation_bills(run, [Scheme(model) for model in (OWN_MODELS, GPT, CLAUDE)])
    assert alone.equals(bills[bills.model == OWN_MODELS])
    costs = bills.astype({"conversation": str}).groupby(["conversation", "model"]).cost.sum().unstack()
    assert dict(costs[OWN_MODELS]) == {"a": costs[GPT]["a"], "b": costs[CLAUDE]["b"], "c": costs[GPT]["c"]}
    assert costs[GPT]["b"] != costs[CLAUDE]["b"]
    screen = " ".join(ctxbench("report", run.folder, "--print-only", cwd=tmp_path).stdout.split())
    named = "recorded with gpt-4o (33.3 %), claude-opus-4-5 (33.3 %), nobody/knows-it (33.3 %)"
    assert f"{named}; each conversation is billed under its own model" in screen
    assert "33.3 % of the calls billed under gpt-4o, a guess: no price of nobody/knows-it is known" in screen


PLAIN = {
    "gpt-4o": {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]},
    "claude-opus-4-5": {
        "system": "Help.",
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}],
    },
    "models/gemini-2.5-pro": {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Ho"}]}]
    },
    "gpt-5.6": {
        "instructions": "Help.",
        "input": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}],
    },
}


@pytest.mark.parametrize("model", PLAIN)
def test_a_plain_request_is_billed_under_the_model_that_it_names(model: str, tmp_path: Path) -> None:
    """Of OpenAI's chats, Anthropic's, Gemini's and OpenAI's Responses."""
    (tmp_path / "request.json").write_text(json.dumps({"model": model, **PLAIN[model]}))
    execute(plan(tmp_path / "request.json", strategies=("none", "last_turn")), tmp_path / "run")
    run, name = load(tmp_path / "run"), model.removeprefix("models/")
    assert recorded_models(run) == {name: 1}
    assert billed_models(run)[0] == name


def test_a_model_that_nobody_named_is_a_guess(tmp_path: Path) -> None:
    """The verdict says so."""
    (tmp_path / "request.json").write_text(json.dumps(PLAIN["gpt-4o"]))
    execute(plan(tmp_path / "request.json", strategies=("none", "last_turn")), tmp_path / "run")
    found = Results(load(tmp_path / "run"), MODELS)
    assert guess(verdict(found)) == "billed under claude-sonnet-5, a guess: no recording names its model"
    assert guess(verdict(replace(found, named=found.models))) == ""


def test_a_prefix_that_is_not_recorded_stands_in_front_of_every_prompt(tmp_path: Path) -> None:
    """Without system prompt and tools, the first usage says what is hidden. It is in every prompt, and is cached."""
    hidden, usage = 5_000, list[tuple[int, int, float]]()
    whole = counted(100)
    for _ in range(3):  # GPT counts as we do: the prompts grow by what is recorded, from 5,000 tokens more
        usage.append((hidden + whole, 50, 0.0))
        whole += counted(50) + counted(100)
    recorded = run_of(tmp_path, talk("t", GPT, usage))
    assert hidden_prefixes(recorded) == {"t": hidden}
    calls = bill(recorded, [Scheme(GPT)]).calls(Scheme(GPT))
    whole_history, last_turn = (calls[calls.strategy == name] for name in ("none", "last_turn"))
    sent = recorded.table("steps")
    assert (calls.tokens - sent.tokens_sent).tolist() == [hidden] * len(calls)
    assert last_turn.read.iloc[1:].min() > 4_000  # of a prompt that shares nothing else with the one before
    assert whole_history.read.iloc[-1] > 4_000
    printed = " ".join(ctxbench("bill", recorded.folder, cwd=tmp_path).stdout.split())
    assert "Estimated hidden prefix: 5,000 tokens on average in 1 conversation without" in printed


def test_hidden_prefixes_of_the_samples(recordings: Path, tmp_path: Path) -> None:
    """Claude Code records neither prompt nor tools; with the prefix, the first request has its recorded size."""
    execute(plan(recordings / "claude-code" / "sonnet-4-5_small.jsonl", strategies=("none",)), tmp_path / "run")
    recorded = load(tmp_path / "run")
    [hidden] = hidden_prefixes(recorded).values()
    model = "claude-sonnet-4-5-20250929"
    first = bill(recorded, [Scheme(model)]).calls(Scheme(model)).iloc[0]
    assert hidden > 10_000
    assert first.tokens == pytest.approx(recorded.table("messages").usage_input.dropna().iloc[0], abs=5)
