"""Usage that is kept beside a run, and bills of a run made piece by piece."""

from functools import partial
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import grimp
import msgspec
import pandas as pd
import pytest

from ctxbench.harness.bill import OWN_MODELS, simulation
from ctxbench.harness.bill.bill import bill as billed_as
from ctxbench.harness.bill.bill import conversation_bills, store_bills
from ctxbench.harness.bill.requests import CountedRequests, RunRequests
from ctxbench.harness.bill.simulation import CODE, Scheme, Usages, simulate
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load
from ctxbench.metrics.prices import Prices
from ctxbench.scenarios.files import ROOMS, code_digest
from ctxbench.scenarios.model import Call, Conversation, Usage
from tests.harness.runs import plan, recording

bill = partial(billed_as, factor=1.0)
"""Bills in our own tokens, so that they can be worked by hand."""

SCHEMES = (Scheme("claude-sonnet-5"), Scheme("gpt-5.6"))
_ROOT = Path(simulation.__file__).parents[2]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two conversations under two strategies, never billed."""
    folder = tmp_path_factory.mktemp("kept")
    strategies = ("none", "summary(threshold=8)")
    execute(plan(recording(folder, conversations=2, turns=8, size=200), strategies=strategies), folder / "run")
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Run:
    """A copy of it."""
    return load(copytree(made, tmp_path / "run"))


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[Scheme]:
    """The schemes that were simulated, in order."""
    asked: list[Scheme] = []

    def told(cells: CountedRequests, schemes: list[Scheme], *rest: Any) -> list[Usages]:
        asked.extend(schemes)
        return simulate(cells, schemes, *rest)

    monkeypatch.setattr(simulation, "simulate", told)
    return asked


def billed(run: Run, *schemes: Scheme) -> pd.DataFrame:
    return bill(run, schemes or SCHEMES).conversations()


def test_only_what_is_missing_is_simulated(run: Run, simulated: list[Scheme]) -> None:
    """One model more costs that model alone, and the same bill again has every figure to the digit."""
    billed(run, SCHEMES[0])
    both = billed(run)
    assert simulated == list(SCHEMES)
    pd.testing.assert_frame_equal(billed(run), both, check_exact=True)
    assert simulated == list(SCHEMES)


def test_other_prices_need_no_simulation(run: Run, simulated: list[Scheme]) -> None:
    """Prices are not in what is kept: batch prices halve the bill at once."""
    full = conversation_bills(run, SCHEMES)
    half = conversation_bills(run, SCHEMES, Prices(batch=True))
    assert simulated == list(SCHEMES)
    assert half.cost.to_numpy() == pytest.approx(full.cost.to_numpy() / 2)


@pytest.mark.parametrize(("changed", "again"), [("metrics/cache/mechanisms.py", 1), ("metrics/grounding.py", 0)])
def test_only_code_that_simulates_counts(
    run: Run, simulated: list[Scheme], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, again: int
) -> None:
    """Another line in a cache has the bills made anew, and one in a metric has not."""
    for room in ROOMS:
        copytree(room, tmp_path / room.name)
    monkeypatch.setattr(simulation, "CODE", [tmp_path / path.relative_to(_ROOT) for path in CODE])
    billed(run)
    with (tmp_path / changed).open("a") as file:
        file.write("X = 1\n")
    code_digest.cache_clear()
    billed(run)
    assert simulated == [*SCHEMES] * (1 + again)


def test_all_that_simulation_imports_counts() -> None:
    """The digest covers each module that simulation imports, in functions too, but for those that only give names."""
    graph = grimp.build_graph("ctxbench", cache_dir=None, exclude_type_checking_imports=True)
    for name in ("strategies.events", "strategies.chain", "metrics.measure", "metrics.structure"):
        graph.remove_module(f"ctxbench.{name}")
    names = {path: f"ctxbench.{path.relative_to(_ROOT).with_suffix('')}".replace("/", ".") for path in CODE}
    folders = tuple(f"{name}." for path, name in names.items() if not path.suffix)
    imported = graph.find_upstream_modules("ctxbench.harness.bill.simulation")
    lacking = {module for module in imported if not f"{module}.".startswith(folders)}
    assert not lacking - {name.removesuffix(".__init__") for name in names.values()}


def test_some_conversations_are_kept_apart(run: Run, simulated: list[Scheme]) -> None:
    """A bill of one conversation neither takes the usage of all nor is taken for it."""
    whole = billed(run)
    name = str(whole.conversation.iloc[0])
    one = billed(Run(run.folder, frozenset([name])))
    assert set(one.conversation) == {name}
    pd.testing.assert_frame_equal(billed(run), whole, check_exact=True)
    assert len(simulated) == 2 * len(SCHEMES)


def run_of(folder: Path) -> Run:
    """A run of eight conversations in three shards, whose first prompts say that something stood before them."""
    path = recording(folder, conversations=8, turns=6)
    said = [msgspec.json.decode(line, type=Conversation) for line in path.read_bytes().splitlines()]
    lines = []
    for number, each in enumerate(said):
        messages = list(each.messages[1:])
        for at, tokens in ((1, 500), (3, 900 + 40 * number)):
            usage = Usage(input=tokens, output=10)
            model = "claude-sonnet-5" if number < 2 else "gpt-4o" if number < 6 else "nobody/knows-it"
            messages[at] = msgspec.structs.replace(messages[at], call=Call(model=model, usage=usage))
        lines.append(msgspec.structs.replace(each, messages=tuple(messages)).to_json())
    path.write_bytes(b"\n".join(lines))
    execute(plan(path, strategies=("none", "window(max_tokens=400)", "summary(every=2)")), folder / "run")
    return load(folder / "run")


@pytest.mark.usefixtures("small_shards")
def test_pieces_have_the_bill_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows to the last digit, though token factors, hidden prefixes and the model of recordings without a
    priced one follow from all of a run."""
    run, schemes = run_of(tmp_path), [*SCHEMES, Scheme(OWN_MODELS)]
    monkeypatch.setattr("ctxbench.harness.bill.requests.AT_ONCE", 1)
    assert len(list(RunRequests(run).pieces())) == 3
    assert RunRequests(run).hidden
    cut = conversation_bills(run, schemes)
    monkeypatch.setattr("ctxbench.harness.bill.requests.AT_ONCE", 1_000_000)
    whole = billed_as(run, schemes).conversations()
    pd.testing.assert_frame_equal(cut, whole, check_exact=True)
    assert whole.cost_own.gt(0).any()


@pytest.mark.usefixtures("small_shards")
def test_workers_store_the_bills_of_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Side by side they write the bytes that one process writes."""
    run = run_of(tmp_path)
    monkeypatch.setattr("ctxbench.harness.bill.requests.AT_ONCE", 1)
    monkeypatch.setattr("ctxbench.harness.bill.bill._LONG", 1)
    stored = list[dict[str, bytes]]()
    for jobs in (1, 2):
        store_bills(run, ("gpt-5.6",), jobs=jobs)
        stored.append({path.name: path.read_bytes() for path in (run.folder / "bills").iterdir()})
        rmtree(run.folder / "bills")
    assert len(stored[0]) == 3
    assert stored[0] == stored[1]
