"""Write a bench for TensorBoard: an event file per strategy, by `tensorboard`'s own writer, without TensorFlow.

Figures are scalars, parameters are hyperparameters. The same bench gives the same bytes, and writing it again replaces
its files.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from ctxbench.metrics.figures import display_name
from ctxbench.scenarios.errors import MissingExtra

from ..folder.files import placed
from .bench import Bench, LoggedStrategy, measures, metric_keys, name_of


def write(bench: Bench, folder: Path, measured: int) -> Path:
    """Write every strategy below a folder, and return the folder of the bench. `measured` is in ms since 1970.

    Raises MissingExtra without tensorboard.
    """
    try:
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ModuleNotFoundError:
        raise MissingExtra("tensorboard", "tensorboard") from None
    place, written = folder / bench.name, set()
    for number, entry in enumerate(bench.entries):
        # A strategy's text is no name of a folder; its number keeps two apart that differ in signs alone.
        name = re.sub(r"[^\w.=,-]+", "-", entry.parameters["strategy"]).strip("-")[:80]
        file = place / f"{number:02d}-{name}" / f"events.out.tfevents.{measured // 1000:010d}.ctxbench"
        file.parent.mkdir(parents=True, exist_ok=True)
        with placed(file) as draft, draft.open("wb") as out:
            records = RecordWriter(out)
            for event in _events(bench, entry, measured / 1000):
                records.write(event)
            records.flush()
        written.add(file)
    # Of an earlier measurement: strategies that are gone, and other times.
    for old in set(place.glob("*/events.out.tfevents.*.ctxbench")) - written:
        old.unlink()
        with suppress(OSError):  # something else may be in it
            old.parent.rmdir()
    return place


def _events(bench: Bench, entry: LoggedStrategy, time: float) -> list[bytes]:
    """Return the records of a strategy's file: its parameters, its figures, its curves."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb

    keys, first = metric_keys(bench.metrics), measures(bench.metrics)
    # TensorBoard shows groups of tags by name: what the run is judged by has a group that comes first.
    tags = {name: f"1 measures/{at} {display_name(name)}" for at, name in enumerate(first, 1)}
    scalars = [(tags.get(name, f"figures/{keys[name]}"), 0, value) for name, value in entry.numbers.items()]
    scalars += [(name_of(name), step, value) for name, step, value in entry.curves]
    parameters = {**bench.parameters, **entry.parameters}
    session = hparams_pb(parameters, trial_id=entry.parameters["strategy"], start_time_secs=time)
    packed = session.value[0].metadata.plugin_data  # which has the parameters in another order in each process
    packed.content = HParamsPluginData.FromString(packed.content).SerializeToString(deterministic=True)
    summaries = [(0, session)]
    summaries += [(step, Summary(value=[Summary.Value(tag=tag, simple_value=value)])) for tag, step, value in scalars]
    events = [Event(wall_time=time, file_version="brain.Event:2")]
    events += [Event(wall_time=time, step=step, summary=summary) for step, summary in summaries]
    return [event.SerializeToString(deterministic=True) for event in events]
