"""Kills a server under load and measures how old the oldest answered write is that its store has lost.

    python3 loss_ages.py --server PATH [--engine log] [--kills 2] [--keys 20000] [--limit 0.1] [--seed N]
                         [--large]

A store with the durability `interval` or `none` may lose answered writes when the process is killed, but only those since
its commit writer last wrote. Some processes put single entries, one of them many at once, or values of 1 MiB; each numbers
its writes, so the greatest number that the restarted server has shows what is lost: a write that is missing while a later
one is there is a violation, too. So is a revision that was answered before the kill and is used again, and a watch that is
resumed as if nothing were lost. Large numbers of keys and of entries show that nothing else the engine does delays the
commit writer. The limit, in seconds, is generous, because the processes share the machine with the server, and greater on
a slow disk. Of large values, it allows as much as the disk takes to write all that the server may have accepted.

The folder is in $TMPDIR, /tmp by default: TMPDIR=/dev/shm measures without a disk.
"""

from __future__ import annotations

import argparse
import enum
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from brief_case import report_violations
from larder import Client, LarderError, Write
from larder_wire import Operation, decode_integer, encode_write
from server_process import Server

DURABILITIES = ("interval:100ms", "none")
ENTRIES_AT_ONCE = 30_000
# How many syncs in a row can keep the commit writer waiting: in a log, those at the beginning of a segment; in a directory
# store, one by which the file system delays a write.
SYNCS = {"log": 6, "directory": 1}
LARGE_VALUE = 1 << 20
# What a store may have accepted and not written: the largest segment, or the journals of a store that lags behind.
MAX_BACKLOG = {"log": 64 << 20, "directory": 256 << 20}
LARGE_KEYS = 256
LARGE_VALUES_SENT = 8


class Load(enum.Enum):
    """What a process puts: single entries, many at once, or large values."""

    SINGLE = enum.auto()
    BULK = enum.auto()
    LARGE = enum.auto()


LOADS = (
    ("single puts", [Load.SINGLE] * 3),
    ("with many entries at once", [Load.SINGLE, Load.SINGLE, Load.BULK]),
)
LARGE = ("values of 1 MiB", [Load.LARGE] * 2)


def put_until_killed(address: str, number: int, key_count: int, load: Load, pipe: Connection) -> None:
    """Writes until the server ends, and sends the times at which the writes were answered, and their last revision."""
    answered: list[float] = []
    sent: list[int] = []
    revision = 0
    try:
        with Client(address, timeout=60) as client:
            store = client.open("lossy")
            while True:
                value = b"%d" % len(answered)
                if load is Load.LARGE:
                    # Several requests are on their way, so that the server always has something to do.
                    index = len(answered) + len(sent)
                    write = Write(f"{number} {index % key_count}", (b"%d" % index).ljust(LARGE_VALUE))
                    sent.append(client.send(Operation.put, encode_write(write), store.handle))
                    if len(sent) < LARGE_VALUES_SENT:
                        continue
                    revision = decode_integer(client.receive(sent.pop(0)).body)
                elif load is Load.BULK:
                    revision = store.put_many([Write(f"{number} {key}", value) for key in range(ENTRIES_AT_ONCE)])
                else:
                    revision = store.put(f"{number} {len(answered) % key_count}", value)
                answered.append(time.monotonic())
    except LarderError as error:
        pipe.send((answered, revision, None if error.code is None else f"{error}"))


class SyncProbe(threading.Thread):
    """Measures how long the disk takes to sync a little while a server uses it, too."""

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        self.path, self.slowest = directory / "probe", 0.0
        self.stopped = threading.Event()
        self.start()

    def run(self) -> None:
        with open(self.path, "wb", buffering=0) as file:
            while not self.stopped.wait(0.1):
                file.write(bytes(4_096))
                begun = time.monotonic()
                os.fdatasync(file.fileno())
                self.slowest = max(self.slowest, time.monotonic() - begun)

    def stop(self) -> float:
        """Returns the longest time in seconds."""
        self.stopped.set()
        self.join()
        return self.slowest


def seconds_to_write(directory: Path, byte_count: int) -> float:
    """Returns how long the disk takes to write and sync that much, as measured with a part of it."""
    piece, count = bytes(LARGE_VALUE), 32
    begun = time.monotonic()
    with open(directory / "probe", "wb", buffering=0) as file:
        for _ in range(count):
            file.write(piece)
        os.fdatasync(file.fileno())
    return (time.monotonic() - begun) * byte_count / (count * LARGE_VALUE)


class LossAges:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.random = random.Random(options.seed)
        self.context = multiprocessing.get_context("fork")
        self.violations: list[str] = []

    def start(self, directory: Path, durability: str) -> Server:
        store = f"lossy={self.options.engine}?durability={durability}"
        server = Server(self.options.server.resolve(), directory, "--data", str(directory / "data"), "--store", store)
        try:
            server.wait_until_ready()
        except SystemExit:
            server.kill()
            raise
        return server

    def key_count(self, load: Load) -> int:
        """Returns how many keys a process of single puts has."""
        return LARGE_KEYS if load is Load.LARGE else self.options.keys

    def measure(self, durability: str, loads: list[Load], when: float) -> tuple[float, float]:
        """Kills a server after some time, and returns the age in seconds of the oldest write that is lost, or 0 if none is,
        and the limit.

        `loads` says what each process puts.
        """
        with tempfile.TemporaryDirectory(prefix="larder-ages-") as name:
            directory = Path(name)
            server = self.start(directory, durability)
            with Client(server.address) as client:
                incarnation = client.open("lossy").stats()["incarnation"]
            pipes = []
            for number, load in enumerate(loads):
                pipe, other_end = self.context.Pipe()
                arguments = (server.address, number, self.key_count(load), load, other_end)
                self.context.Process(target=put_until_killed, args=arguments, daemon=True).start()
                pipes.append(pipe)
            probe = SyncProbe(directory)
            time.sleep(when)
            killed = time.monotonic()
            server.kill()
            slowest_sync = probe.stop()
            backlog = 0.0
            if Load.LARGE in loads:
                # The disk was as busy with other things while the clients were there, and so was the processor.
                backlog = 2 * seconds_to_write(directory, MAX_BACKLOG[self.options.engine])
            reports = [pipe.recv() for pipe in pipes]
            server = self.start(directory, durability)
            try:
                with Client(server.address, timeout=60) as client:
                    found: list[dict[str, int]] = [{} for _ in loads]
                    store = client.open("lossy")
                    for entry in list(filter(None, store.all(keys_only=Load.LARGE in loads))):
                        number, key = entry.key.split()
                        value = store.get_range(entry.key, 0, 32).value if Load.LARGE in loads else entry.value
                        found[int(number)][key] = int(value)
                self.check_history(server.address, durability, incarnation, max(revision for _, revision, _ in reports))
            finally:
                server.kill()
        age = max(
            self.age(f"{durability}, process {number}", found[number], answered, problem, killed, load)
            for number, ((answered, _, problem), load) in enumerate(zip(reports, loads))
        )
        return age, self.options.limit + SYNCS[self.options.engine] * slowest_sync + backlog

    def check_history(self, address: str, durability: str, incarnation: int, answered: int) -> None:
        """Checks that the store goes on beyond the last answered revision, and that watches learn of it."""
        with Client(address) as client, Client(address) as writer:
            store = client.open("lossy")
            watch = store.watch(answered + 1, incarnation=incarnation)
            if watch.lost is None or watch.incarnation == incarnation:
                self.violations.append(f"{durability}: a watch of what may be lost was resumed after revision {answered}")
            revision = writer.open("lossy").put("0 0", b"-1")
            if revision <= answered:
                self.violations.append(f"{durability}: revision {revision} was used again; {answered} was answered")
            # For clients that know nothing of incarnations.
            if store.watch(answered + 1).lost is None:
                self.violations.append(f"{durability}: revision {answered + 1} seems to have been used")
            if writer.open("lossy").stats()["revision"] >= 1 << 53:
                self.violations.append(f"{durability}: the revision {revision} is beyond 2^53")

    def age(
        self, name: str, found: dict[str, int], answered: list[float], problem: str | None, killed: float, load: Load
    ) -> float:
        if problem:
            self.violations.append(f"{name}: a write was refused: {problem}")
        last = max(found.values(), default=-1)
        if load is Load.BULK:
            is_whole = len(set(found.values())) <= 1 and len(found) in (0, ENTRIES_AT_ONCE)
        else:
            keys = self.key_count(load)
            expected = {str(number % keys): number for number in range(max(0, last + 1 - keys), last + 1)}
            is_whole = found == expected
        if not is_whole:
            self.violations.append(f"{name}: a write is missing while a later one is there")
        return max(0.0, killed - answered[last + 1]) if last + 1 < len(answered) else 0.0

    def run(self) -> None:
        for durability in DURABILITIES:
            for title, loads in [LARGE] if self.options.large else [*LOADS, LARGE]:
                times = [self.random.uniform(1, 4) for _ in range(self.options.kills)]
                ages = [self.measure(durability, loads, when) for when in times]
                figures = ", ".join(f"{1_000 * age:.1f}" for age, _ in ages)
                print(f"{self.options.engine}, {durability}, {title}: the oldest lost write was answered {figures} ms before the kill")
                for age, limit in ages:
                    if age > limit:
                        problem = f"a write that was answered {age:.2f} s earlier is lost; the limit was {limit:.2f} s"
                        self.violations.append(f"{durability}, {title}: {problem}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures how old the writes are that a kill loses.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--engine", choices=("log", "directory"), default="log")
    parser.add_argument("--kills", type=int, default=2, help="how often to kill a server under each load")
    parser.add_argument("--keys", type=int, default=20_000, help="how many keys each process of single puts has")
    parser.add_argument("--limit", type=float, default=0.1, help="the greatest age allowed on a fast disk, in seconds")
    parser.add_argument("--large", action="store_true", help="put only values of 1 MiB")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    test = LossAges(options)
    try:
        test.run()
    except (LarderError, SystemExit) as error:
        test.violations.append(f"{error}")
    return report_violations(options.engine, test.violations)


if __name__ == "__main__":
    sys.exit(main())
