"""What a run tells about the machine and the versions that made it."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import splime


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Versions, device, command and date."""
    packages = ("torch", "numpy", "pyarrow", "safetensors", "pykeen")
    versions = {"splime": splime.__version__, "python": platform.python_version()}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "device": _device_name(device),
        "threads": torch.get_num_threads(),
        "platform": platform.platform(),
        "command": shlex.join([_program(), *sys.argv[1:]]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    return f"cpu ({platform.machine()}, {os.cpu_count()} cores)"


def _program() -> str:
    """The name of the program, also where it was called as a module."""
    path = Path(sys.argv[0])
    return path.parent.name if path.name == "__main__.py" else path.name
