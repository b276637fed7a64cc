"""`ctxbench kv-cache`: what the KV cache of an own server would hold of a run's requests."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .arguments import RunArgument, chosen

MEMORY = (131_072, 393_216)
"""Tokens. One of Llama 3.1 8B takes 128 KiB (32 layers × 8 heads × 128 × 2 bytes, keys and values). These are 16 and
48 GiB: what its weights in bf16 (15 GiB) leave of 90 % of a GPU with 40 and 80 GB, rounded down for activations."""


class Engine(StrEnum):
    """Whose cache."""

    vllm = "vllm"
    sglang = "sglang"


NAMES = {Engine.vllm: "vLLM", Engine.sglang: "SGLang"}
BLOCKS = {Engine.vllm: 16, Engine.sglang: 1}
"""Tokens of a block of vLLM, of a page of SGLang, by default."""


def kv_cache(
    run: RunArgument = Path("runs"),
    engine: Annotated[
        Engine, typer.Option("--engine", "-e", help="vllm: blocks, LRU. sglang: a radix tree, LRU by leaves.")
    ] = Engine.vllm,
    memory: Annotated[
        list[int] | None,
        typer.Option(
            "--memory",
            "-m",
            min=1,
            metavar="TOKENS",
            help="Size of the KV cache, as the server prints it at its start; repeat it. Unlimited is always shown.",
            show_default=", ".join(map(str, MEMORY)) + ": an 8B model on a GPU of 40 and 80 GB",
        ),
    ] = None,
    block_size: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of a block (SGLang: of a page).", show_default="16; SGLang: 1"),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, help="Conversations at a time; as one ends the next begins.")
    ] = 8,
    as_recorded: Annotated[
        bool, typer.Option("--as-recorded", help="Begin each conversation when it was recorded to begin instead.")
    ] = False,
    longest_pause: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="Cut longer pauses between calls to this.", show_default="as recorded"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Put a run's requests through the prefix cache of an own server, several conversations side by side.

    A server computes only what its KV cache does not hold, and holds what fits. Each strategy has a server of its own,
    and nothing is run again. A context whose start changes is computed again, however much shorter it is.
    """
    import math

    from ...metrics.serving.block_cache import BlockCache
    from ...metrics.serving.radix_cache import RadixCache
    from ...reports.kv_cache import as_json as exact
    from ...reports.kv_cache import notes, tables, totals
    from ...scenarios.errors import SpecError
    from ..bill.kv_cache import Serving
    from ..folder.run import load
    from .output import print_json, print_tables
    from .progress import counting

    block = block_size or BLOCKS[engine]
    sizes = tuple(dict.fromkeys(memory or MEMORY))
    if min(sizes) < block:
        raise SpecError(f"--memory {min(sizes)} is less than one block of {block} tokens")
    cache = BlockCache if engine is Engine.vllm else RadixCache
    side_by_side = None if as_recorded else concurrency
    longest = math.inf if longest_pause is None else longest_pause
    serving = Serving(load(chosen(run)))
    rows = []
    with counting(len(serving.strategies) * (len(sizes) + 1), "caches") as count:
        for row in serving.rows(lambda size: cache(size, block), (*sizes, None), side_by_side, longest):
            rows.append(row)
            count()
    found, said = totals(rows), notes(serving.assumed, serving.failed, side_by_side, longest_pause)
    name = f"{NAMES[engine]}, {'blocks' if engine is Engine.vllm else 'pages'} of {block}"
    if as_json:
        print_json(exact(name, found, said))
    else:
        print_tables(tables(name, found, said))
