"""HalluQA: Chinese questions that invite false answers, with right and wrong answers by people. Apache-2.0.

    [{question_id, Question, "Best Answer1".."4", Wrong_Answer1.., Category}]
    [{question_id, question, response, Best_Answer1.., is_hallucination: true | false | "Invalid_Judge"}]    # outputs

Source: github.com/OpenMOSS/HalluQA, `HalluQA.json` and `Chinese_LLMs_outputs/` (Cheng et al. 2023, arXiv 2310.03368).
Every wrong answer is an item, with all right ones accepted; so is every right answer, with the *other* right ones
accepted, where there are any. The outputs of models were labelled by GPT-4 and not by people, and are marked so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..errors import Place, RecordingError
from ..source import Problems, convert
from .labelled import Format, Labelled, rows

_BEST, _WRONG = re.compile(r"Best[ _]Answer\d*"), re.compile(r"Wrong[ _]Answer\d*")
_SHAPE = frozenset({"[].question_id", "[].Question", "[].Best Answer1", "[].Wrong_Answer1"})
_OUTPUTS = frozenset({"[].question_id", "[].question", "[].response", "[].is_hallucination"})


class _Question(msgspec.Struct):
    question_id: int
    Question: str


class _Output(msgspec.Struct):
    question_id: int
    question: str
    response: str
    is_hallucination: bool | Literal["Invalid_Judge"]


def _read(path: Path, problems: Problems, _: object) -> Iterator[Labelled]:
    for _at, place, row in rows(path, dict[str, Any], problems):
        try:
            asked = convert(row, _Question, place)
            best, wrong = _texts(row, _BEST, place), _texts(row, _WRONG, place)
            if not best:
                raise RecordingError(place.at("Best Answer1"), "no right answer", "give one, or leave the row out")
        except RecordingError as error:
            problems.add(error)
            continue
        for side, candidates in (("right", best), ("wrong", wrong)):
            for at, candidate in enumerate(candidates):
                accepted = tuple(each for other, each in enumerate(best) if side == "wrong" or other != at)
                if accepted:
                    yield Labelled(
                        id=f"q{asked.question_id}-{side}{at}",
                        set="halluqa-zh",
                        question=asked.Question,
                        accepted=accepted,
                        candidate=candidate,
                        correct=side == "right",
                        group=f"q{asked.question_id}",
                        language="zh",
                    )


def _outputs(path: Path, problems: Problems, _: object) -> Iterator[Labelled]:
    system, invalid = path.stem.partition("_output")[0], 0
    for _at, place, row in rows(path, dict[str, Any], problems):
        try:
            output = convert(row, _Output, place)
            accepted = _texts(row, _BEST, place)
            if not accepted:
                raise RecordingError(place.at("Best_Answer1"), "no right answer", "give one, or leave the row out")
        except RecordingError as error:
            problems.add(error)
            continue
        if output.is_hallucination == "Invalid_Judge":
            invalid += 1
            continue
        yield Labelled(
            id=f"q{output.question_id}-{system}",
            set="halluqa-zh-outputs",
            question=output.question,
            accepted=accepted,
            candidate=output.response,
            correct=not output.is_hallucination,
            group=f"q{output.question_id}",
            system=system,
            language="zh",
            labelled_by="model",
        )
    if invalid:
        problems.notes.append(f"{path}: {invalid} answers that the judge gave no verdict on")


def _texts(row: Mapping[str, Any], key: re.Pattern[str], place: Place) -> tuple[str, ...]:
    """What stands under the keys of this form, in their order, without what is null or empty."""
    found = [convert(value, str | None, place.at(name)) for name, value in row.items() if key.fullmatch(name)]  # type: ignore[arg-type]
    return tuple(text for each in found if each and (text := each.strip()))


FORMAT = Format("HalluQA's right and wrong answers by people (HalluQA.json)", (_SHAPE,), _read)
OUTPUTS = Format("HalluQA's outputs of models, judged by GPT-4", (_OUTPUTS,), _outputs)
