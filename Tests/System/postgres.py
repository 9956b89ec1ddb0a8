"""A PostgreSQL server for tests, in a folder of its own, with Debian's programs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

VERSIONS = Path("/usr/lib/postgresql")


def programs() -> Path:
    """Returns the folder of the newest version's programs."""
    folders = sorted(VERSIONS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not folders:
        raise SystemExit("PostgreSQL is missing: sudo apt-get install postgresql")
    return folders[-1].parent


class Postgres:
    """A server that listens on a Unix socket only. PostgreSQL refuses to run as root, so it then runs as its own user."""

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="larder-postgres-", dir="/tmp"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        # The clients run as another user.
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.standbys: list[Path] = []
        self._run("initdb", "--no-sync", "-A", "trust", "-U", "larder", "-D", self.data)
        with (self.data / "postgresql.conf").open("a") as file:
            for name, value in {"max_connections": "200", "shared_buffers": "64MB", **settings}.items():
                file.write(f"{name} = '{value}'\n")
        self.start()

    @property
    def address(self) -> str:
        return f"postgresql:///postgres?host={self.folder}&user=larder"

    def add_standbys(self, count: int) -> None:
        """Starts standbys, and makes commits wait for one of them."""
        # Before the standbys are copied from it, so that one that is promoted waits, too. The name excludes the copying.
        self.query("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (walreceiver)'")
        self.query("SELECT pg_reload_conf()")
        self.standbys += [self.start_standby(5432 + number) for number in range(1, count + 1)]
        wait_for(
            lambda: self.query("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") == str(count), 30,
            "the standbys don't follow")

    def start_standby(self, port: int, of: int = 5432) -> Path:
        """Starts a standby whose socket is beside the primary's, and returns its folder."""
        data = self.folder / f"standby{port}"
        self._run(
            "pg_basebackup", "-h", self.folder, "-p", of, "-U", "larder", "-D", data, "-R", "-X", "stream", "--no-sync", "-c", "fast")
        options = f"-c listen_addresses= -c port={port} -c unix_socket_directories={self.folder}"
        self._run("pg_ctl", "-D", data, "-l", self.folder / f"log{port}", "-o", options, "-w", "-t", "60", "start")
        return data

    def control(self, data: Path, command: str) -> None:
        """Runs a command of pg_ctl on a server, and waits for its end."""
        self._run("pg_ctl", "-D", data, "-w", "-t", "60", command)

    def start(self) -> None:
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder}"
        self._run("pg_ctl", "-D", self.data, "-l", self.folder / "log", "-o", options, "-w", "-t", "60", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stops the server: `smart`, `fast`, or `immediate`, which is like a crash."""
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-w", "-t", "60", "stop")

    def query(self, sql: str, port: int = 5432) -> str:
        command = [programs() / "psql", "-h", self.folder, "-p", port, "-U", "larder", "-X", "-A", "-t", "-c", sql, "postgres"]
        return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    def signal(self, number: signal.Signals, data: Path | None = None) -> None:
        """Sends a signal to all processes of the server, or of the one in another folder."""
        for process in self.processes(data):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def processes(self, data: Path | None = None) -> list[int]:
        leader = int(((data or self.data) / "postmaster.pid").read_text().split("\n", 1)[0])
        listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(leader)], capture_output=True, text=True, check=False)
        return [leader, *map(int, listing.stdout.split())]

    def remove(self) -> None:
        try:
            self.signal(signal.SIGCONT)
            self.stop("immediate")
        except (OSError, subprocess.CalledProcessError):
            pass
        for standby in self.standbys:
            with contextlib.suppress(subprocess.CalledProcessError):
                self._run("pg_ctl", "-D", standby, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(programs() / program), *map(str, arguments)]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        # A server that stays keeps pipes open, so its output goes to a file.
        with (self.folder / "commands").open("a") as output:
            subprocess.run(command, check=True, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd="/", timeout=120)


def wait_for(condition, seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds} s: {what}")
        time.sleep(0.05)
