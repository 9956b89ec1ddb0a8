"""Settles a directory store on a slow disk: every fsync and fdatasync takes 6 ms longer, by strace(1).

    python3 slow_disk.py --server PATH [--entries 20000]

After one write of many entries, their files take minutes. Meanwhile other writes must be answered, and the watchdog must
be fed. A server that is killed must be ready again long before the files are written, and every start must write some more
of them, however soon it ends.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from brief_case import report_violations
from larder import Client, LarderError, Write
from server_process import Server

SLOW = ("strace", "-D", "-f", "-qq", "--seccomp-bpf", "-e", "trace=fsync,fdatasync", "-o", "/dev/null", "-e", "inject=fsync,fdatasync:delay_exit=6000")


class SlowDisk:
    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options, self.directory = options, directory
        self.violations: list[str] = []
        self.files = 0
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind(f"{directory}/notify")

    def expect(self, condition: bool, violation: str) -> None:
        if not condition:
            self.violations.append(violation)

    def start(self) -> Server:
        """Starts a server and waits until it is ready."""
        variables = {"NOTIFY_SOCKET": f"{self.directory}/notify", "WATCHDOG_USEC": "2000000"}
        begun = time.monotonic()
        with mock.patch.dict(os.environ, variables):
            options = ("--data", f"{self.directory}/data", "--store", "slow=directory?durability=none", "--store", "other=directory")
            server = Server(self.options.server.resolve(), self.directory, *options, prefix=SLOW)
        try:
            self.notices.settimeout(10)
            while b"READY=1" not in self.notices.recv(4096):
                pass
        except TimeoutError:
            server.kill()
            raise SystemExit(f"the server is not ready after 10 s\n{server.log()}") from None
        print(f"directory, slow disk: ready after {time.monotonic() - begun:.2f} s")
        return server

    def waiting(self, client: Client) -> int:
        return client.open("slow").stats()["directory_files_waiting"]

    def run(self) -> None:
        server = self.start()
        try:
            with Client(server.address, timeout=60) as client, Client(server.address, timeout=60) as busy:
                slow, others = busy.open("slow"), [client.open("slow"), client.open("other")]
                slow.put_many([Write(f"key {number}", b"value") for number in range(self.options.entries)])
                begun, longest, count, signs = time.monotonic(), 0.0, 0, 0
                while time.monotonic() < begun + 8:
                    before = time.monotonic()
                    others[count % 2].put(f"single {count}", b"value")
                    longest = max(longest, time.monotonic() - before)
                    count += 1
                    signs += self.signs_of_life()
                    time.sleep(0.01)
                self.expect(longest < 2, f"a write took {longest:.1f} s")
                self.expect(signs >= 4, f"the watchdog was fed {signs} times in 8 s, and expects it every 2 s")
                left = self.waiting(client)
                self.expect(0 < left, "the disk is not slow")
                print(f"directory, slow disk: {count} writes, the slowest in {1_000 * longest:.0f} ms, while {left} files waited")
        finally:
            server.kill()
        for _ in range(3):
            server = self.start()
            try:
                with Client(server.address, timeout=60) as client:
                    found = sum(1 for entry in client.open("slow").all(prefix="key ") if entry)
                self.expect(found == self.options.entries, f"{found} entries were there after a kill")
                time.sleep(2)
            finally:
                server.kill()
            files = len(list((self.directory / "data/stores/slow/files").glob("key*")))
            print(f"directory, slow disk: {files} files after a start of 2 s")
            self.expect(files > self.files, f"a start made no lasting progress: {files} files")
            self.files = files

    def signs_of_life(self) -> int:
        """How often the server has fed the watchdog since the last call."""
        self.notices.settimeout(0)
        count = 0
        try:
            while True:
                count += b"WATCHDOG=1" in self.notices.recv(4096)
        except BlockingIOError:
            return count


def main() -> int:
    parser = argparse.ArgumentParser(description="Settles a directory store on a slow disk.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--entries", type=int, default=20_000, help="how many entries one write has")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="larder-slow-") as name:
        test = SlowDisk(options, Path(name))
        try:
            test.run()
        except (LarderError, SystemExit, subprocess.SubprocessError) as error:
            test.violations.append(f"{error}")
    return report_violations("directory", test.violations)


if __name__ == "__main__":
    sys.exit(main())
