"""File systems for tests that need their own. Only root can mount them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """Mounts a file system, given by options of mount(8), on a new folder for the duration of the context."""
    folder.mkdir()
    subprocess.run(["mount", *options, str(folder)], check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True, capture_output=True)
        folder.rmdir()


def mount_error(directory: Path, *options: str) -> str | None:
    """Returns why this process can't mount such a file system, or None if it can."""
    if os.geteuid() != 0:
        return "only root can mount file systems"
    try:
        with mounted(directory / "probe", *options):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        (directory / "probe").rmdir()
        reason = error.stderr.decode().strip() if isinstance(error, subprocess.CalledProcessError) else error
        return f"mount doesn't work here: {reason}"
