"""Prices: against price pages, by hand, and laws over all that are listed."""

from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.models import model_names, window_of
from ctxbench.metrics.prices import BUNDLED, Price, Prices, Tariff, TokenUsage
from ctxbench.scenarios.model import Call, Usage

BATCH = Prices(batch=True)
PRICED = {name: tariff for name in model_names() if (tariff := BUNDLED.tariff(name)) is not None}


def tariff(model: str, prices: Prices = BUNDLED) -> Tariff:
    found = prices.tariff(model)
    assert found is not None
    return found


def at(day: str, time: str) -> float:
    return datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=UTC).timestamp()


class Golden(NamedTuple):
    """As the providers' price pages had it in November 2026, noted apart: US dollars for a million."""

    model: str
    tokens: int
    input: float
    read: float
    write: float | None
    write_1h: float | None
    output: float


GOLDEN = (
    Golden("claude-opus-5", 1000, 5, 0.50, 6.25, 10, 25),
    Golden("claude-sonnet-5", 1000, 2, 0.20, 2.50, 4, 10),
    Golden("claude-haiku-4-5", 1000, 1, 0.10, 1.25, 2, 5),
    Golden("gpt-5.6", 272_000, 4, 0.40, 5, None, 20),
    Golden("gpt-5.6", 272_001, 8, 0.80, 10, None, 30),
    Golden("gpt-5.4", 272_000, 2.5, 0.25, None, None, 15),
    Golden("gpt-5.4", 272_001, 5, 0.50, None, None, 22.5),
    Golden("gpt-4.1", 1000, 2, 0.50, None, None, 8),
    Golden("gpt-4o", 1000, 2.5, 1.25, None, None, 10),
    Golden("deepseek-flash", 1000, 0.30, 0.006, None, None, 1.20),
    Golden("deepseek-v4-pro", 1000, 1.32, 0.044, None, None, 3.96),
    Golden("gemini/gemini-2.5-pro", 200_000, 1.25, 0.125, None, None, 10),
    Golden("gemini/gemini-2.5-pro", 200_001, 2.5, 0.25, None, None, 15),
    Golden("gemini-2.5-pro", 200_001, 2.5, 0.25, None, None, 15),
    Golden("gemini/gemini-3.8-flash", 1000, 0.75, 0.075, None, None, 3.75),
    Golden("vertex_ai/claude-sonnet-4-5", 200_001, 6, 0.60, 7.50, 12, 22.5),
)


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row.model} at {row.tokens}")
def test_price_pages(row: Golden) -> None:
    """Every number of a price page; what is not sold apart (a write, a write for an hour) costs as plain input."""
    price = tariff(row.model).at(row.tokens)
    write = row.input if row.write is None else row.write
    hour = write if row.write_1h is None else row.write_1h
    wanted = (row.input, row.output, row.read, write, hour)
    assert price[:5] == pytest.approx([each / 1e6 for each in wanted])


def test_prices_of_the_past() -> None:
    """Reading from Sonnet 5.5's cache cost a tenth of the input until 2026-10-07; a bill charges today's twentieth."""
    found = tariff("anthropic/claude-sonnet-5-5")
    days = [at("2026-10-06", "23:59:59"), at("2026-10-07", "00:00:00")]
    assert [found.then(1, day).read for day in days] == pytest.approx([2e-7, 1e-7])
    assert [found.at(1, day).read for day in days] == pytest.approx([1e-7, 1e-7])
    assert found.then(1, None).read == pytest.approx(1e-7)
    luna = tariff("gpt-5.6-luna")  # by 80 % cheaper since 2026-07-30, long prompts too
    assert luna.then(300_000, at("2026-07-29", "12:00:00"))[:2] == pytest.approx([2e-6, 9e-6])
    assert luna.then(300_000, at("2026-07-30", "12:00:00"))[:2] == pytest.approx([0.4e-6, 1.8e-6])


def test_prices_that_are_announced_do_not_count_yet() -> None:
    """Gemini 3.8 Flash doubles in 2027: today's price, whatever the clock of this machine says."""
    found = tariff("gemini/gemini-3.8-flash")
    assert found.at(1).input == pytest.approx(0.75e-6)
    assert found.then(1, at("2027-01-02", "00:00:00")).input == pytest.approx(1.5e-6)


def test_a_tier_charges_the_whole_request() -> None:
    """Haiku 5.5 over 100,000 tokens: every part of the request at five times the price, its output too."""
    found = tariff("claude-haiku-5-5")
    usage = TokenUsage(100_001, 10, cached=50_000, written=40_000)
    dear, usual = found.at(100_001).of(usage), found.at(100_000).of(usage)
    assert dear == pytest.approx(5 * usual)


def test_a_call_by_hand() -> None:
    """gpt-4o-mini: $0.15 a million in, half of that cached, $0.60 out; so 800 in, 200 cached, 50 out are $0.000165."""
    usage = TokenUsage(1000, 50, cached=200)
    assert tariff("gpt-4o-mini").at(1000).of(usage) == pytest.approx(0.000165)
    assert BUNDLED.cost("openai/gpt-4o-mini", usage) == pytest.approx(0.000165)


def test_written_for_five_minutes_and_an_hour() -> None:
    """Of 1 000 tokens written, 400 for an hour: 600 × 1.25 and 400 × 2 of the plain price."""
    price = tariff("claude-sonnet-4-5").at(1000)
    assert price.of(TokenUsage(1000, 0, written=1000, written_1h=400)) == pytest.approx((600 * 1.25 + 400 * 2) * 3e-6)


def test_writes_that_are_not_sold_cost_as_input() -> None:
    """Nothing is listed of DeepSeek's and Gemini's writes; openrouter lists what Google asks for storage as a write."""
    price = tariff("deepseek-flash").at(1000)
    assert price.of(TokenUsage(1000, 0, written=1000)) == price.of(TokenUsage(1000, 0))
    assert tariff("gemini-2.5-pro").at(300_000).write == pytest.approx(2.5e-6)


@given(
    st.lists(st.integers(1, 10**6), max_size=4, unique=True).map(lambda sizes: [0, *sorted(sizes)]),
    st.integers(0, 1_100_000),
)
def test_the_tier_is_the_last_that_is_exceeded(sizes: list[int], tokens: int) -> None:
    """Law: `at` is the price of the greatest size below the prompt's, of the first for an empty prompt."""
    tiers = tuple((size, Price(size, 0, 0, 0, 0)) for size in sizes)
    wanted = max((size for size in sizes if size < tokens), default=0)
    assert Tariff(tiers, None).at(tokens).input == wanted


def test_what_is_priced() -> None:
    """Law over all models: plain input costs something but at OpenRouter's free hosts, and a write never less."""
    assert len(PRICED) > 2000
    for name, found in PRICED.items():
        for _, price in found.tiers:
            assert min(price[:5]) >= 0, name
            assert price.write >= price.input >= 0, name
            assert (price.input == 0) == name.endswith(":free"), name


def test_batches() -> None:
    """Listed batch prices count; what is not listed costs as ever: OpenAI and Google publish no reads in batches."""
    opus = tariff("claude-opus-5", BATCH).at(1)
    assert opus[:5] == pytest.approx((2.5e-6, 12.5e-6, 0.25e-6, 3.125e-6, 5e-6))
    assert tariff("gpt-5.6", BATCH).at(300_000)[:4] == pytest.approx((4e-6, 15e-6, 0.4e-6, 5e-6))
    four = tariff("gpt-4o", BATCH).at(1)
    assert (four.input, four.output, four.read) == pytest.approx((1.25e-6, 5e-6, 1.25e-6))
    long = tariff("gemini/gemini-2.5-pro", BATCH).at(200_001)
    assert long[:3] == pytest.approx((1.25e-6, 7.5e-6, 0.25e-6))


@pytest.mark.parametrize("model", ["deepseek-flash", "claude-opus-4-1", "deepseek/deepseek-chat"])
def test_no_batch_price(model: str) -> None:
    """A model of which no batch price is known has none; the full price is not taken instead."""
    assert BUNDLED.tariff(model) is not None
    assert BATCH.tariff(model) is None
    assert BATCH.unknown(model).startswith(f"the batch price of {model} is not known: give it in a file of prices")


@pytest.mark.parametrize(
    ("day", "time", "off_peak"),
    [
        ("2026-11-20", "00:59:59", True),  # a Friday
        ("2026-11-20", "01:00:00", False),
        ("2026-11-20", "03:59:59", False),
        ("2026-11-20", "04:00:00", True),
        ("2026-11-20", "06:00:00", False),
        ("2026-11-20", "10:00:00", True),
        ("2026-11-20", "23:59:59", True),
        ("2026-11-21", "02:00:00", True),
        ("2026-11-22", "08:00:00", True),
        ("2026-11-23", "08:00:00", False),
    ],
)
def test_off_peak_hours(day: str, time: str, off_peak: bool) -> None:
    """DeepSeek's peak is from 1 to 4 and 6 to 10 UTC from Monday to Friday; at other hours all is half the price."""
    found = tariff("deepseek-v4-pro")
    price = found.at(1000, at(day, time))
    wanted = (0.66, 1.98, 0.022) if off_peak else (1.32, 3.96, 0.044)
    assert price[:3] == pytest.approx([each / 1e6 for each in wanted])
    assert price.write == price.input
    assert found.at(1000).input == pytest.approx(1.32e-6)
    assert found.then(1000, at(day, time)) == price
    assert found.then(1000, at("2026-08-14", "02:00:00")).input == pytest.approx(0.435e-6)  # before there were peaks


def test_storage() -> None:
    """What Gemini asks for cached content by the hour is dated and doubles in 2027; of others nothing is known."""
    found = tariff("gemini/gemini-3.1-pro-preview")
    assert found.at(1000).storage == found.at(1000, at("2026-12-31", "23:59:59")).storage == pytest.approx(4.5e-6)
    assert found.at(250_000, at("2027-01-01", "00:00:00")).storage == pytest.approx(9e-6)
    assert tariff("gemini-3.8-flash", BATCH).at(1).storage == pytest.approx(0.5e-6)
    assert tariff("gemini/gemini-2.5-pro").at(1).storage is None
    assert tariff("gemini/gemini-3.8-flash-tts").at(1).storage is None
    assert tariff("claude-opus-5").at(1).storage is None


@pytest.mark.parametrize(
    ("model", "same"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("anthropic/claude-opus-5", "claude-opus-5"),
        ("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0", "us.anthropic.claude-sonnet-4-20250514-v1:0"),
        ("bedrock/converse/us.anthropic.claude-sonnet-4-20250514-v1:0", "us.anthropic.claude-sonnet-4-20250514-v1:0"),
        ("vertex_ai/gemini-3.8-flash", "gemini-3.8-flash"),
        ("litellm_proxy/claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20250929"),
        ("litellm_proxy/anthropic/claude-opus-5", "claude-opus-5"),
        ("litellm/anthropic/claude-opus-5", "claude-opus-5"),
        ("us-gov.anthropic.claude-sonnet-4-20250514-v1:0", "us.anthropic.claude-sonnet-4-20250514-v1:0"),
        ("arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0", "amazon.nova-pro-v1:0"),
        ("openrouter/anthropic/claude-opus-5", "claude-opus-5"),
        ("openrouter/google/gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("litellm_proxy/claude-3-5-sonnet-20241022", "bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0"),
    ],
)
def test_other_names(model: str, same: str) -> None:
    """A provider before the name that sells the model, a proxy or a kind of call do not change the price."""
    token, other = ([(above, price[:6]) for above, price in tariff(name).tiers] for name in (model, same))
    assert token == other


@pytest.mark.parametrize(
    "model",
    [
        *("openai/nobody", "nobody", "", "/", "o/gpt-4o", "/gpt-4o", "groq/gpt-4o", "openrouter/gpt-4o"),
        *("openrouter/openai/claude-opus-5", "custom_openai/gpt-4o", "azure/eu/gpt-4o-mini", "zai/glm-4.7-flash"),
        *("gemini/gemini-exp-1206", "ollama/gpt-oss:120b-cloud"),
    ],
)
def test_prices_that_are_not_known(model: str) -> None:
    """What is not listed, has another provider, or has no price is missing, not free."""
    assert BUNDLED.tariff(model) is None
    assert BUNDLED.cost(model, TokenUsage(1000, 10)) is None


@pytest.mark.parametrize("model", ["ollama/x", "hosted_vllm/x", "local:x@1", "lm_studio/x"])
@pytest.mark.parametrize("prices", [BUNDLED, BATCH])
def test_own_machines_are_free(model: str, prices: Prices) -> None:
    """A model on the user's own machine costs nothing."""
    assert tariff(model, prices).at(10**6) == Price(0, 0, 0, 0, 0)


def test_what_is_said_of_a_model_without_a_price() -> None:
    """The nearest names, and how to give a price."""
    give = "in a file of prices (CTXBENCH_PRICES): "
    give += "[models.\"{}\"] with input and output, or with like = 'another model'"
    assert BUNDLED.unknown("gpt5.6").startswith("the price of gpt5.6 is not known; did you mean 'gpt-5.6")
    assert BUNDLED.unknown("gpt5.6").endswith("? Or give it " + give.format("gpt5.6"))
    assert BUNDLED.unknown("§§§§") == "the price of §§§§ is not known: give it " + give.format("§§§§")


def test_windows() -> None:
    """A tariff says how long a prompt may be, where that is known: OpenAI's window without the reply."""
    assert tariff("gpt-5.6").window == 922_000
    assert tariff("ollama/x").window is None
    sizes = {"gpt-4o": 128_000, "openai/gpt-5": 272_000, "gpt-5.4-mini": 272_000, "gpt-6.1-sol": 922_000}
    sizes |= {"vertex_ai/gemini-2.5-pro": 1_048_576, "claude-sonnet-5": 1_000_000, "deepseek/deepseek-chat": 131_072}
    assert {model: window_of(model) for model in sizes} == sizes


@pytest.mark.parametrize(
    ("model", "tier", "times"),
    [
        ("gpt-5", "flex", 0.5),
        ("gpt-5", "priority", 2.0),
        ("gpt-5", "Default", 1.0),
        ("claude-opus-5", "standard fast", 2.0),
        ("claude-opus-5", "us", 1.1),
        ("claude-opus-5", "standard fast us", 2.2),
        ("claude-opus-4-6", "fast", 6.0),
        ("claude-opus-5", "batch", 0.5),
    ],
)
def test_service_tiers(model: str, tier: str, times: float) -> None:
    """A tier, a speed and a region change the price of every kind of token, and multiply one another."""
    usual, special = BUNDLED.tariff(model), BUNDLED.tariff(model, tier)
    assert usual
    assert special
    assert special.at(1)[:5] == pytest.approx([times * each for each in usual.at(1)[:5]])


def test_a_tier_of_the_past_is_a_share_of_that_price() -> None:
    """GPT-5.6 Sol was $5 until 2026-08-21, so flex cost half of that, though its price is listed since October."""
    flex = BUNDLED.tariff("gpt-5.6-sol", "flex")
    assert flex
    assert flex.then(1, at("2026-08-01", "12:00:00")).input == pytest.approx(2.5e-6)
    assert BUNDLED.tariff("gpt-5", "scale") is None


def test_audio_images_and_searches_cost_what_they_do() -> None:
    """Gemini 2.5 Flash: audio $1 a million, $0.10 cached, text $0.30; Claude's searches $10 a thousand."""
    heard = Usage(input=100_010, output=20, cache_read=60_000, audio_input=100_000, audio_read=60_000)
    gemini = tariff("gemini-2.5-flash").at(100_010)
    assert gemini.recorded(heard) == pytest.approx(40_000 * 1e-6 + 60_000 * 1e-7 + 10 * 3e-7 + 20 * 2.5e-6)
    searched = Usage(input=10, output=5, searches=2)
    assert tariff("claude-opus-5").at(10).recorded(searched) == pytest.approx(10 * 5e-6 + 5 * 25e-6 + 2 * 0.01)
    painted = Usage(input=100, output=0, image_input=60)
    assert tariff("gpt-image-1").at(100).recorded(painted) == pytest.approx(40 * 5e-6 + 60 * 10e-6)
    speech = Call(tier="flex", usage=Usage(input=1, audio_output=3, searches=1))
    assert speech.usage
    assert BUNDLED.special("gpt-5", speech, speech.usage) == {"flex": True, "audio": False, "searches": True}
    committed = Call(tier="priority us")  # Anthropic's priority has no price per token: the whole is billed as usual
    assert BUNDLED.special("claude-opus-5", committed, Usage(input=1)) == {"priority": False, "us": False}


@pytest.mark.parametrize(
    ("name", "input"),
    [
        ("openai/gpt-5:nitro", 1.25),
        ("openrouter/openai/gpt-5:floor", 1.25),
        ("anthropic/claude-opus-4.8-fast", 10),
        ("deepseek/deepseek-r1:free", 0),
        ("mistralai/voxtral-small-24b-2507", 0.1),
        ("mistralai/mistral-large-2411", 2),
        ("x-ai/grok-4", 3),
        ("models/gemini-2.5-flash", 0.3),
    ],
)
def test_names_of_openrouter(name: str, input: float) -> None:
    """The maker stands in front, a choice of hosts behind; what is free is not priced as its maker does."""
    assert tariff(name).at(1).input == pytest.approx(input / 1e6)
