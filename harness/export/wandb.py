"""Log a bench to Weights & Biases: a group of runs, one per strategy.

Without an address everything stays in files, which `wandb sync` sends later; only an address opens a connection.
"""

from __future__ import annotations

import os
from pathlib import Path

from ctxbench.metrics.figures import display_name
from ctxbench.scenarios.errors import MissingExtra, NotLogged
from ctxbench.scenarios.secrets import hide, without_secrets

from .bench import Bench, measures, metric_keys, name_of

PROJECT = "ctxbench"


def write(bench: Bench, folder: Path, address: str = "", project: str = PROJECT) -> Path:
    """Log every strategy, in files below a folder and to the server at `address`, if one is named.

    Returns the folder of the files. Raises MissingExtra without wandb, NotLogged if it cannot log.
    """
    try:
        import wandb
    except ModuleNotFoundError:
        raise MissingExtra("wandb", "wandb") from None
    hide(address)
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    folder.mkdir(parents=True, exist_ok=True)
    settings = wandb.Settings(silent=True, console="off", disable_git=True, x_disable_stats=True)
    settings.base_url = address or settings.base_url
    names = metric_keys(bench.metrics)
    names |= {
        name: f"1 measures/{at} {display_name(name)}"
        for at, name in enumerate(measures(bench.metrics, bench.verdict.get("quality", "")), 1)
    }
    try:
        for entry in bench.entries:
            with wandb.init(
                project=project,
                group=f"{bench.name} {bench.identity[:8]}",
                job_type="strategy",
                name=entry.name,
                config={**bench.parameters, **entry.parameters, "versions": dict(bench.versions)},
                dir=str(folder),
                mode="online" if address else "offline",
                reinit="finish_previous",
                settings=settings,
            ) as run:
                for name, step, value in sorted(entry.curves, key=lambda point: point.step):
                    run.log({name_of(name): value}, step=step)
                figures = {names[name]: value for name, value in entry.numbers.items()}
                run.summary.update({**figures, "missing": entry.missing})
        wandb.teardown()  # `finish` returns before the last file is written; ending the service waits for it
    except wandb.errors.Error as error:
        where = without_secrets(address) or folder
        raise NotLogged(f"Weights & Biases at {where} cannot be written to: {without_secrets(str(error))}") from None
    return folder / "wandb"
