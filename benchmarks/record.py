"""What all benchmarks share: measure peak memory, and save results."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

# Benchmarks are run as files, and some import `experiments`, which is beside their folder.
sys.path.append(str(Path(__file__).parents[1]))


def peak_mb() -> float:
    """The peak resident memory (Linux); getrusage would include that of the parent process."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def write_results(path: Path, command: str, **found: Any) -> None:
    """Write results as JSON, with the command, the date and the versions."""
    about = {
        "command": command,
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
        "cores": os.cpu_count(),
    }
    path.write_text(json.dumps({**about, **found}, indent=1) + "\n")
