"""`ctxbench bill` and `ctxbench lab kv-cache`: cost at providers with prompt caches, and your own server's cache."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ctxbench.harness.bill import SummaryPrompt

from .arguments import (
    MOST_OF_ANYTHING,
    MOST_TOKENS,
    BilledModelsOption,
    JsonOption,
    PricesOption,
    RunArgument,
    prices_of,
    run_folder,
)

if TYPE_CHECKING:
    import pandas as pd

    from ctxbench.harness.bill.bill import Billed
    from ctxbench.harness.bill.simulation import Scheme


class CacheRulesOf(StrEnum):
    """Rules of a provider's cache."""

    recording = "recording"
    latest = "latest"
    document = "document"


class Placing(StrEnum):
    """Placement of cache marks."""

    automatic = "automatic"
    marked = "marked"
    hour = "hour"
    document = "document"
    system = "system"
    tail = "tail"
    anchor = "anchor"
    hindsight = "hindsight"


def bill(
    run: RunArgument = Path("runs"),
    model: BilledModelsOption = None,
    rules: Annotated[
        CacheRulesOf,
        typer.Option(
            help="Cache rules: of the recording's date, the latest, or the simplified ones of the specification."
        ),
    ] = CacheRulesOf.recording,
    placement: Annotated[
        list[Placing] | None,
        typer.Option(
            help="Placement of cache marks, for providers that need them; repeat it to compare.",
            show_default="automatic; document under the rules document",
        ),
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Gemini: cached content stored by the hour, instead of implicit caching.")
    ] = False,
    reuse: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Probability that a call finds the newest cached prefix, where the provider caches by itself.",
            show_default="by the provider's evidence; `ctxbench lab validate` fits it",
        ),
    ] = None,
    token_factor: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=10,
            help="Tokens that the provider counts for each of ours.",
            show_default="as in the recordings, else as measured for the family of models",
        ),
    ] = None,
    summaries: Annotated[
        SummaryPrompt | None,
        typer.Option(
            help="Prompt of all summaries: a text of its own; the history behind another system prompt; or "
            "the last prompt with one message more, which is read from the cache.",
            show_default="as each strategy asks for its own",
        ),
    ] = None,
    thinking: Annotated[
        bool,
        typer.Option("--thinking", help="Bill recorded reasoning in later prompts, as the model's provider keeps it."),
    ] = False,
    batch: Annotated[bool, typer.Option("--batch", help="Use the prices of batch calls.")] = False,
    prices: PricesOption = None,
    calls: Annotated[
        Path | None,
        typer.Option(
            help="Write a row for every call, and where its prefix broke, to this .csv or .parquet file.",
            metavar="FILE",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Draw the bill into this folder: SVG, PNG."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Bill a run's requests under models' prompt-cache rules and prices, without calling any model.

    Fewer tokens are not always cheaper: a context whose start changes is written to the cache again. Prices are those
    of litellm's bundled map, in US dollars, unless --prices replaces them.

    [bold]automatic[/bold]   marks where the strategy sets them, else at the end of the prompt
    [bold]marked[/bold]      only where the strategy sets them
    [bold]hour[/bold]        the end of the prompt, for an hour instead of five minutes
    [bold]document[/bold]    each long system message at the start, as the specification places them
    [bold]system[/bold]      the end of the system messages
    [bold]tail[/bold]        that, and the last two messages of the user or the tools
    [bold]anchor[/bold]      that, and before what the strategy is about to rewrite
    [bold]hindsight[/bold]   the offline optimum: the lowest bill that any placement could reach
    """
    from ctxbench.harness.bill.bill import bill as billed_as
    from ctxbench.harness.bill.recorded import billed_models
    from ctxbench.harness.bill.requests import RunRequests, breaks
    from ctxbench.harness.bill.simulation import Scheme
    from ctxbench.harness.folder.run import load
    from ctxbench.harness.folder.steps import lacking_newest
    from ctxbench.reports.bill import as_json as exact
    from ctxbench.reports.bill import assumptions, tables, totals

    from .output import print_json, print_tables
    from .progress import counting

    requests = RunRequests(load(run_folder(run)))
    paid = prices_of(prices, batch)
    schemes = [
        Scheme(name, where.value, rules is CacheRulesOf.latest, stored, rules is CacheRulesOf.document, reuse)
        for name in billed_models(requests.run, model or (), paid)
        for where in dict.fromkeys(
            placement or [Placing.document if rules is CacheRulesOf.document else Placing.automatic]
        )
    ]
    with counting(len(requests), "conversations × strategies") as done:
        billed = billed_as(requests, schemes, paid, done, token_factor, summaries, thinking)
    sums = totals(billed.conversations())
    if out is not None:
        _draw(billed, sums, out)
    broken = breaks(billed.requests)
    if calls is not None:
        _write(billed, broken, calls)
    notes = assumptions(billed, schemes)
    if as_json:
        print_json(exact(sums, broken, notes))
    else:
        count = int(sums.calls.max()) if len(sums) else 0
        print_tables(tables(sums, broken, count, notes, lacking_newest(requests.run)))


def _write(billed: Billed, broken: pd.DataFrame, file: Path) -> None:
    """Write every call under every scheme, and where the prefix of its prompt broke."""
    import pandas as pd

    from ctxbench.reports.render import as_csv
    from ctxbench.scenarios.errors import RunError, UserError
    from ctxbench.scenarios.files import check_file

    if file.suffix not in (".csv", ".parquet"):
        raise UserError(f"--calls {file}: write to a .csv or a .parquet file")
    if not billed.usages.keys() & set(billed.schemes):
        raise UserError("hindsight is a sum over a conversation and has no calls: name another placement as well")
    frames = [_calls(billed, scheme) for scheme in billed.schemes if scheme in billed.usages]
    whole = pd.concat(frames, ignore_index=True).merge(broken, "left", ["conversation", "strategy", "step"])
    try:
        check_file(file)
        file.write_text(as_csv(whole), "utf-8") if file.suffix == ".csv" else whole.to_parquet(file, index=False)
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror or error}") from None


def _draw(billed: Billed, total: pd.DataFrame, folder: Path) -> None:
    """Write all figures in two formats, for the first placement of marks."""
    from ctxbench.reports.figures.bill import figures
    from ctxbench.reports.figures.style import save
    from ctxbench.scenarios.errors import RunError, UserError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made: {error.strerror or error}") from None
    first = {
        scheme.model: scheme for scheme in reversed([scheme for scheme in billed.schemes if scheme in billed.usages])
    }
    if not first:
        raise UserError("hindsight is a sum over a conversation and has no figures: name another placement as well")
    calls = {model: billed.calls(first[model]) for model in dict.fromkeys(total.model) if model in first}
    placements = total.model.map(lambda model: first[model].placement if model in first else "")
    rows = total[total.placement == placements]
    for name, drawn in figures(rows, calls).items():
        for ending in ("svg", "png"):
            save(drawn, folder / f"{name}.{ending}")


def _calls(billed: Billed, scheme: Scheme) -> pd.DataFrame:
    frame = billed.calls(scheme)
    frame.insert(0, "placement", scheme.placement)
    frame.insert(0, "model", scheme.model)
    return frame


# Tokens. One of Llama 3.1 8B takes 128 KiB (32 layers × 8 heads × 128 × 2 bytes, keys and values). These are 16 and
# 48 GiB: the weights in bf16 (15 GiB) leave so much of 90 % of a GPU with 40 and 80 GB, rounded down for activations.
_MEMORY = (131_072, 393_216)


class Engine(StrEnum):
    """Server whose cache is simulated."""

    vllm = "vllm"
    sglang = "sglang"


_NAMES = {Engine.vllm: "vLLM", Engine.sglang: "SGLang"}

# Default tokens of a block of vLLM, and of a page of SGLang.
_BLOCKS = {Engine.vllm: 16, Engine.sglang: 1}


def kv_cache(
    run: RunArgument = Path("runs"),
    engine: Annotated[
        Engine, typer.Option("--engine", "-e", help="vllm: blocks, LRU. sglang: a radix tree, LRU of its leaves.")
    ] = Engine.vllm,
    memory: Annotated[
        list[int] | None,
        typer.Option(
            "--memory",
            min=1,
            max=MOST_TOKENS,
            metavar="TOKENS",
            help="Size of the KV cache, as the server prints it at start; repeat it. Unlimited is always shown.",
            show_default=", ".join(map(str, _MEMORY)) + ": an 8B model on a GPU of 40 and 80 GB",
        ),
    ] = None,
    block_size: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST_TOKENS, help="Tokens of a block of the KV cache.", show_default="16; a page of SGLang: 1"
        ),
    ] = None,
    concurrency: Annotated[
        int,
        typer.Option(
            "--concurrency",
            "-c",
            min=1,
            max=MOST_OF_ANYTHING,
            help="Conversations at a time; when one ends, the next begins.",
        ),
    ] = 8,
    as_recorded: Annotated[
        bool, typer.Option("--as-recorded", help="Begin each conversation at its recorded time instead.")
    ] = False,
    longest_pause: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=MOST_OF_ANYTHING,
            metavar="SECONDS",
            help="Cut longer pauses between calls to this.",
            show_default="as recorded",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Put a run's requests through the prefix cache of your own server, several conversations at once.

    A server computes only what its KV cache does not hold. Each strategy has a server of its own, and no strategy runs
    again. A context whose start changes is computed again, however short it is.
    """
    import math

    from ctxbench.harness.bill.kv_cache import Serving
    from ctxbench.harness.folder.run import load
    from ctxbench.metrics.serving.block_cache import BlockCache
    from ctxbench.metrics.serving.radix_cache import RadixCache
    from ctxbench.reports.kv_cache import as_json as exact
    from ctxbench.reports.kv_cache import notes, tables, totals
    from ctxbench.scenarios.errors import SpecError

    from .output import print_json, print_tables
    from .progress import counting

    block = block_size or _BLOCKS[engine]
    sizes = tuple(dict.fromkeys(memory or _MEMORY))
    if min(sizes) < block:
        raise SpecError(f"--memory {min(sizes)} is less than one block of {block} tokens")
    cache = BlockCache if engine is Engine.vllm else RadixCache
    side_by_side = None if as_recorded else concurrency
    longest = math.inf if longest_pause is None else longest_pause
    serving = Serving(load(run_folder(run)))
    rows = []
    with counting(len(serving.strategies) * (len(sizes) + 1), "caches") as count:
        for row in serving.rows(lambda size: cache(size, block), (*sizes, None), side_by_side, longest):
            rows.append(row)
            count()
    sums, assumptions = totals(rows), notes(serving.assumed, serving.failed, side_by_side, longest_pause)
    name = f"{_NAMES[engine]}, {'blocks' if engine is Engine.vllm else 'pages'} of {block}"
    if as_json:
        print_json(exact(name, sums, assumptions))
    else:
        print_tables(tables(name, sums, assumptions))
