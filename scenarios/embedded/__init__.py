"""Recordings that come with ctxbench, and the generators of any number of further conversations.

    for conversation in scenario("standard"):
        …

A recorded set is a file `scenarios/data/<set>.jsonl.zst`, whose digest is checked before it is read; `docs/sets.md`
says how the sets were made. A subject of conversation (`coding`, …) is a part of `standard`. A generated scenario makes
the same bytes from the same seed, one conversation at a time, in English and Chinese.

Conversations that are alike by the way they were made are one independent unit, `meta["unit"]` (`scenarios/model.py`).

An accepted answer of a probe stands word for word in its evidence, unless it was worked out from it (a sum, a number of
days): the ids of computed probes are in `meta["computed_probes"]`, with spaces between them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from itertools import chain, count, islice
from typing import Annotated, Any

import msgspec
import zstandard

from ..errors import SetupError, SpecError
from ..files import shipped
from ..model import Conversation
from ..spec import build, single

LANGUAGES = ("en", "zh")
_SETS: dict[str, dict[str, Any]] = shipped("sets")
SCENARIOS: dict[str, str] = {name: row["about"] for name, row in _SETS.items()}
"""Names that `scenario` takes, each with a one-line description."""
DIGESTS: dict[str, str] = {name: row["sha256"] for name, row in _SETS.items() if "sha256" in row}
"""SHA-256 of the file of each recorded set."""
GENERATED: dict[str, int] = {name: row["turns"] for name, row in _SETS.items() if "turns" in row}
"""Generated scenarios, and the user turns of a conversation unless others are asked for."""
KINDS = tuple(name for name in _SETS if name not in DIGESTS and name not in GENERATED)
"""Subjects of the conversations of `standard`, the first part of their ids."""
ENORMOUS = "traps/enormous_result"  # the trap that `smoke` leaves out: 400 000 characters in one tool result


@dataclass(frozen=True, slots=True)
class Generated:
    """Parameters of a generated scenario."""

    turns: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    """User turns of a conversation; None = the scenario's own."""
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**32)] = 0
    conversations: Annotated[int, msgspec.Meta(ge=1, le=10**9)] | None = None
    """Number of conversations: from this seed, the next one, and so on. None = the two of one seed."""


def named_scenario(text: str) -> Iterator[Conversation]:
    """Return the conversations of a scenario by its text, such as `load(turns=2000, seed=4, conversations=10)`.

    Raises SpecError for an unknown name, for parameters of a recorded one, and for those that cannot be.
    """
    call = single(text, "scenario")
    if call.name in SCENARIOS and call.name not in GENERATED and call.parameters:
        raise SpecError(f"{call.name} is recorded: only {', '.join(GENERATED)} take parameters")
    numbers = build(call, dict.fromkeys(SCENARIOS, Generated), "scenario")
    return scenario(call.name, numbers.turns, numbers.seed, numbers.conversations)


def scenario(
    name: str, turns: int | None = None, seed: int = 0, conversations: int | None = None
) -> Iterator[Conversation]:
    """Return the conversations of one of SCENARIOS, in a fixed order, each decoded or made when it is asked for.

    The numbers are for generated scenarios alone, as in `Generated`. Raises SetupError if a set's file is not the one
    that ctxbench came with.
    """
    if name in GENERATED:
        made = (_made(name, turns or GENERATED[name], each, language) for each in count(seed) for language in LANGUAGES)
        return islice(made, conversations or len(LANGUAGES))
    if name in KINDS:
        return (of_set for of_set in _read("standard") if of_set.id.startswith(f"{name}/"))
    traps = (trap for trap in _read("traps") if trap.id != ENORMOUS)
    return chain(_read("smoke"), traps) if name == "smoke" else _read(name)


def messages_in(name: str) -> int:
    """Return the number of messages of a recorded set; 0 for a generated one, or for no scenario."""
    return int(_SETS.get(name, {}).get("messages", 0))


def _made(name: str, turns: int, seed: int, language: str) -> Conversation:
    from . import plant_log

    make = {"load": plant_log.load, "mem_001": plant_log.mem_001, "mem_002": plant_log.mem_002}[name]
    # The two languages of a seed of `load` are twins; another seed draws other records, people and questions.
    unit = f"{name}-{seed}" if name == "load" else name
    return msgspec.structs.replace(make(seed, turns, language), meta={"unit": unit})


def _read(name: str) -> Iterator[Conversation]:
    """Yield the conversations of a set's file. Raises SetupError for another file than the one of DIGESTS."""
    file = f"{name}.jsonl.zst"
    packed = (resources.files("ctxbench.scenarios") / "data" / file).read_bytes()
    if hashlib.sha256(packed).hexdigest() != DIGESTS[name]:
        raise SetupError(f"{file}: is not the file that ctxbench came with: install ctxbench again")
    decoder = msgspec.json.Decoder(Conversation)
    yield from map(decoder.decode, zstandard.decompress(packed).splitlines())
