"""Copies a disk as a power cut would leave it while a server writes to it, and checks what a server finds on the copy.

    python3 power_cut.py --server PATH [--engine log] [--durability always] [--cuts 10] [--seed N]

The disk is an ext4 image behind a loop device. While the server is stopped, the image contains everything that was
written to the device and nothing that only the page cache of the mounted file system holds. Requires root and loop
devices.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import larder_wire as wire
from brief_case import report_violations
from larder import Client, LarderError
from larder_wire import Code, Operation, Write
from mounted import mount_error, mounted
from server_process import Server

# How much a store with an interval may lose beyond it: the duration of one sync.
SYNC_SECONDS = 0.5


class Writer(threading.Thread):
    """Overwrites some keys in a known order. Writes are numbered, and each value begins with its number."""

    def __init__(self, address: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.address = address
        self.random = random.Random(seed)
        # The key and the time of the reply of each write; replies are received in order.
        self.keys: list[str] = []
        self.replied: list[float] = []
        # The numbers of writes that the server had no room for, because the disk was too slow.
        self.refused: set[int] = set()
        self.stopped = threading.Event()

    def run(self) -> None:
        try:
            with Client(self.address, timeout=30) as client:
                store = client.open("power")
                while not self.stopped.is_set():
                    ids = [self.send(client, store.handle) for _ in range(self.random.choice((1, 4, 16)))]
                    for id in ids:
                        self.receive(client, id)
        except LarderError:
            # The server was killed, or it refuses all writes, which shows in the number of replies.
            pass

    def receive(self, client: Client, id: int) -> None:
        try:
            client.receive(id)
        except LarderError as error:
            if error.code != Code.tooManyRequests:
                raise
            self.refused.add(len(self.replied) + 1)
        self.replied.append(time.monotonic())

    def wait_for_replies(self, count: int) -> None:
        """Waits until it is known which of the first writes were refused."""
        while len(self.replied) < count and self.is_alive():
            time.sleep(0.001)

    def send(self, client: Client, handle: int) -> int:
        key = f"key {self.random.randrange(100)}"
        self.keys.append(key)
        value = b"%d " % len(self.keys) + self.random.randbytes(self.random.choices((0, 100, 2_000, 40_000), weights=(5, 20, 5, 1))[0])
        return client.send(Operation.put, wire.encode_write(Write(key, value)), handle)


class PowerCut:
    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options, self.directory = options, directory
        self.random = random.Random(options.seed)
        self.interval = 0 if options.durability == "always" else float(options.durability.removeprefix("interval:").removesuffix("s"))
        self.image = directory / "image"
        self.copy = directory / "copy"
        self.checked = 0
        self.max_loss = 0.0
        self.violations: list[str] = []

    def start_server(self, name: str, disk: Path) -> Server:
        folder = self.directory / name
        folder.mkdir(exist_ok=True)
        store = f"power={self.options.engine}?durability={self.options.durability}"
        server = Server(self.options.server.resolve(), folder, "--data", str(disk / "data"), "--store", store)
        server.wait_until_ready()
        return server

    def run(self) -> None:
        with open(self.image, "wb") as image:
            image.truncate(256 << 20)
        subprocess.run(["mkfs.ext4", "-q", str(self.image)], check=True, capture_output=True)
        with mounted(self.directory / "disk", "-o", "loop", str(self.image)) as disk:
            server = self.start_server("written", disk)
            writer = Writer(server.address, self.options.seed)
            writer.start()
            try:
                for cut in range(self.options.cuts):
                    time.sleep(self.random.uniform(0.1, 0.5) + 1.5 * self.interval)
                    self.cut(cut, server, writer)
                    if self.violations:
                        break
            finally:
                writer.stopped.set()
                server.kill()

    def cut(self, cut: int, server: Server, writer: Writer) -> None:
        # The loss of acknowledged writes is measured from here, not from the end of the copy.
        cut_time, replied = time.monotonic(), len(writer.replied)
        server.process.send_signal(signal.SIGSTOP)
        try:
            self.take_copy()
            sent = len(writer.keys)
            times = list(writer.replied)
        finally:
            server.process.send_signal(signal.SIGCONT)
        with mounted(self.directory / "mounted-copy", "-o", "loop", str(self.copy)) as disk:
            other = self.start_server("found", disk)
            try:
                with Client(other.address, timeout=30) as client:
                    found = {entry.key: int(entry.value.split(b" ")[0]) for entry in client.open("power").all() if entry}
            finally:
                other.kill()
        writer.wait_for_replies(sent)
        survived = max(found.values(), default=0)
        expected = {key: number for number, key in enumerate(writer.keys[:survived], 1) if number not in writer.refused}
        lost = [number for number in range(survived + 1, replied + 1) if number not in writer.refused]
        self.checked += replied
        if found != expected:
            self.violations.append(f"cut {cut}: the contents are not a prefix of the writes")
        elif survived > sent:
            self.violations.append(f"cut {cut}: found {survived} writes of only {sent}")
        elif lost:
            loss = cut_time - times[lost[0] - 1]
            self.max_loss = max(self.max_loss, loss)
            if not self.interval or loss > self.interval + SYNC_SECONDS:
                self.violations.append(f"cut {cut}: {len(lost)} acknowledged writes of the last {loss:.3f} s are lost")

    def take_copy(self) -> None:
        """Copies the image until the copy equals it, which means that the file system was not writing meanwhile."""
        for _ in range(10):
            subprocess.run(["cp", "--sparse=always", str(self.image), str(self.copy)], check=True)
            if subprocess.run(["cmp", "--quiet", str(self.image), str(self.copy)], check=False).returncode == 0:
                return
        raise SystemExit("the file system does not stop writing")


def main() -> int:
    parser = argparse.ArgumentParser(description="Cuts the power of a Larder server's disk.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--engine", choices=("log", "directory"), default="log")
    parser.add_argument("--durability", default="always", help="always, or an interval in seconds such as interval:1s")
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    store = f"{options.engine} ({options.durability})"
    with tempfile.TemporaryDirectory(prefix="larder-power-") as name:
        directory = Path(name)
        probe = directory / "probe-image"
        with open(probe, "wb") as image:
            image.truncate(8 << 20)
        subprocess.run(["mkfs.ext4", "-q", str(probe)], check=True, capture_output=True)
        reason = mount_error(directory, "-o", "loop", str(probe))
        if reason:
            print(f"{store}, power cut: skipped, because {reason}\n0 passed, 0 failed")
            return 0
        test = PowerCut(options, directory)
        try:
            test.run()
        except (LarderError, SystemExit) as error:
            test.violations.append(f"{error}")
    loss = f", at most the last {test.max_loss:.2f} s lost" if test.interval else " and none lost"
    name = f"{store}, seed {options.seed}"
    summary = f"{name}: {options.cuts} power cuts, {test.checked:,} acknowledged writes checked{loss}"
    return report_violations(name, test.violations, summary)


if __name__ == "__main__":
    sys.exit(main())
