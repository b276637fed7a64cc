"""One setting on some recordings: it is run, measured, and what was measured is kept as a small file.

Runs are made under `running/` and removed: `figures/` has by conversation the sums that cost and quality are made of.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from shutil import rmtree

import msgspec

from ...scenarios.errors import RunError
from ..gating.measured import Measured, measured
from ..inputs import Inputs
from ..loading import Run, load
from ..run import Plan, execute
from ..steps import rows_of
from ..store import placed

TOKENS = "tokens"
"""The cost where no model is billed: tokens sent, and those of the strategy's own model calls."""
QUALITIES = ("correct", "evidence_sent", "grounding")
"""What quality is, the first of those that the recordings allow."""
LACKING = "without_newest"


class Task(msgspec.Struct, frozen=True):
    """A setting, and what to measure it on."""

    spec: str
    part: str
    """The recordings: `train` or `held-out`."""
    folder: str
    cost: str
    """A model to be billed under, or TOKENS."""
    qualities: tuple[str, ...]
    encoding: str

    @property
    def file(self) -> Path:
        """Where the figures are kept."""
        text = msgspec.json.encode((self.spec, self.part, self.cost, self.qualities, self.encoding))
        return Path(self.folder) / "figures" / f"{self.part}-{hashlib.sha256(text).hexdigest()[:16]}.json"


Sums = list[tuple[float, float]]
"""Of each conversation, what it adds to either sum (`metrics/sums.py`)."""


class Tried(msgspec.Struct, frozen=True):
    """What a setting came to."""

    spec: str
    conversations: list[str]
    cost: list[float]
    """Of each conversation."""
    quality: dict[str, Sums]
    lacking: int
    """Calls that have neither the newest message nor one written in its place."""
    calls: int
    failed: str = ""
    """Why there are no figures: the strategy failed in a conversation."""


def try_packed(packed: bytes) -> bytes:
    """`tried` for a task that came as MessagePack, as workers get them; the task again."""
    tried(msgspec.msgpack.decode(packed, type=Task))
    return packed


def tried(task: Task) -> Tried:
    """What a setting comes to: as it is kept, or measured now."""
    found = kept(task)
    if found is None:
        found = _measured(task)
        with placed(task.file) as draft:
            draft.write_bytes(msgspec.json.encode(found) + b"\n")
    return found


def kept(task: Task) -> Tried | None:
    """What was measured before; None if that is not there, or damaged."""
    try:
        return msgspec.json.decode(task.file.read_bytes(), type=Tried)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    except OSError as error:
        raise RunError(f"{task.file}: cannot be read: {error.strerror or error}") from None


def _measured(task: Task) -> Tried:
    folder = Path(task.folder)
    running = folder / "running" / task.file.stem
    rmtree(running, ignore_errors=True)
    plan = Plan(
        Inputs((str(folder / f"{task.part}.jsonl"),), "ctxbench"),
        (task.spec,),
        task.encoding,
        probes=bool({"correct", "evidence_sent"} & set(task.qualities)),
        answers="correct" in task.qualities,
    )
    try:
        execute(plan, running)
        return _figures(task, load(running))
    finally:
        rmtree(running, ignore_errors=True)


def _figures(task: Task, run: Run) -> Tried:
    found = measured(run, rows_of, () if task.cost == TOKENS else (task.cost,))
    names = list(found.digests)
    sums = found.sums[task.spec]
    if failed := found.failed.get(task.spec, {}):
        name, why = next(iter(failed.items()))
        more = f" (and in {len(failed) - 1} more)" if len(failed) > 1 else ""
        return Tried(task.spec, names, [], {}, 0, 0, f"in {name}{more}: {why}")
    quality = {
        name: [(float(top), float(bottom)) for top, bottom in sums[name]] for name in task.qualities if name in sums
    }
    cost = _tokens(found, task.spec) if task.cost == TOKENS else sums[f"cost({task.cost})"][:, 0].tolist()
    return Tried(task.spec, names, cost, quality, int(sums[LACKING][:, 0].sum()), int(sums["steps"][:, 0].sum()))


def _tokens(found: Measured, spec: str) -> list[float]:
    sums = found.sums[spec]
    made: list[float] = (sums["tokens_sent"][:, 0] + sums["own_tokens"][:, 0]).tolist()
    return made
