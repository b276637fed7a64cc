"""Write the survey of libraries into docs/survey.md: `scripts/survey_page.py RUN` (`make survey`).

The table is that of `ctxbench lab survey`; the defects are the files below docs/examples/defects, word for word.
Without RUN the defects alone are renewed.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PAGE, DEFECTS = DOCS / "survey.md", DOCS / "examples" / "defects"
_PLACE = re.compile(r"(<!-- table: (survey|defects) -->\n).*?(<!-- end -->)", re.DOTALL)


def survey(folder: Path) -> str:
    """Return the tables of the survey as Markdown; a survey that is in the folder already is not measured again."""
    program = str(Path(sys.executable).with_name("ctxbench"))
    command = [program, "lab", "survey", "--out", str(folder), "--jobs", "0", "--markdown", "-"]
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def defects(folder: Path = DEFECTS) -> str:
    """Return each file of the folder under the first line of its docstring, as Markdown."""
    texts = {path: path.read_text("utf-8") for path in sorted(folder.glob("*.py"))}
    if not texts:
        return "None is known.\n"
    return "\n".join(
        f"### {_title(text, path.stem)}\n\n```python\n{text.strip()}\n```\n" for path, text in texts.items()
    )


def _title(text: str, name: str) -> str:
    return (ast.get_docstring(ast.parse(text)) or name).splitlines()[0].rstrip(".")


def page(text: str, parts: dict[str, Callable[[], str]]) -> str:
    """Return the page with some of its parts renewed."""
    return _PLACE.sub(
        lambda place: f"{place[1]}\n{parts[place[2]]()}\n{place[3]}" if place[2] in parts else place[0], text
    )


if __name__ == "__main__":
    parts = {"survey": partial(survey, Path(sys.argv[1]))} if sys.argv[1:] else {}
    PAGE.write_text(page(PAGE.read_text("utf-8"), {**parts, "defects": defects}), "utf-8")
