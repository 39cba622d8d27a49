"""Write src/splime/keywords.pyi, by which editors complete settings and options of reading.

It says again what the fields of two dataclasses say; a test holds that it is up to date.
"""

from dataclasses import fields
from pathlib import Path

from splime.embedding.settings import Settings
from splime.io.options import ReadOptions

FILE = Path(__file__).parents[1] / "src/splime/keywords.pyi"
HEAD = '''"""Keyword arguments, for editors and type checkers; made by scripts/keywords.py.

What they mean is said where they are fields: `splime.Settings`, and `splime.read`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from splime.io.options import EndBeforeBegin, WithoutTime
from splime.splitting import HowToSplit
from splime.static import Aggregate
from splime.times import Granularity, When
'''


def keywords() -> str:
    """The text of the file."""
    reading = {one.name: one.type for one in fields(ReadOptions)}
    reading["columns"] = "Sequence[str | int] | None"  # numbers become text when they are checked
    settings = {one.name: one.type for one in fields(Settings) if one.name != "model"}
    seed = {"seed": settings.pop("seed")}
    parts = {
        "Reading(TypedDict, total=False)": reading,
        "TrialSettings(TypedDict, total=False)": settings,
        "Training(TrialSettings, total=False)": seed,
    }
    classes = [
        "\n".join([f"class {title}:", *(f"    {name}: {kind}" for name, kind in own.items())])
        for title, own in parts.items()
    ]
    text = "\n".join([HEAD, *(f"{each}\n" for each in classes)])
    return text.replace("'", '"')  # as they are written there


if __name__ == "__main__":
    FILE.write_text(keywords(), encoding="utf-8")
