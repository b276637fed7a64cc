"""Where runs are logged: MLFLOW_TRACKING_URI, or a SQLite file beside the runs. MLflow is imported when it is needed.

MLflow is told to stay off the network but for the server that it is given: it reports to its makers otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...scenarios.errors import MissingExtra, NotLogged
from ..models.failures import shown, without_secrets

if TYPE_CHECKING:
    from mlflow import MlflowClient

STORE, ARTIFACTS = "mlflow.db", "mlartifacts"
EXPERIMENT = "ctxbench"
_SETTINGS = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""What MLflow reads from the environment, unless the user has set it. Its usual seven retries take minutes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where runs are logged."""

    uri: str
    artifacts: str | None = None
    """Where an experiment that is made anew keeps its files; None = where MLflow would."""

    @property
    def name(self) -> str:
        """The address as it may be shown."""
        return without_secrets(self.uri)

    @property
    def is_file(self) -> bool:
        """Whether it is a SQLite file."""
        return self.uri.startswith("sqlite:")


def place(folder: Path, uri: str | None = None) -> Place:
    """Where a run folder is logged: at `uri` if it is given, else in a file beside the folder."""
    if uri:
        return Place(uri)
    beside = folder.resolve().parent
    return Place(f"sqlite:///{beside / STORE}", (beside / ARTIFACTS).as_uri())


def client(where: Place) -> MlflowClient:
    """MLflow's client. Raises MissingExtra without MLflow, NotLogged for an address that it cannot read."""
    for name, each in _SETTINGS.items():
        os.environ.setdefault(name, each)
    try:
        import mlflow

        if where.is_file:
            import alembic  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "mlflow", "mlflow") from None
    with trouble(where):
        return mlflow.MlflowClient(tracking_uri=where.uri)


@contextmanager
def trouble(where: Place) -> Iterator[None]:
    """Whatever keeps MLflow from being written to is one NotLogged, without keys."""
    from mlflow.exceptions import MlflowException
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError, OSError) as error:
        raise NotLogged(f"MLflow at {where.name} cannot be written to: {_why(error)}") from None


def _why(error: BaseException) -> str:
    """The innermost reason, in one line."""
    text = str(error)
    for refused in ("Connection refused", "Name or service not known", "timed out"):
        if refused in text:
            return refused.lower()
    return shown(text) or type(error).__name__
