"""Register every claim in the order of its number, measure it, and store findings with a run.

What is claimed, by which figures of which settings, and what is said of it stands in `claims.toml`. The rows there are
measured by `rows.py`; what no row can say is measured by the function that the claim names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path

import msgspec

from ctxbench.scenarios.errors import RunError, SpecError, UserError
from ctxbench.scenarios.files import LARGEST, read_file
from ctxbench.scenarios.spec import nearest
from ctxbench.strategies.chain import parse, spec

from .. import cache
from ..engine.workers import side_by_side
from ..folder.files import write_file
from ..folder.run import Run
from ..folder.schema import signed
from . import measures
from .claim import Claimed, ClaimRow, Finding, Measured, Unit, sentence, verdict_of
from .rows import ClaimInputs, ClaimSettings, Row, measure_row

Bound = float | dict[str, float] | None  # one for all settings, or by setting: others have none


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Name of a figure of a claim, and the bounds that are claimed."""

    text: str
    unit: Unit = "share"
    least: Bound = None
    most: Bound = None
    upper: float | None = None
    above: bool = False
    decides: bool | tuple[str, ...] = True  # whether it decides the claim, or the settings in which it does
    timed: bool = False

    def row(self, measured: Measured) -> ClaimRow:
        """Return a measured figure beside its claim."""
        bounds = (self.least, self.most)
        least, most = (bound.get(measured.setting) if isinstance(bound, dict) else bound for bound in bounds)
        claimed = None if least is most is None else Claimed(least, most, self.upper, self.above)
        decides = self.decides if isinstance(self.decides, bool) else measured.setting in self.decides
        named = measured._asdict() | {"figure": self.text, "unit": self.unit}
        return ClaimRow(**named, claimed=claimed, decides=decides, timed=self.timed)


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One claim of the register, and how it is measured."""

    claim: str
    source: str  # design document and section
    protocol: str
    remark: str  # explanation that is shown beside the figures; a name in braces is measured with them
    needed: str
    """Remedy: the change that would make the claim hold. It is shown where the claim fails or cannot be told."""
    figures: dict[str, Figure]
    rows: tuple[Row, ...] = ()
    measure: str = ""  # name of the function that measures what no row can say
    runs: tuple[str, ...] = ()
    """Strategies that its function needs on the run's conversations, beside those of its rows."""
    shares: str = ""
    """Name of what it shares with other claims and takes long to make: one worker measures all of these."""
    slow: bool = False  # whether `--effort quick` leaves it out
    id: str = ""

    @property
    def strategies(self) -> tuple[str, ...]:
        """Strategies that must have been run on the run's own conversations; missing ones are run beside it."""
        rows = (row for row in self.rows if row.on == "run" and not row.policy)
        names = (*self.runs, *(name for row in rows for name in (row.strategy, row.against)))
        return tuple(dict.fromkeys(spec(parse(name)) for name in names if name not in ("", "model")))

    def finding(self, inputs: ClaimInputs) -> Finding:
        """Measure the claim. If that is impossible the finding says why, and other claims are still measured."""
        rows, needed, values = list[ClaimRow](), self.needed, dict[str, float | str]()
        if self.slow and inputs.settings.quick:
            remark, needed = "Left out by --effort quick: it takes a minute or more.", "A run without it."
        else:
            try:
                by_function = getattr(measures, self.measure)(inputs) if self.measure else ()
                for item in chain(by_function, *(measure_row(row, inputs) for row in self.rows)):
                    if isinstance(item, dict):
                        values |= item
                    else:
                        rows.append(self.figures[item.figure].row(item))
                remark = self.remark.format(**values)
            except UserError as error:
                rows, remark, needed = [], f"It cannot be measured: {error}.", ""
        verdict = verdict_of(rows)
        why = " ".join(part for part in (sentence(rows, verdict), remark) if part)
        needed = "" if verdict == "holds" else needed
        return Finding(self.id, self.claim, self.source, self.protocol, verdict, why, tuple(rows), needed)


_REGISTER = tomllib.loads((files(__package__) / "claims.toml").read_text("utf-8"))
CLAIMS = {id: msgspec.convert({**claim, "id": id}, Claim) for id, claim in _REGISTER.items()}


def chosen(names: Iterable[str]) -> list[Claim]:
    """Return the named claims in their order, all if none is named. Raises SpecError for an unknown one."""
    ids = {name.strip().upper() for name in names}
    for name in sorted(ids - set(CLAIMS)):
        raise SpecError(f"unknown claim {name!r}{nearest(name, dict.fromkeys(CLAIMS))}; there are C01 to {max(CLAIMS)}")
    return [claim for name, claim in CLAIMS.items() if name in ids or not ids]


def measure(claims: Sequence[Claim], inputs: ClaimInputs, done: Callable[[int], None]) -> list[Finding]:
    """Measure claims on `jobs` workers, but find again what rests on no clock. `done` hears how many are finished."""
    store, basis = cache.results(), inputs.basis
    untimed = (claim.id for claim in claims if basis and not any(figure.timed for figure in claim.figures.values()))
    keys = {id: cache.key(basis, id) for id in untimed}
    kept = ((id, store.get(key)) for id, key in keys.items())
    findings = {id: msgspec.msgpack.decode(data, type=Finding) for id, data in kept if data}
    done(len(findings))
    claims_left = [claim for claim in claims if claim.id not in findings]
    groups: dict[str, list[str]] = {}
    for claim in claims_left:
        groups.setdefault("the run" if claim.strategies else claim.shares, []).append(claim.id)

    def collect(outcome: tuple[list[Finding], list[str]]) -> None:
        findings.update({finding.id: finding for finding in outcome[0]})
        measured = (finding for finding in outcome[0] if finding.id in keys and finding.rows)
        store.put({keys[finding.id]: msgspec.msgpack.encode(finding) for finding in measured})
        inputs.failures += outcome[1]
        done(len(outcome[0]))

    settings = inputs.settings
    # Without strategies it is not known whether any claim needs the run, which would be made once in each worker.
    if settings.jobs == 1 or len(groups) <= 1 or not settings.strategies:
        for claim in claims_left:
            collect(([claim.finding(inputs)], []))
    else:
        if "the run" in groups:
            _ = inputs.extra_run  # with all workers at once, before they divide the claims among them
        settings = msgspec.structs.replace(settings, run=str(inputs.run.folder), jobs=1)
        # What takes longest comes first, so that no worker is left alone with it.
        order = dict.fromkeys(("archives", "search", "the run", "latencies", *groups))
        tasks = [groups[name] for name in order if name in groups]
        packed = (msgspec.msgpack.encode((ids, settings)) for ids in tasks)
        side_by_side(_measured, packed, min(inputs.settings.jobs, len(tasks)), collect)
    return [findings[claim.id] for claim in claims]


def _measured(packed: bytes) -> tuple[list[Finding], list[str]]:
    """Return the findings of a task, and the models that failed it, in a worker."""
    ids, settings = msgspec.msgpack.decode(packed, type=tuple[list[str], ClaimSettings])
    inputs = ClaimInputs(settings)
    return [CLAIMS[id].finding(inputs) for id in ids], inputs.failures


FILE = "claims.json"


class StoredFindings(msgspec.Struct, frozen=True):
    """All findings on one run, and how they were made."""

    run: str  # the digest of the run: findings on another do not count
    findings: tuple[Finding, ...]
    quick: bool = False
    recordings: tuple[str, ...] = ()
    blake2b: str = ""  # digest of all that stands above


def write(run: Run, findings: Sequence[Finding], settings: ClaimSettings) -> Path:
    """Store findings in a run's folder, whole or not at all. Raises RunError if they cannot be written."""
    path = run.folder / FILE
    names = tuple(Path(recording).name for recording in settings.recordings)
    stored = StoredFindings(run.manifest.blake2b, tuple(findings), settings.quick, names)
    write_file(path, msgspec.json.encode(signed(stored)))
    return path


def read(run: Run) -> StoredFindings | None:
    """Return the findings on this very run, if any are there. Raises RunError for a damaged file."""
    path = run.folder / FILE
    try:
        stored = msgspec.json.decode(read_file(path, LARGEST), type=StoredFindings)
        if signed(stored).blake2b == stored.blake2b:
            return stored if stored.run == run.manifest.blake2b else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    raise RunError(f"{path}: is damaged, or of another version: `ctxbench lab claims` makes it anew, or delete it")
