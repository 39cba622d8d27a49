"""TOML as configurations need it: tables of plain values. Python itself only reads TOML."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any


def write_toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of some tables of whatever JSON can hold; None is left out.

    >>> print(write_toml({"method": {"name": "merge", "shrink": 4.0, "limit": None}}), end="")
    [method]
    name = "merge"
    shrink = 4.0
    """
    parts = [
        "\n".join([f"[{_key(title)}]", *_pairs(table)]) + "\n" for title, table in tables.items()
    ]
    return "\n".join(parts)


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items() if value is not None]


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if plain else _string(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return repr(number) if math.isfinite(number) else f"{number}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(each) for each in value if each is not None)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(_pairs(value))}}}"
    raise TypeError(f"TOML has no way to write {value!r}")


def _string(text: str) -> str:
    # JSON's escapes are TOML's; only DEL must be escaped in TOML and is not in JSON.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
