"""Measures how long writes pause when a server dies or hands its store over, and how far followers are behind.

    python3 failover_figures.py --server PATH [--kills COUNT] [--moves COUNT] [--lease SECONDS]

Three larderds share a PostgreSQL server, all on this machine. One client writes all the time, one write after the other.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
import random
import statistics
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import replicated
from larder import Client, LarderError, Store
from larder_wire import Code, Outcome, Write
from postgres import Postgres, wait_for
from replicated import Node

STORE = "orders"


def leader_address(error: LarderError) -> str | None:
    """Returns the address that an error names."""
    *_, line = error.message.split("\n")
    return line if error.code is Code.notLeader and line.startswith("unix:") else None


class Writer(threading.Thread):
    """Writes one key after the other at whichever server serves the store, as a client of all servers does."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__(daemon=True)
        self.addresses = itertools.cycle(node.address for node in nodes)
        self.address = next(self.addresses)
        self.store: Store | None = None
        self.acknowledged: list[float] = []
        self.unknown = 0
        self.stopping = False

    def run(self) -> None:
        for number in itertools.count():
            while not self.stopping:
                try:
                    if self.store is None:
                        self.store = Client(self.address, timeout=1).open(STORE)
                    self.store.put(f"key-{number % 1_000}", b"value")
                    self.acknowledged.append(time.monotonic())
                    break
                except LarderError as error:
                    if error.outcome is Outcome.unknown:
                        self.unknown += 1
                    if self.store:
                        self.store.client.close()
                    self.store = None
                    self.address = leader_address(error) or next(self.addresses)
                    time.sleep(0.005)
            if self.stopping:
                return

    def pause(self, since: float) -> float:
        """Returns the longest time between two writes, from the last one before `since` on."""
        start = max((time for time in self.acknowledged[-100_000:] if time <= since), default=since)
        times = [start, *(time for time in self.acknowledged[-100_000:] if time > since)]
        return max(after - before for before, after in zip(times, times[1:]))

    def wait_for_writes(self, seconds: float) -> None:
        """Waits until writes have gone on for that long without a pause of a second."""
        begun = time.monotonic()
        while time.monotonic() < begun + seconds:
            if not self.acknowledged or time.monotonic() - self.acknowledged[-1] > 0.5:
                begun = time.monotonic()
            time.sleep(0.02)


def leader(nodes: Sequence[Node]) -> Node | None:
    return next((node for node in nodes if node.serves(STORE)), None)


def measure(name: str, nodes: list[Node], writer: Writer, count: int, disturb: Callable[[Node], None]) -> None:
    """Measures the pause of writes each time that something happens to the leader."""
    pauses: list[float] = []
    before = writer.unknown
    while len(pauses) < count:
        writer.wait_for_writes(1)
        node = leader(nodes)
        if node is None:
            continue
        since = time.monotonic()
        disturb(node)
        wait_for(lambda: writer.acknowledged[-1] > since + 0.1, 60, "writes do not go on")
        writer.wait_for_writes(0.3)
        pauses.append(writer.pause(since))
        if node.process.poll() is not None:
            node.start()
            node.client().close()
    print(
        f"{name}: {count}, pause of writes p50 {statistics.median(pauses):.3f} s, max {max(pauses):.3f} s, "
        f"writes of unknown outcome {writer.unknown - before}",
        flush=True,
    )


def move(node: Node, nodes: list[Node]) -> None:
    """Hands the store over from its leader to another server."""
    other = random.choice([other for other in nodes if other is not node])
    with node.client() as client:
        client.move(STORE, other.name)


def follows(node: Node) -> bool:
    with contextlib.suppress(LarderError), node.client() as client:
        client.open(STORE, max_staleness=60_000)
        return True
    return False


def watch(address: str, seconds: float, delays: multiprocessing.Queue) -> None:
    """Watches the store, and measures how old the times in its changes are."""
    found: list[float] = []
    with Client(address, timeout=30) as client:
        changes = client.open(STORE, max_staleness=60_000).watch()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for change in changes.next_changes():
                if change.key.startswith("time-"):
                    found.append(time.monotonic() - struct.unpack("<d", change.value[:8])[0])
    delays.put(found)


def measure_watch(nodes: list[Node], rate: int, seconds: float) -> None:
    wait_for(lambda: leader(nodes), 30, "nobody leads the store")
    node = leader(nodes)
    other = next(other for other in nodes if other is not node)
    wait_for(lambda: follows(other), 30, "the store is not followed")
    delays: multiprocessing.Queue = multiprocessing.Queue()
    watcher = multiprocessing.Process(target=watch, args=(other.address, seconds, delays))
    watcher.start()
    with node.client() as client:
        store = client.open(STORE)
        begun, batch, written = time.monotonic(), 100, 0
        while watcher.is_alive() and time.monotonic() < begun + seconds + 1:
            now = struct.pack("<d", time.monotonic()) + bytes(92)
            store.put_many([Write(f"time-{(written + index) % 50_000:06}", now) for index in range(batch)])
            written += batch
            time.sleep(max(0.0, begun + written / rate - time.monotonic()))
        elapsed = time.monotonic() - begun
    found = sorted(delays.get())
    watcher.join()
    print(
        f"watch at a follower, {written / elapsed:,.0f} writes a second: {len(found):,} changes, delay p50 "
        f"{found[len(found) // 2] * 1_000:.1f} ms, p99 {found[len(found) * 99 // 100] * 1_000:.1f} ms",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures pauses of writes, and how far followers are behind.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--kills", type=int, default=20, help="how many leaders are killed")
    parser.add_argument("--moves", type=int, default=50, help="how many times the store is moved")
    parser.add_argument("--lease", type=float, default=3.0, help="the lease in seconds")
    options = parser.parse_args()
    replicated.LEASE = options.lease
    postgres = Postgres()
    with tempfile.TemporaryDirectory(prefix="larder-failover-") as folder:
        nodes = [Node(options.server.resolve(), Path(folder), f"node{number}", postgres.address) for number in range(3)]
        writer = Writer(nodes)
        try:
            with nodes[0].client() as client:
                client.create(STORE, "replicated")
            measure_watch(nodes, rate=10_000, seconds=10)
            writer.start()
            measure("store moved", nodes, writer, options.moves, lambda node: move(node, nodes))
            measure("leader killed", nodes, writer, options.kills, Node.kill)
        finally:
            writer.stopping = True
            for node in nodes:
                node.end()
            postgres.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
