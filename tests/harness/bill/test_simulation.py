"""Usage that is kept beside a run: it spares the simulation, and is never taken for what it is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import copytree

import msgspec
import pandas as pd
import pyarrow.parquet as pq
import pytest

from ctxbench.harness.bill import simulation
from ctxbench.harness.bill.bill import bill as billed_as
from ctxbench.harness.bill.requests import RunRequests
from ctxbench.harness.bill.simulation import Scheme, Usages, simulate
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder import derived
from ctxbench.harness.folder.files import file_digest
from ctxbench.harness.folder.run import Run, load
from ctxbench.harness.folder.store import write_manifest
from ctxbench.metrics.prices import Prices
from tests.harness.runs import plan, recording

bill = partial(billed_as, factor=1.0)
"""Bills in our own tokens, so that they can be worked by hand."""

SCHEMES = (Scheme("claude-sonnet-5"), Scheme("gpt-5.6"))


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

    def told(cells: RunRequests, schemes: list[Scheme], done: Callable[[], object] | None = None) -> list[Usages]:
        asked.extend(schemes)
        return simulate(cells, schemes, done)

    monkeypatch.setattr(simulation, "simulate", told)
    return asked


def files(run: Run) -> list[Path]:
    return sorted((run.folder / derived.FOLDER).iterdir())


def billed(run: Run, *schemes: Scheme) -> pd.DataFrame:
    return bill(run, schemes or SCHEMES).conversations()


def test_what_was_simulated_once_is_read(run: Run, simulated: list[Scheme]) -> None:
    """The same bill again asks no cache anything, and has every figure to the digit."""
    first = billed(run)
    assert simulated == list(SCHEMES)
    pd.testing.assert_frame_equal(billed(run), first, check_exact=True)
    assert simulated == list(SCHEMES)


def test_only_what_is_missing_is_simulated(run: Run, simulated: list[Scheme]) -> None:
    """One model more costs that model alone, and the figures are those of both at once."""
    billed(run, SCHEMES[0])
    both = billed(run)
    assert simulated == list(SCHEMES)
    for file in files(run):
        file.unlink()
    pd.testing.assert_frame_equal(billed(run), both, check_exact=True)


def test_other_prices_need_no_simulation(run: Run, simulated: list[Scheme]) -> None:
    """Prices are not in what is kept: batch prices halve the bill at once."""
    full = billed(run).set_index(["model", "conversation", "strategy"]).cost
    half = bill(run, SCHEMES, Prices(batch=True)).conversations().set_index(["model", "conversation", "strategy"]).cost
    assert simulated == list(SCHEMES)
    assert half.to_numpy() == pytest.approx(full.to_numpy() / 2)


def test_the_same_bytes_whoever_bills(run: Run, made: Path, tmp_path: Path) -> None:
    """Copies of a run, billed in another order, have the same files."""
    other = load(copytree(made, tmp_path / "other"))
    billed(run)
    billed(other, *reversed(SCHEMES))
    assert [(file.name, file.read_bytes()) for file in files(run)] == [
        (file.name, file.read_bytes()) for file in files(other)
    ]


def test_a_run_that_changed_is_simulated_again(run: Run, simulated: list[Scheme]) -> None:
    """A part that was made anew, with its digest in the manifest: what was kept before is replaced."""
    billed(run)
    part = next((run.folder / "messages").iterdir())
    table = pq.read_table(part)
    pq.write_table(table, part, compression="none")
    files_of_run = {**run.manifest.files, f"messages/{part.name}": file_digest(part)}
    write_manifest(run.folder, msgspec.structs.replace(run.manifest, files=files_of_run))
    again = billed(Run(run.folder))
    assert simulated == [*SCHEMES, *SCHEMES]
    pd.testing.assert_frame_equal(billed(Run(run.folder)), again, check_exact=True)
    assert simulated == [*SCHEMES, *SCHEMES]
    assert len(files(run)) == len(SCHEMES)


def test_what_is_no_file_of_the_run(run: Run, simulated: list[Scheme]) -> None:
    """A folder that an editor left among the parts is in nobody's way."""
    billed(run)
    (run.folder / "steps" / ".checkpoints").mkdir()
    billed(run)
    assert simulated == list(SCHEMES)


def test_code_that_changed_is_asked_again(run: Run, simulated: list[Scheme], monkeypatch: pytest.MonkeyPatch) -> None:
    """What another version of ctxbench has simulated does not count."""
    billed(run)
    monkeypatch.setattr(derived, "_code", lambda: b"another")
    billed(run)
    assert simulated == [*SCHEMES, *SCHEMES]


@pytest.mark.parametrize("where", [0, 0.1, 0.5, 0.9, 1])
def test_a_damaged_file_does_not_count(run: Run, simulated: list[Scheme], where: float) -> None:
    """A changed byte anywhere, or a file cut short: it is simulated again, with the same figures."""
    first = billed(run)
    changed, cut = files(run)
    data = bytearray(changed.read_bytes())
    data[min(int(where * len(data)), len(data) - 1)] ^= 1
    changed.write_bytes(data)
    cut.write_bytes(cut.read_bytes()[: int(where * cut.stat().st_size * 0.99)])
    pd.testing.assert_frame_equal(billed(run), first, check_exact=True)
    pd.testing.assert_frame_equal(billed(run), first, check_exact=True)
    assert len(simulated) <= 2 * len(SCHEMES)


def test_some_conversations_are_kept_apart(run: Run, simulated: list[Scheme]) -> None:
    """A bill of one conversation neither takes the usage of all nor is taken for it."""
    whole = billed(run)
    name = str(whole.conversation.iloc[0])
    one = billed(Run(run.folder, frozenset([name])))
    assert set(one.conversation) == {name}
    pd.testing.assert_frame_equal(billed(run), whole, check_exact=True)
    assert len(simulated) == 2 * len(SCHEMES)


def test_a_folder_that_cannot_be_written(run: Run, simulated: list[Scheme]) -> None:
    """Where nothing can be kept the bill is made all the same, each time anew."""
    (run.folder / derived.FOLDER).write_text("in the way")
    pd.testing.assert_frame_equal(billed(run), billed(run), check_exact=True)
    assert len(simulated) == 2 * len(SCHEMES)
