"""The trials of a search: an Optuna study in `study.db`, a SQLite file that its own tools read too.

A trial is written once, when it is finished, in one transaction: a search that is killed leaves whole trials.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...scenarios.errors import RunError
from .search import DIRECTIONS, Drawn, as_params, distributions
from .space import Space

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

FILE, NAME = "study.db", "tune"


class Trials:
    """All that were finished, in order."""

    def __init__(self, folder: Path, space: Space) -> None:
        self._space, self._file = space, folder / FILE
        self._study = self._opened()

    def _opened(self) -> Study:
        import optuna

        usual = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            return optuna.create_study(
                storage=f"sqlite:///{self._file}", study_name=NAME, directions=list(DIRECTIONS), load_if_exists=True
            )
        except Exception as error:  # SQLAlchemy's, Alembic's and Optuna's own
            raise RunError(f"{self._file}: cannot be used ({type(error).__name__}): --overwrite begins anew") from None
        finally:
            optuna.logging.set_verbosity(usual)

    def all(self) -> list[FrozenTrial]:
        """Every trial, in order."""
        return self._study.get_trials(deepcopy=False)

    def add(self, drawn: Drawn, setting: str, figures: tuple[float, float] | None, failed: str) -> None:
        """Keep a trial: its cost and quality, or why there are none."""
        from optuna.trial import TrialState, create_trial

        about: dict[str, Any] = {"setting": setting} | ({"failed": failed} if failed else {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial = create_trial(
                state=TrialState.FAIL if figures is None else TrialState.COMPLETE,
                values=None if figures is None else list(figures),
                params=as_params(self._space, drawn.values),
                distributions=dict(distributions(self._space)),
                user_attrs=about,
                system_attrs=dict(drawn.noted),
            )
            try:
                self._study.add_trial(trial)
            except Exception as error:  # a full disk comes as SQLAlchemy's own
                raise RunError(f"{self._file}: cannot be written ({type(error).__name__})") from None

    def close(self) -> None:
        """Let go of the file."""
        storage: Any = self._study._storage
        getattr(storage, "_backend", storage).engine.dispose()
