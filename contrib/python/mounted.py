"""File systems for tests that need one of their own. Only root can mount them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """Mounts what the options of mount(8) name on a new folder, for as long as it is used."""
    folder.mkdir()
    subprocess.run(["mount", *options, str(folder)], check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True, capture_output=True)
        folder.rmdir()


def why_not(directory: Path, *options: str) -> str | None:
    """Why this process can't mount such a thing; None if it can."""
    if os.geteuid() != 0:
        return "only root can mount file systems"
    try:
        with mounted(directory / "probe", *options):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        (directory / "probe").rmdir()
        reason = error.stderr.decode().strip() if isinstance(error, subprocess.CalledProcessError) else error
        return f"mount doesn't work here: {reason}"
