"""Fills a small file system through a server and checks its behavior.

    python3 full_disk.py --server PATH [--engine log]

On a full disk, writes must fail with *storeFull* while reads succeed, and entries of a log can be deleted. Writes must
resume without a restart once there is space, even if nearly all of a log is garbage. Overwriting must never fill a disk
that has room for the live data, and acknowledged writes must survive SIGKILL. Requires root, to mount a tmpfs.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from brief_case import report_violations
from larder import Client, LarderError, Store
from larder_wire import Code
from mounted import mount_error, mounted
from server_process import Server

MEBIBYTE = 1 << 20


def is_accepted(write: Callable[[], object]) -> bool:
    """Returns False if the disk is full."""
    try:
        write()
    except LarderError as error:
        if error.code != Code.storeFull:
            raise
        return False
    return True


class FullDisk:
    def __init__(self, options: argparse.Namespace, directory: Path, disk: Path) -> None:
        self.options, self.directory, self.disk = options, directory, disk
        self.random = random.Random(3)
        self.model: dict[str, bytes] = {}
        self.written = 0
        self.violations: list[str] = []

    def start(self) -> Server:
        data = ["--data", str(self.disk / "data"), "--store", f"full={self.options.engine}"]
        server = Server(self.options.server.resolve(), self.directory, *data)
        server.wait_until_ready()
        return server

    def run(self) -> None:
        ballasts = [self.disk / f"ballast-{number}" for number in range(3)]
        for ballast in ballasts:
            ballast.write_bytes(bytes(5 * MEBIBYTE))
        server = self.start()
        try:
            self.overwrite(server)
            for ballast in ballasts[:2]:
                refused = self.fill(server)
                self.check(server, f"the disk is full after {refused} more entries")
                self.delete_a_few(server)
                ballast.unlink()
                self.expect_space(server)
            self.fill(server)
            server.kill()
            # Restart on the full disk.
            server = self.start()
            self.check(server, "after a restart on the full disk")
            self.delete_a_few(server)
            ballasts[2].unlink()
            self.expect_space(server)
            self.delete(server)
            self.fill(server)
            server.kill()
            server = self.start()
            self.check(server, "after another restart")
        finally:
            server.kill()

    def put(self, store: Store, key: str, value: bytes) -> bool:
        """Returns False if the disk is full."""
        if not is_accepted(lambda: store.put(key, value)):
            return False
        self.model[key] = value
        return True

    def overwrite(self, server: Server) -> None:
        """Writes many times the size of the disk to a few keys."""
        with self.client(server) as client:
            store = client.open("full")
            for number in range(2_000):
                if not self.put(store, f"same {number % 20}", self.random.randbytes(20_000)):
                    return self.violations.append(f"overwriting filled the disk after {number} writes")

    def fill(self, server: Server) -> int:
        with self.client(server) as client:
            store = client.open("full")
            for number in range(10_000):
                self.written += 1
                if not self.put(store, f"key {self.written}", self.random.randbytes(self.random.choice((100, 20_000, 40_000)))):
                    return number
        self.violations.append("the disk can't be filled")
        return 0

    def expect_space(self, server: Server) -> None:
        with self.client(server) as client:
            store = client.open("full")
            self.expect_success(lambda: self.put(store, "space", b"again"))

    def expect_success(self, write: Callable[[], bool]) -> bool:
        """Repeats a write until it is accepted, which must be soon. Returns whether it was."""
        deadline = time.monotonic() + 5
        while not write():
            if time.monotonic() > deadline:
                self.violations.append("writes don't resume although there is space")
                return False
            time.sleep(0.02)
        return True

    def delete(self, server: Server) -> None:
        """Deletes half of the entries. Files that have waited for space may take what was made, until their journals are
        removed."""
        with self.client(server) as client:
            store = client.open("full")
            for key in sorted(self.model)[::2]:
                if not self.expect_success(lambda key=key: self.delete_entry(store, key)):
                    return

    def delete_entry(self, store: Store, key: str) -> bool:
        """Returns False if the disk is full."""
        if not is_accepted(lambda: store.delete(key)):
            return False
        del self.model[key]
        return True

    def delete_a_few(self, server: Server) -> None:
        """Deletes entries on the full disk, which needs no space beyond what the log keeps for it."""
        if self.options.engine != "log":
            return
        with self.client(server) as client:
            store = client.open("full")
            for key in sorted(self.model)[1:101]:
                if not self.delete_entry(store, key):
                    return self.violations.append("an entry can't be deleted on the full disk")

    def check(self, server: Server, when: str) -> None:
        with self.client(server) as client:
            found = {entry.key: entry.value for entry in client.open("full").all() if entry}
        if found != self.model:
            wrong = sorted(key for key in found.keys() | self.model.keys() if found.get(key) != self.model.get(key))
            self.violations.append(f"{when}, {len(wrong)} entries differ from what was acknowledged: {', '.join(wrong[:5])}")

    def client(self, server: Server) -> Client:
        return Client(server.address, timeout=20)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fills a disk through a Larder server.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--engine", choices=("log", "directory"), default="log")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="larder-full-") as name:
        directory = Path(name)
        tmpfs = ("-t", "tmpfs", "-o", "size=48m", "tmpfs")
        reason = mount_error(directory, *tmpfs)
        if reason:
            print(f"{options.engine}, full disk: skipped, because {reason}\n0 passed, 0 failed")
            return 0
        with mounted(directory / "disk", *tmpfs) as disk:
            test = FullDisk(options, directory, disk)
            try:
                test.run()
            except (LarderError, SystemExit) as error:
                test.violations.append(f"{error}")
    summary = f"{options.engine}: the full disk held {len(test.model)} entries"
    return report_violations(options.engine, test.violations, summary)


if __name__ == "__main__":
    sys.exit(main())
