"""τ-bench runs: `[{task_id, trial, reward, info: {task}, traj: [OpenAI messages]}]`.

Source: github.com/sierra-research/tau-bench, `historical_trajectories/*.json`. The system prompt is the first message;
the files have no tool schemas and no usage. A task is tried several times: each trial is a conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..model import Conversation
from ..source import Problems, decode, records
from . import Recordings
from .messages import ChatMessage, chat_messages


class _Trial(msgspec.Struct):
    task_id: int | str
    traj: list[ChatMessage]
    trial: int | str = 0
    reward: float | None = None
    info: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class TauBench:
    """τ-bench's historical trajectories."""

    about: ClassVar[str] = "τ-bench trajectories (a JSON array of trials)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"[].traj", "[].traj[].role", "[].reward"}),)
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
                    trial = decode(raw, _Trial, place)
                    yield (
                        place,
                        Conversation(
                            id=f"{path.stem}/{trial.task_id}.{trial.trial}",
                            messages=chat_messages(trial.traj, place.at("traj"), problems),
                            meta={"reward": trial.reward, "task": str(trial.task_id), "trial": str(trial.trial)},
                        ),
                    )
