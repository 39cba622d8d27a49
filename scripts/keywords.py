"""Write src/splime/keywords.pyi, by which editors complete settings and options.

It says again what the fields of three dataclasses say; a test holds that it is up to date.
"""

from dataclasses import fields
from pathlib import Path

from splime.evaluation import EvaluationOptions
from splime.io.options import ReadOptions
from splime.settings import ALL_SETTINGS

FILE = Path(__file__).parents[1] / "src/splime/keywords.pyi"
HEAD = '''"""Keyword arguments, for editors and type checkers; made by scripts/keywords.py.

What they mean is said where they are fields: `splime.Settings`, `splime.read`, and
`splime.evaluation.EvaluationOptions`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from splime.evaluation.protocols import Questions
from splime.evaluation.ranking import Ties
from splime.graph import SplitName
from splime.io.options import Duration, EndBeforeBegin, WithoutTime
from splime.leakage import LeakFilter
from splime.progress import Progress
from splime.settings import Past
from splime.splitting import HowToSplit
from splime.static import Aggregate
from splime.times import Granularity, When
'''


def keywords() -> str:
    """The text of the file."""
    reading = {one.name: one.type for one in fields(ReadOptions)}
    reading["columns"] = "Sequence[str | int] | None"  # numbers become text when they are checked
    settings = {name: field.type for name, (_, field) in ALL_SETTINGS.items()}
    seed = {"seed": settings.pop("seed")}
    evaluating = {one.name: one.type for one in fields(EvaluationOptions)}
    parts = {
        "Reading(TypedDict, total=False)": reading,
        "TrialSettings(TypedDict, total=False)": settings,
        "Training(TrialSettings, total=False)": seed,
        "Evaluating(TypedDict, total=False)": evaluating,
    }
    classes = [
        "\n".join([f"class {title}:", *(f"    {name}: {kind}" for name, kind in own.items())])
        for title, own in parts.items()
    ]
    text = "\n".join([HEAD, *(f"{each}\n" for each in classes)])
    return text.replace("'", '"')  # as they are written there


if __name__ == "__main__":
    FILE.write_text(keywords(), encoding="utf-8")
