"""`ctxbench lab claims`, as a user runs it."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ctxbench.harness.claims.claim import Claimed, ClaimRow, Finding, exact
from ctxbench.harness.claims.registry import Claim, chosen, measure, read, write
from ctxbench.harness.claims.rows import ClaimInputs, ClaimSettings
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.schema import signed
from ctxbench.reports.claims import as_json, tables
from ctxbench.reports.html.sections import claims_section
from ctxbench.reports.results import Results
from ctxbench.scenarios.errors import RunError
from tests.harness.command import ctxbench

STRATEGIES = ("none", "window(max_tokens=8000)", "window(max_tokens=32000)")
_FINDING = Claim.finding
CLAIM = {"id", "claim", "source", "protocol", "timed", "verdict", "why", "needed", "rows"}
ROW = {
    *("setting", "figure", "unit", "value", "low", "high", "missing", "claimed", "bound", "of", "decides", "verdict")
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smoke scenario under a few strategies."""
    folder = tmp_path_factory.mktemp("claims")
    named = [word for each in STRATEGIES for word in ("-s", each)]
    ctxbench("run", "smoke", *named, "--answerer", "none", "--out", "smoke", cwd=folder)
    return folder / "smoke"


def claims(run: Path, *words: str) -> dict[str, Any]:
    only = [word for each in words for word in ("--only", each)]
    found: dict[str, Any] = json.loads(ctxbench("lab", "claims", run, *only, "--json", cwd=run.parent).stdout)
    return found


def test_the_whole_path(run: Path) -> None:
    """Run, claims, JSON: the schema is what it was, times stand apart, what the run has not is run beside it."""
    before = sorted(path.name for path in run.parent.iterdir())
    found = claims(run, "C01", "C04", "c10", "C17", "C18")
    assert found["version"] == 1
    assert [each["id"] for each in found["claims"]] == ["C01", "C04", "C10", "C17", "C18"]
    assert all(set(each) == CLAIM for each in found["claims"])
    assert all(set(row) == ROW for part in ("claims", "timed") for each in found[part] for row in each["rows"])
    by = {each["id"]: each for each in found["claims"]}
    assert (by["C10"]["verdict"], by["C10"]["rows"][0]["value"]) == ("fails", 350.0)
    assert by["C18"]["verdict"] == "holds"
    assert by["C04"]["rows"][0]["value"] is not None, "`layered` was not in the run"
    assert (by["C17"]["timed"], by["C17"]["verdict"], by["C17"]["rows"]) == (True, None, [])
    (timed,) = found["timed"]
    assert (timed["id"], timed["verdict"] in ("holds", "fails", "cannot tell")) == ("C17", True)
    assert claims(run, "C01")["claims"] == [by["C01"]], "the same run gives the same figures"
    assert sorted(path.name for path in run.parent.iterdir()) == before
    assert not (run / "claims.json").exists(), "only all claims together are kept"


def test_workers_measure_the_same(run: Path, tmp_path: Path) -> None:
    """Claims on the run, on scenarios of their own and on the strategies beside it, in one process and in two."""
    some = chosen(["C01", "C04", "C10", "C16", "C18", "C21"])
    strategies = tuple(name for claim in some for name in claim.strategies)
    one, two = (
        measure(
            some,
            ClaimInputs(ClaimSettings(str(tmp_path / str(jobs)), str(run), strategies, quick=True, jobs=jobs)),
            lambda _: None,
        )
        for jobs in (1, 2)
    )
    assert len(one) == 6
    assert one == two


def test_what_is_printed(run: Path, tmp_path: Path) -> None:
    """A line a claim, why, and with --only every setting; `make bench` prints one line. Arithmetic makes no run."""
    written = ctxbench("lab", "claims", run, "--only", "C01", "--only", "C10", cwd=run.parent).stdout
    assert "C10: 2000 + 500 tokens" in written
    assert "C01: A sliding window saves 30–60 % of the cost" in written
    assert "window(max_tokens=32000)" in written
    done = ctxbench("lab", "claims", "--only", "C10", "--only", "C09", "--brief", cwd=tmp_path)
    found = "Of 2 claims of the design documents 0 hold, 2 fail, 0 cannot be told (ctxbench lab claims)"
    assert done.stdout == f"{found}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--only", "C99"), "unknown claim 'C99'"), (("--only", "C11", "--recordings", "no/such/file"), "no/such/file")],
)
def test_what_cannot_be(tmp_path: Path, run: Path, words: tuple[str, ...], said: str) -> None:
    """One clear error, before anything is measured."""
    named = (*words, run) if "C11" in words else words
    assert said in ctxbench("lab", "claims", *named, cwd=tmp_path, code=2).stderr


def _finding(timed: bool = False) -> Finding:
    rows = (
        ClaimRow(setting="one", figure="saved", unit="share", found=exact(0.5), claimed=Claimed(least=0.3, upper=0.6)),
        ClaimRow(setting="two", figure="took", unit="ms", found=exact(2), claimed=Claimed(most=9.0), timed=timed),
    )
    return Finding("C01", "It saves <much>", "000", "look", "holds", "So it is.", rows)


def test_findings_are_kept_with_their_run(run: Path) -> None:
    """They come back as they were (2 as 2.0), until the run is another."""
    found = load(run)
    path = write(found, [_finding(True)], ClaimSettings("nowhere", recordings=("here/some.json",), quick=True))
    try:
        stored = read(found)
        assert stored is not None
        assert (stored.findings, stored.run) == ((_finding(True),), found.manifest.blake2b)
        assert (stored.quick, stored.recordings) == (True, ("some.json",))
        shown = claims_section(Results(found, ("gpt-5.6",)))
        assert shown is not None
        assert "--effort quick" in shown.lead
        assert list(shown.frames["claims"].setting) == ["one", "two"]
        for text in ("{", path.read_text().replace("saves", "loses")):
            path.write_text(text)
            with pytest.raises(RunError, match=r"claims.json: is damaged, .*: `ctxbench lab claims`"):
                read(found)
        path.write_bytes(msgspec.json.encode(signed(msgspec.structs.replace(stored, run="another"))))
        assert read(found) is None
        path.unlink()
        path.mkdir()
        with pytest.raises(RunError, match=r"claims.json: cannot be read: Is a dir"):
            read(found)
    finally:
        path.rmdir()
    assert claims_section(Results(found, ("gpt-5.6",))) is None


def test_times_stand_in_a_column_of_their_own() -> None:
    """What the clock decides has no other figures, in the table as in JSON."""
    plain, timed = _finding(), _finding(True)
    assert tables([plain])[0].rows[0][3:] == ("50.0 %", "≥ 30.0 % (to 60.0 %)", "–", "–")
    found = as_json([timed])
    assert [row["setting"] for row in found["claims"][0]["rows"]] == ["one"]
    assert [row["setting"] for row in found["timed"][0]["rows"]] == ["two"]
    assert (found["claims"][0]["verdict"], found["timed"][0]["verdict"]) == (None, "holds")


def test_what_rests_on_no_clock_is_found_again(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding comes back as it was made, timed ones are measured anew, and other answers are other inputs."""
    monkeypatch.setenv("CTXBENCH_CACHE", str(tmp_path / "cache"))
    some = chosen(["C10", "C17", "C18", "C19"])
    strategies = tuple(name for claim in some for name in claim.strategies)
    made = list[str]()

    def finding(claim: Claim, inputs: ClaimInputs) -> Finding:
        made.append(claim.id)
        return _FINDING(claim, inputs)

    def found(of: Path) -> list[Finding]:
        made.clear()
        settings = ClaimSettings(str(tmp_path / "beside"), str(of), strategies, quick=True)
        return measure(some, ClaimInputs(settings), lambda _: None)

    monkeypatch.setattr(Claim, "finding", finding)
    first = found(run)
    assert made == [claim.id for claim in some]
    shutil.copytree(run, other := tmp_path / "other")
    again = found(other)
    assert made == ["C17"]
    untimed = [[each for each in findings if each.id != "C17"] for findings in (first, again)]
    assert as_json(untimed[1]) == as_json(untimed[0])
    assert msgspec.json.encode(untimed[1]) == msgspec.json.encode(untimed[0])
    (other / "grades" / "mine").mkdir(parents=True)
    (other / "grades" / "mine" / "00000.parquet").touch()
    found(other)
    assert made == [claim.id for claim in some]
