"""Attack ctxbench for some minutes and print what held: `python -m tests.attacks --minutes 15`.

Each attack gets its share of the time, in rounds with a seed each. What is lost is written into a folder, with the
seed that finds it again: `--only NAME --seed SEED --rounds 1`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.progress import Progress

from ctxbench.reports.render import Table, show
from tests.attacks import Outcome, cassettes, concurrency, folders, providers, recordings, sizes, stops


class Attack(NamedTuple):
    """An attack by its name, with the tries of a round. `in_ci` of them are in every run of the tests."""

    name: str
    attack: Callable[[int, int], Outcome]
    tries: int
    in_ci: int
    share: float = 1.0
    """Of the time, as a weight."""


ATTACKS = (
    Attack("values of recordings", recordings.values, 2000, 150, 2),
    Attack("bytes of recordings", recordings.bytes_, 2000, 150, 2),
    Attack("archives of recordings", recordings.archives, 1000, 60),
    Attack("sizes: bombs", sizes.bombs, 2, 1),
    Attack("sizes: 10,000 files", sizes.many_files, 1, 0, 0.5),
    Attack("sizes: 100,000 messages", sizes.long_conversation, 1, 0, 0.5),
    Attack("sizes: a line of 200 MB", sizes.long_line, 1, 0, 0.5),
    Attack("bits of run folders", folders.flips, 1000, 60, 2),
    Attack("parts of run folders", folders.parts, 20, 4),
    Attack("power cuts", folders.power_cuts, 10, 2),
    Attack("kills", stops.kills, 4, 1),
    Attack("kills of workers", stops.workers, 2, 1),
    Attack("full disks", stops.full_disk, 8, 2),
    Attack("clocks that jump", stops.clock, 4, 1, 0.5),
    Attack("faults of providers", providers.faults, 40, 8, 2),
    Attack("cassettes", cassettes.attack, 500, 60),
    Attack("exported replies", cassettes.lines, 500, 60, 0.5),
    Attack("two processes at once", concurrency.attack, 100, 0),
)


def main(
    minutes: Annotated[float, typer.Option(min=0, help="Time of all attacks together.")] = 15,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first round; the next ones follow.")] = 0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of an attack at most.")] = 1_000_000,
    only: Annotated[list[str] | None, typer.Option(help="Names of the attacks to make.")] = None,
    found: Annotated[Path, typer.Option(help="The folder for what is lost.")] = Path("build/attack"),
) -> None:
    """Attack ctxbench, print a table of what was tried and what held, and end with 1 if anything was lost."""
    if unknown := set(only or ()) - {each.name for each in ATTACKS}:
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}; there are: {', '.join(each.name for each in ATTACKS)}")
    chosen = [each for each in ATTACKS if only is None or each.name in only]
    seconds = 60 * minutes / sum(each.share for each in chosen)
    rows = []
    console = Console(stderr=True)
    with Progress(console=console, transient=True) as progress:
        for each in progress.track(chosen):
            whole, last = attacked(each, seconds * each.share, seed, rounds, found)
            rows.append((each.name, f"{whole.tried:,}", f"{whole.held:,}", f"{len(whole.lost):,}", f"{seed} … {last}"))
    lost = sum(int(row[3].replace(",", "")) for row in rows)
    notes = (f"What was lost is in {found}/." if lost else "Nothing was lost.",)
    heads = ("attack", "tried", "held", "lost", "seeds")
    show(Console(), [Table("What holds under attack?", heads, tuple(rows), notes)])
    raise typer.Exit(bool(lost))


def attacked(attack: Attack, seconds: float, seed: int, rounds: int, found: Path) -> tuple[Outcome, int]:
    """Attack in rounds until the time is over, once at least; return the sum, and the seed of the last round."""
    tried = held = 0
    lost: list[str] = []
    until, last = time.monotonic() + seconds, seed
    for last in range(seed, seed + rounds):
        outcome = attack.attack(last, attack.tries)
        tried, held = tried + outcome.tried, held + outcome.held
        lost += outcome.lost
        if outcome.lost:
            found.mkdir(parents=True, exist_ok=True)
            path = found / f"{attack.name.replace(' ', '-').replace(',', '')}-{last}.txt"
            again = f"python -m tests.attacks --only '{attack.name}' --seed {last} --rounds 1"
            path.write_text("\n\n".join((again, *outcome.lost)), "utf-8", "backslashreplace")
        if time.monotonic() >= until:
            break
    return Outcome(tried, held, lost), last


if __name__ == "__main__":
    typer.run(main)
