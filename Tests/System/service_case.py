"""A larderd that systemd-socket-activate starts, with this process as its service manager."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from brief_case import BriefCase
from larder import Client

CONFIGURATION = """
data: {folder}/data
workers: 2
stores:
- sessions=memory
- orders=log
"""


class Notices:
    """A service manager's socket and the notices that it received, each with its time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.all: list[tuple[float, dict[str, str]]] = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        while True:
            data, descriptors, _, _ = socket.recv_fds(self.socket, 65_536, 16)
            fields = dict(line.split("=", 1) for line in data.decode().splitlines())
            self.handle(fields, descriptors)
            self.all.append((time.monotonic(), fields))

    def handle(self, fields: dict[str, str], descriptors: list[int]) -> None:
        """Closes barrier descriptors, which signals that all earlier notices have been processed."""
        for descriptor in descriptors:
            os.close(descriptor)

    def wait_for(self, key: str, value: str | None = None, after: int = 0, timeout: float = 20) -> dict[str, str]:
        """Returns the first notice, starting at index `after`, that has the key (and the value, unless it is None)."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            for _, fields in self.all[after:]:
                if key in fields and value in (None, fields[key]):
                    return fields
            time.sleep(0.005)
        raise AssertionError(f"no {key}={value} arrived within {timeout} s, only {self.all[after:]}")


class Service:
    """A larderd that systemd-socket-activate starts at the first connection."""

    def __init__(self, server: Path, folder: Path, watchdog: float | None = None, second: str = "remote") -> None:
        self.folder = folder
        self.configuration = folder / "larderd.yaml"
        if not self.configuration.exists():
            self.configuration.write_text(CONFIGURATION.format(folder=folder))
        notices = folder / "notices"
        notices.unlink(missing_ok=True)
        self.notices = Notices(notices)
        (folder / "s").unlink(missing_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.addresses = (f"unix:{folder}/s", f"tcp:127.0.0.1:{port}")
        command = ["systemd-socket-activate", f"--listen={folder}/s", f"--listen=127.0.0.1:{port}", f"--fdname=clients:{second}"]
        command.append(f"--setenv=NOTIFY_SOCKET={notices}")
        if watchdog:
            command.append(f"--setenv=WATCHDOG_USEC={int(watchdog * 1_000_000)}")
        self.log_path = folder / "log"
        with self.log_path.open("w") as log:
            self.process = subprocess.Popen([*command, str(server), f"--config={self.configuration}"], stderr=log)
        end = time.monotonic() + 20
        while "Listening on 127.0.0.1" not in self.log():
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise AssertionError(f"systemd-socket-activate doesn't listen: {self.log()}")
            time.sleep(0.005)

    def log(self) -> str:
        return self.log_path.read_text()

    def client(self, address: int = 0) -> Client:
        return Client(self.addresses[address], timeout=60)

    def reload(self) -> dict[str, str]:
        """Reloads the configuration and returns the notice that ends the reload."""
        before = len(self.notices.all)
        self.process.send_signal(signal.SIGHUP)
        self.notices.wait_for("RELOADING", "1", before)
        return self.notices.wait_for("READY", "1", before)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class ServiceCase(BriefCase):
    """A check that starts larderd. The script that runs the checks sets its path."""

    server: Path

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="larder-service-")
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)

    def start(self, **options: Any) -> Service:
        service = Service(self.server, self.folder, **options)
        self.addCleanup(service.kill)
        return service
