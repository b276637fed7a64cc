"""The user's prices in TOML: what they change, what they leave, and every way to get them wrong."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.metrics.prices import BUNDLED, Price, Prices, Tariff, TokenUsage, read_prices
from ctxbench.scenarios.errors import SetupError

PAGE = Path(__file__).parents[2] / "docs" / "prices.md"


Made = Callable[..., Prices]


@pytest.fixture
def prices(tmp_path: Path) -> Made:
    """Return a function from a text to the prices, or batch prices, under a file with that text."""

    def made(text: str, batch: bool = False) -> Prices:
        (tmp_path / "mine.toml").write_text(text)
        return Prices(tmp_path / "mine.toml", batch)

    return made


def tariff(prices: Prices, model: str) -> Tariff:
    found = prices.tariff(model)
    assert found is not None
    return found


def dollars(prices: Prices, model: str, tokens: int = 1) -> list[float]:
    """For a million tokens: input, output, read, write, write for an hour."""
    return [round(each * 1e6, 9) for each in tariff(prices, model).at(tokens)[:5]]


def test_what_is_given_replaces_what_is_listed(prices: Made) -> None:
    """One price of a listed model is changed; the others, its window and other models stay."""
    found = prices('[models."gpt-4o"]\noutput = 12\n')
    assert dollars(found, "gpt-4o") == [2.5, 12, 1.25, 2.5, 2.5]
    assert dollars(found, "openai/gpt-4o") == [2.5, 12, 1.25, 2.5, 2.5]
    assert tariff(found, "gpt-4o").window == 128_000
    assert found.tariff("gpt-4.1") == BUNDLED.tariff("gpt-4.1")
    assert BUNDLED.source + ", 1 override from mine.toml" == found.source


def test_a_model_that_is_not_listed(prices: Made) -> None:
    """Input and output are a price; what is not given follows from the same rules."""
    found = prices(
        "[models.mine]\ninput = 1\noutput = 2\n"
        "[models.claude-9]\ninput = 1\noutput = 2\ncache_read = 0.1\ncache_write_5m = 1.25\n"
    )
    assert dollars(found, "mine") == [1, 2, 1, 1, 1]
    assert dollars(found, "claude-9") == [1, 2, 0.1, 1.25, 2]
    assert tariff(found, "mine").window is None
    assert found.cost("mine", TokenUsage(10**6, 10**6)) == pytest.approx(3)
    assert "did you mean 'claude-9'" in found.unknown("claude9")


def test_like(prices: Made) -> None:
    """A model may have the prices of another, listed or further up in the file, with changes."""
    found = prices(
        '[models.one]\nlike = "claude-sonnet-5"\noutput = 16\n[models.two]\nlike = "one"\ncache_read = 0.1\n'
        '[models."claude-sonnet-5"]\ninput = 9\n[models.three]\nlike = "gpt-5.6"\n'
    )
    assert dollars(found, "one") == [2, 16, 0.2, 2.5, 4]
    assert dollars(found, "two") == [2, 16, 0.1, 2.5, 4]
    assert found.tariff("three") == BUNDLED.tariff("gpt-5.6")


def test_tiers(prices: Made) -> None:
    """Tiers are given as a whole; what one does not price is as in the tier below; an empty list takes them away."""
    name = "gemini/gemini-2.5-pro"
    found = prices(
        f'[models."{name}"]\ninput = 1\n[[models."{name}".tiers]]\nabove = 100_000\ninput = 2\n'
        f'[[models."{name}".tiers]]\nabove = 500_000\ncache_read = 0.7\n'
    )
    assert dollars(found, name, 100_000) == [1, 10, 0.125, 1, 1]
    assert dollars(found, name, 100_001) == [2, 10, 0.125, 2, 2]
    assert dollars(found, name, 500_001) == [2, 10, 0.7, 2, 2]
    assert len(tariff(prices(f'[models."{name}"]\ninput = 1\ntiers = []\n'), name).tiers) == 1


def test_batches(prices: Made) -> None:
    """Batch prices are apart: what the file does not say of them is as listed, or not known."""
    text = (
        "[models.deepseek-flash]\nbatch = {input = 0.1, output = 0.5}\n"
        '[models."gpt-5.6"]\nlike = "gpt-5.6"\ninput = 3\ntiers = []\n[models.mine]\ninput = 1\noutput = 1\n'
    )
    found = prices(text, batch=True)
    assert dollars(found, "deepseek-flash") == [0.1, 0.5, 0.006, 0.1, 0.1]
    assert dollars(found, "gpt-5.6")[:2] == [2, 10]
    assert found.tariff("mine") is None
    assert found.source.endswith(", batch prices, 3 overrides from mine.toml")


def test_storage(prices: Made) -> None:
    """The price of storage holds at all times, in every tier; alone it changes nothing else."""
    found = prices('[models."gemini/gemini-3.1-pro-preview"]\nstorage_per_hour = 5\n')
    stored = tariff(found, "gemini/gemini-3.1-pro-preview")
    assert stored.at(1).storage == stored.at(300_000, 1.9e9).storage == pytest.approx(5e-6)
    assert dollars(found, "gemini/gemini-3.1-pro-preview", 300_000)[0] == 4


def test_a_price_that_is_given_replaces_the_rest(prices: Made) -> None:
    """Listed off-peak prices go with the listed prices; a model on the user's own machine is free until then."""
    found = prices("[models.deepseek-flash]\ninput = 0.2\n")
    assert tariff(found, "deepseek-flash").at(1, 0.0).input == pytest.approx(0.2e-6)
    assert dollars(prices('[models."ollama/x"]\ninput = 0.01\noutput = 0\n'), "ollama/x") == [0.01, 0, 0.01, 0.01, 0.01]
    assert tariff(prices("[models.mine]\ninput = 0\noutput = 0\n"), "mine").at(1) == Price(0, 0, 0, 0, 0)


def test_the_page(prices: Made) -> None:
    """The example in the documentation is read, and says what the page says."""
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found = prices(example)
    assert dollars(found, "claude-haiku-6") == pytest.approx([1, 5, 0.1, 1.25, 2])
    assert dollars(found, "deepseek-v4-pro") == [0.66, 1.98, 0.022, 0.66, 0.66]
    assert dollars(found, "company/assistant", 200_001) == [4, 15, 0.4, 5, 5]
    assert dollars(prices(example, batch=True), "company/assistant") == [1, 5, 0.1, 2.5, 2.5]


WRONG = {
    "x": ":1: not TOML: expected '=' after a key in a key/value pair",
    "[models.a]\ninput = 1\noutput = 2\n[models.a]": ":4: not TOML: cannot declare ('models', 'a') twice",
    "": ": models: no model is priced (begin with [models.",
    "models = 3": ":1: models: no model is priced",
    'currency = "EUR"': ':1: currency: unknown key (a table is [models."NAME"], in US dollars)',
    "[models.gpt-4o]": ":1: models.gpt-4o: prices nothing (give input and output, or like",
    "[models.gpt4o]\ninput = 1": ":1: models.gpt4o: no price is listed for this model; did you mean 'gpt-4o'",
    '[models.gpt-4o]\nlike = "gpt4.1"': ":2: models.gpt-4o.like: the price of gpt4.1 is not known; did you mean",
    '[models.a]\nlike = "b"\n[models.b]\ninput = 1\noutput = 1': ":2: models.a.like: the price of b is not known",
    '[models.gpt-4o]\n# US\ninput = "2.50"': ":3: models.gpt-4o.input: must be a number, not text in quotes",
    "[models.gpt-4o]\ninput = nan": ":2: models.gpt-4o.input: nan is no price",
    "[models.gpt-4o]\nstorage_per_hour = -1": ":2: models.gpt-4o.storage_per_hour: -1 is no price",
    "[models.gpt-4o]\ninput = 2.5e-6": ":2: models.gpt-4o.input: 2.5e-06 is too little for a million tokens (write 2.5",
    "[models.gpt-4o]\ncache_reed = 1": ":2: models.gpt-4o.cache_reed: unknown key; did you mean 'cache_read'",
    "[models]\ngpt-4o = 3": ":2: models.gpt-4o: must be a table, not a whole number",
    "[[models.gpt-4o.tiers]]\ninput = 1": ":1: models.gpt-4o.tiers[0]: above is missing",
    "[[models.gpt-4o.tiers]]\nabove = 200\ninput = 1": ":2: models.gpt-4o.tiers[0].above: 200 is not more than 999",
    "[[models.gpt-4o.tiers]]\nabove = 9000\ninput = 1\n[[models.gpt-4o.tiers]]\nabove = 9000\ninput = 1": (
        ":5: models.gpt-4o.tiers[1].above: 9000 is not more than 9000"
    ),
    "[[models.gpt-4o.tiers]]\nabove = 9000": ":1: models.gpt-4o.tiers[0]: prices nothing (give input, output,",
    '[models.""]\ninput = 1\noutput = 1': ':1: models."": a model has a name',
    '[models."gpt-5.6"]\ninput = 1': ':1: models."gpt-5.6": prompts of more than 272000 tokens have prices of their',
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named_with_its_line(text: str, tmp_path: Path) -> None:
    """Every mistake is one error with file, line, key and what to do."""
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(SetupError) as caught:
        read_prices(path)
    assert str(caught.value).startswith(f"{path}{WRONG[text]}")
    assert "\n" not in str(caught.value)


def test_as_windows_writes_it(tmp_path: Path) -> None:
    """A byte order mark and CRLF are no mistakes, and lines are counted right."""
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf[models.a]\r\ninput = 1\r\noutput = 2\r\n")
    assert dollars(Prices(path), "a")[:2] == [1, 2]
    path.write_bytes(b"\xef\xbb\xbf[models.a]\r\ninput = 1\r\noutput = -2\r\n")
    with pytest.raises(SetupError, match=r"mine\.toml:3: models\.a\.output"):
        read_prices(path)
