"""The tables of the README and the pages are those of the run that they show."""

import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.scripts import script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def renew_docs() -> ModuleType:
    return script("renew_docs")


def test_the_tables_are_of_these_recordings_and_figures(renew_docs: ModuleType) -> None:
    """None was changed by hand, and none is older than the scenarios or the baseline: else `make readme`."""
    assert list(renew_docs.stale()) == []


def test_the_readme_has_the_verdict_and_the_first_rows(renew_docs: ModuleType) -> None:
    """Of what `make bench` prints: the answer, and the table without what only the documents know."""
    readme, bench = ((ROOT / page).read_text("utf-8") for page in renew_docs.PAGES[:2])
    printed = bench.partition("```text\n")[2].partition("```")[0].splitlines()
    assert "\n".join(renew_docs.shown(printed)) in readme


def test_the_claims_are_of_the_run_of_the_bench() -> None:
    """The page has every claim, and as many of each verdict as `make bench` says."""
    bench, page = ((ROOT / name).read_text("utf-8") for name in ("docs/bench.md", "docs/claims.md"))
    verdicts = Counter(re.findall(r"^\| C\d\d \| .* \| (holds|fails|cannot tell) \|", page, re.MULTILINE))
    said = re.search(r"Of (\d+) claims .* (\d+) hold, (\d+) fail, (\d+) cannot be told", bench)
    assert said is not None
    assert [*map(int, said.groups())] == [31, *(verdicts[word] for word in ("holds", "fails", "cannot tell"))]


def test_what_makes_them_stale(renew_docs: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A figure that a person wrote, another baseline, and recordings that have changed are each said."""
    for page in renew_docs.PAGES:
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / page).write_text((ROOT / page).read_text().replace("archive", "archives"))
    baseline = tmp_path / "baseline.json"
    baseline.write_text("{}")
    monkeypatch.setattr(renew_docs, "ROOT", tmp_path)
    monkeypatch.setattr(renew_docs, "BASELINE", baseline)
    monkeypatch.setattr(renew_docs, "scenario", lambda name: [])
    said = list(renew_docs.stale())
    assert said[0] == "the scenario `standard` has changed since the tables were written"
    assert said[1] == "the figures of `smoke` have changed since the tables were written"
    assert "the table bench was not written by `make readme`" in said
