"""TOML as configurations need it: tables of plain values. Python itself only reads TOML."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def write_toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of some tables of strings, numbers, booleans and lists of these; None is left out.

    >>> print(write_toml({"method": {"name": "merge", "shrink": 4.0, "limit": None}}), end="")
    [method]
    name = "merge"
    shrink = 4.0
    """
    parts = []
    for title, table in tables.items():
        lines = [f"{_key(key)} = {_value(v)}" for key, v in table.items() if v is not None]
        parts.append("\n".join([f"[{_key(title)}]", *lines]) + "\n")
    return "\n".join(parts)


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if plain else _string(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"TOML has no way to write {value!r}")


def _string(text: str) -> str:
    # JSON's escapes are TOML's; only DEL must be escaped in TOML and is not in JSON.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
