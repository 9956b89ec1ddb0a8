"""Breaks the promises of a server's disk, to check that a test notices."""

from __future__ import annotations

import subprocess
from pathlib import Path


def lying_disk(directory: Path, mode: str) -> list[str]:
    """Returns what a server's command has to begin with. The modes are in `lying_disk.c`."""
    library = directory / "lying_disk.so"
    source = Path(__file__).with_name("lying_disk.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source, "-ldl"], check=True)
    return ["env", f"LD_PRELOAD={library}", f"LYING_DISK={mode}"]
