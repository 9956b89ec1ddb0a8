"""A larderd that the system tests start and stop."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from larder import Client, LarderError


class Server:
    """A larderd on a Unix socket in `directory` that allows fewer connections and more stores than by default."""

    max_connections = 300

    def __init__(
        self, program: Path, directory: Path, *options: str, prefix: Sequence[str] = (), environment: Mapping[str, str] = {},
    ) -> None:
        self.address = f"unix:{directory}/larder.sock"
        self._log = directory / "log"
        limits = ["--max-connections", str(self.max_connections), "--max-stores", "4096"]
        with open(self._log, "wb") as log:
            command = [*prefix, program, "--listen", self.address, *limits, *options]
            self.process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log, env={**os.environ, **environment})

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

    def wait_for_store(self, name: str) -> None:
        """Waits until the server serves a store that another one has served before."""
        deadline = time.monotonic() + 20
        while True:
            try:
                with Client(self.address) as client:
                    client.open(name)
                return
            except LarderError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{self.process.args[0]} does not serve {name}: {error}\n{self.log()}") from error
                time.sleep(0.005)

    def tcp_ports(self) -> list[int]:
        """Returns the ports of loopback that it listens on, in the order of its options, as soon as they are all in its log."""
        words = [str(word) for word in self.process.args]
        wanted = sum(option == "--listen" and ":127.0.0.1:" in word for option, word in zip(words, words[1:]))
        deadline = time.monotonic() + 10
        while True:
            log = self._log.read_text(errors="replace")
            ports = [int(port) for port in re.findall(r"listening address=\w+:127\.0\.0\.1:(\d+)", log)]
            if len(ports) >= wanted or time.monotonic() > deadline:
                return ports
            time.sleep(0.005)

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
