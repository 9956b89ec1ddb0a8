"""Checks that a larderd returns the memory of a burst to the system, and that its memory is bounded and explained.

    python3 memory.py --server PATH [--thorough]

Each check starts this larderd, makes it use much memory, and compares the resident memory, as Linux reports it, with
what the server accounts for.
"""

from __future__ import annotations

import argparse
import select
import sys
import tempfile
import time
import unittest
from collections.abc import Iterable
from pathlib import Path

import larder_wire as wire
from brief_case import BriefCase, run
from larder import Client, Store, Write
from larder_wire import Operation
from server_process import Server
from session_case import RawConnection

MEBIBYTE = 1 << 20
# How much the resident memory may exceed what is accounted for: a share of it, and the code and the allocator.
ACCOUNTED_SHARE, FIXED_BYTES = 1.25, 32 * MEBIBYTE
RECOVERY_SECONDS = 10


class MemoryChecks(BriefCase):
    program: Path
    thorough = False

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="larder-memory-")
        self.addCleanup(directory.cleanup)
        self.server = Server(self.program, Path(directory.name), "--workers", "2")
        self.addCleanup(self.server.kill)
        self.server.wait_until_ready()
        self.client = Client(self.server.address, timeout=30)
        self.addCleanup(self.client.close)

    def create_store(self, specification: str = "memory") -> Store:
        self.client.create("store", specification)
        return self.client.open("store")

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS:"))

    def allowed_bytes(self) -> int:
        figures = self.client.stats()
        accounted = figures["memory_bytes"] + figures["input_bytes"] + figures["output_bytes"]
        return int(ACCOUNTED_SHARE * accounted) + FIXED_BYTES

    def assert_memory_comes_back(self) -> None:
        deadline = time.monotonic() + RECOVERY_SECONDS
        while (resident := self.resident_bytes()) > (allowed := self.allowed_bytes()):
            if time.monotonic() > deadline:
                mebibytes = f"{resident // MEBIBYTE} MiB are resident, {allowed // MEBIBYTE} MiB allowed"
                self.fail(f"{mebibytes} {RECOVERY_SECONDS} s after the burst: {self.client.stats()}")
            time.sleep(0.2)

    def assert_memory_is_explained(self) -> None:
        """The parts must sum to the resident memory, within 10% of it."""
        figures = self.client.stats()
        parts = {name: value for name, value in figures.items() if name.startswith("memory_") and name != "memory_bytes"}
        resident, explained = figures["resident_bytes"], sum(parts.values())
        self.assertLess(abs(resident - explained), 0.1 * resident, f"{explained} of {resident} bytes are explained: {parts}")

    def close(self, connections: Iterable[RawConnection | Client]) -> None:
        """Closes connections, and waits until the server has noticed."""
        for connection in connections:
            connection.close()
        deadline = time.monotonic() + RECOVERY_SECONDS
        while self.client.stats()["connections"] > 1:
            self.assertLess(time.monotonic(), deadline, "connections are still open")
            time.sleep(0.02)

    def test_large_values_that_are_overwritten(self) -> None:
        store = self.create_store()
        for size in (65_536, 200_000, 2 * MEBIBYTE) if self.thorough else (65_536,):
            count = min(2_000, (1 << 29) // size)
            for number in range(count):
                store.put(f"{number}", bytes([number % 251]) * size)
            for number in range(count):
                store.put(f"{number}", bytes(100))
            self.assert_memory_comes_back()

    def test_every_byte_is_explained(self) -> None:
        """Of stores with small and large values, documents with indexes, expiries and an open reply."""
        store = self.create_store()
        self.assert_memory_is_explained()
        store.ensure_index(["n"])
        for start in range(0, 100_000, 5_000):
            numbers = range(start, start + 5_000)
            store.put_many([Write(f"document {n}", b'{"n":%d,"text":"%s"}' % (n, bytes(100).hex().encode())) for n in numbers])
            store.put_many([Write(f"expiring {n}", bytes(50), expire_after_milliseconds=3_600_000) for n in numbers])
        for number in range(300):
            store.put(f"large {number}", bytes([number % 251]) * 70_000)
        self.assert_memory_is_explained()
        raw = RawConnection.greeted(self.server.address, credit=1)
        raw.done(raw.send_request(Operation.all, wire.encode_all(), raw.open("store")))
        store.delete_all()
        self.assert_memory_is_explained()
        self.close([raw])
        self.assert_memory_comes_back()
        self.assert_memory_is_explained()

    def test_half_frames(self) -> None:
        """The frames grow together. The server ends some connections because it holds too much of their frames."""
        frame = wire.encode_frame(Operation.put, 2, bytes(15 * MEBIBYTE))
        for _ in range(3 if self.thorough else 1):
            connections = [RawConnection.greeted(self.server.address) for _ in range(250)]
            for start in range(0, len(frame) - 1, MEBIBYTE):
                part = frame[start : min(start + MEBIBYTE, len(frame) - 1)]
                connections = [raw for raw in connections if self.sends(raw, part)]
            self.assertGreater(len(connections), 0)
            self.close(connections)
            self.assert_memory_comes_back()

    def sends(self, raw: RawConnection, data: bytes) -> bool:
        """Returns whether the server accepts the data; if not, the connection is closed."""
        try:
            raw.send(data)
            if raw.socket not in select.select([raw.socket], [], [], 0)[0]:
                return True
        except OSError:
            pass
        raw.close()
        return False

    def test_many_connections(self) -> None:
        store = self.create_store()
        store.put("key", bytes(300_000))
        for _ in range(3 if self.thorough else 1):
            clients = [Client(self.server.address) for _ in range(250)]
            for client in clients:
                opened = client.open("store")
                opened.put(f"{id(client)}", bytes(30_000))
                opened.get("key")
            self.close(clients)
            store.delete_all()
            store.put("key", bytes(300_000))
            self.assert_memory_comes_back()

    def test_unread_replies(self) -> None:
        """Replies to `get` wait in the server because the client reads none of them."""
        store = self.create_store()
        store.put("key", bytes(8 * MEBIBYTE))
        connections = []
        for _ in range(60 if self.thorough else 20):
            raw = RawConnection.greeted(self.server.address)
            connections.append(raw)
            raw.send_request(Operation.get, b"key", raw.open("store"))
        self.client.ping()
        self.close(connections)
        self.assert_memory_comes_back()

    def test_open_replies_of_a_store_that_is_rewritten(self) -> None:
        """The snapshots of 20 open reply streams would keep 20 times the store."""
        store = self.create_store()
        value_size, count = 1_000, 60_000
        keys = [f"{number:06}" for number in range(count)]

        def rewrite(generation: int) -> None:
            value = bytes([generation]) * value_size
            for start in range(0, count, 5_000):
                store.put_many([Write(key, value) for key in keys[start : start + 5_000]])

        rewrite(0)
        raw = RawConnection.greeted(self.server.address, credit=1)
        self.addCleanup(raw.close)
        handle = raw.open("store")
        peak = 0
        for generation in range(20):
            raw.done(raw.send_request(Operation.all, wire.encode_all(), handle))
            rewrite(generation)
            peak = max(peak, self.resident_bytes())
        self.assertLess(peak // MEBIBYTE, 512, "MiB were resident while open replies kept old entries")
        self.assert_memory_comes_back()
        self.close([raw])
        self.assert_memory_comes_back()


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the memory of a larderd.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--thorough", action="store_true", help="make larger bursts, and several of them")
    options = parser.parse_args()
    MemoryChecks.program, MemoryChecks.thorough = options.server.resolve(), options.thorough
    passed, failed = run(unittest.defaultTestLoader.loadTestsFromTestCase(MemoryChecks))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
