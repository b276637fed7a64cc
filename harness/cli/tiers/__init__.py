"""`ctxbench bench-tier`: one tier alone, beside its peers and its bound. One small file per tier."""

from __future__ import annotations

import typer

from . import archive, focus, rag, working

bench_tier = typer.Typer(
    help="Measure one tier alone, beside the best known alternative and its bound.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
bench_tier.command(name="working")(working.working)
bench_tier.command(name="archive")(archive.archive)
bench_tier.command(name="focus")(focus.focus)
bench_tier.command(name="rag")(rag.rag)
