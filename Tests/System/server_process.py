"""A larderd that the system tests start and stop."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from larder import Client, LarderError


class Server:
    """A larderd on a Unix socket in `directory` that allows fewer connections and more stores than by default."""

    max_connections = 300

    def __init__(self, program: Path, directory: Path, *options: str, prefix: Sequence[str] = ()) -> None:
        self.address = f"unix:{directory}/larder.sock"
        self._log = directory / "log"
        limits = ["--max-connections", str(self.max_connections), "--max-stores", "4096"]
        with open(self._log, "wb") as log:
            command = [*prefix, program, "--listen", self.address, *limits, *options]
            self.process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log)

    def wait_until_ready(self, pause: float = 0.02) -> None:
        deadline = time.monotonic() + 10
        while True:
            try:
                Client(self.address).close()
                return
            except LarderError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{self.process.args[0]} does not accept connections: {error}\n{self.log()}") from error
                time.sleep(pause)

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
