"""Checks that a larderd returns the memory of a burst to the system, and that its memory is bounded and explained.

    python3 memory.py --server PATH [--thorough]

Each check starts this larderd, makes it use much memory, and compares the resident memory, as Linux reports it, with
what the server accounts for.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import select
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import larder_wire as wire
from brief_case import BriefCase, run
from larder import Client, LarderError, Store, Write
from larder_wire import Code, Operation, Outcome
from server_process import Server
from session_case import RawConnection

MEBIBYTE = 1 << 20
# How much the resident memory may exceed what is accounted for: a share of it, and the code and the allocator.
ACCOUNTED_SHARE, FIXED_BYTES = 1.25, 32 * MEBIBYTE
RECOVERY_SECONDS = 10


class MemoryCase(BriefCase):
    program: Path
    thorough = False
    options: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="larder-memory-")
        self.addCleanup(directory.cleanup)
        self.server = Server(self.program, Path(directory.name), "--workers", "2", *self.options, prefix=self.prefix)
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
        deadline = time.monotonic() + RECOVERY_SECONDS
        while True:
            figures = self.client.stats()
            parts = {name: value for name, value in figures.items() if name.startswith("memory_") and name != "memory_bytes"}
            resident, explained = figures["resident_bytes"], sum(parts.values())
            if abs(resident - explained) <= 0.1 * resident:
                return
            self.assertLess(time.monotonic(), deadline, f"{explained} of {resident} bytes are explained: {parts}")
            time.sleep(0.2)

    def close(self, connections: Iterable[RawConnection | Client]) -> None:
        """Closes connections, and waits until the server has noticed."""
        for connection in connections:
            connection.close()
        deadline = time.monotonic() + RECOVERY_SECONDS
        while self.client.stats()["connections"] > 1:
            self.assertLess(time.monotonic(), deadline, "connections are still open")
            time.sleep(0.02)


class MemoryChecks(MemoryCase):
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

    def test_uploads(self) -> None:
        """Of clients that never put them: the server refuses parts beyond its limit, and forgets all with the connections."""
        store = self.create_store()
        refused, clients = 0, [Client(self.server.address, timeout=30) for _ in range(10)]
        for client in clients:
            handle = client.open("store").handle
            for _ in range(8):
                upload = wire.decode_integer(client.request(Operation.upload_begin, store=handle))
                try:
                    for offset in range(0, 15 * MEBIBYTE, MEBIBYTE):
                        client.request(Operation.upload_part, wire.encode_upload_part(upload, offset, bytes(MEBIBYTE)))
                except LarderError as error:
                    self.assertEqual((error.code, error.outcome), (Code.tooManyRequests, Outcome.not_executed))
                    refused += 1
        self.assertGreater(refused, 0)
        self.assertLess(self.resident_bytes(), 640 * MEBIBYTE)
        store.put("small", bytes(100_000))
        self.close(clients)
        self.assertLess(self.client.stats()["input_bytes"], MEBIBYTE)
        self.assert_memory_comes_back()

    def test_half_frames(self) -> None:
        """The server ends some of the connections because it holds too much of their frames."""
        frame = wire.encode_frame(Operation.put, 2, bytes(15 * MEBIBYTE))[:-1]
        for _ in range(3 if self.thorough else 1):
            connections = [RawConnection.greeted(self.server.address) for _ in range(250)]
            with ThreadPoolExecutor(4) as pool:
                accepted = sum(pool.map(lambda raw: self.sends(raw, frame), connections))
            self.assertGreater(accepted, 10)
            self.close(connections)
            self.assert_memory_comes_back()

    def sends(self, raw: RawConnection, data: bytes) -> bool:
        """Returns whether the server accepts the data."""
        try:
            raw.send(data)
        except OSError:
            return False
        return raw.socket not in select.select([raw.socket], [], [], 0)[0]

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
        value_size, count = 1_000, 40_000
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
        self.assertLess(peak // MEBIBYTE, 400, "MiB were resident while open replies kept old entries")
        self.assert_memory_comes_back()
        self.close([raw])
        self.assert_memory_comes_back()


class MemoryLimitChecks(MemoryCase):
    """A server whose address space is limited, too: it would end if it took much more than its limit."""

    limit = 256 * MEBIBYTE
    # Memory is measured once a second. In between, the server knows only what it has asked for, not what the heap adds.
    tolerance = 1.1
    options = ("--memory-limit", "256MiB", "--store", "cache=memory?limit=192MiB")
    prefix = ("prlimit", f"--as={2_048 * MEBIBYTE}")

    def fill(self, store: Store, size: int, total: int) -> int:
        """Writes distinct values until they are refused. Returns how many were not."""
        per_request = max(1, MEBIBYTE // size)
        for start in range(0, total // size, per_request):
            writes = [Write(f"{size} {number}", bytes(size)) for number in range(start, start + per_request)]
            try:
                store.put_many(writes)
            except LarderError as error:
                self.assertEqual((error.outcome, error.code), (Outcome.not_executed, Code.storeFull))
                self.assertIn("memory-limit", str(error))
                return start
            self.assertLess(self.resident_bytes(), self.limit * self.tolerance)
        self.fail(f"{total} bytes of values of {size} were written")

    def test_writes_are_refused_and_everything_else_goes_on(self) -> None:
        store = self.create_store()
        for size in (1_000, 100_000, 4 * MEBIBYTE):
            written = self.fill(store, size, 2 * self.limit)
            self.assertGreater(written * size, self.limit / 2)
            self.assertEqual(store.get(f"{size} 0").value, bytes(size))
            self.assertEqual(store.delete_all(), written)
            self.wait_until_writable(store, size)
            store.delete_all()

    def wait_until_writable(self, store: Store, size: int) -> None:
        """Memory that was deleted can be used again soon."""
        deadline = time.monotonic() + RECOVERY_SECONDS
        while True:
            try:
                for number in range(64 * MEBIBYTE // size // 100 * 100 or 16):
                    store.put(f"{number % 100} again", bytes(size))
                return
            except LarderError as error:
                self.assertEqual(error.code, Code.storeFull)
                self.assertLess(time.monotonic(), deadline, "the memory of deleted entries is not usable")
                time.sleep(0.2)

    def test_a_store_with_a_limit_evicts_for_itself_and_for_others(self) -> None:
        store, cache = self.create_store(), self.client.open("cache")
        for number in range(1_000):
            store.put(f"{number}", bytes(100_000))
        for size in (1_000, 50_000):
            for start in range(0, self.limit // size, MEBIBYTE // size):
                cache.put_many([Write(f"{number}", bytes(size)) for number in range(start, start + MEBIBYTE // size)])
                self.assertLess(self.resident_bytes(), self.limit * self.tolerance)
        self.assertGreater(cache.stats()["evicted_total"], 0)
        before = cache.count()
        self.assertGreater(before, 100)
        # The other store takes what the cache gives up.
        deadline = time.monotonic() + 30
        written = 0
        while written < 50 * MEBIBYTE // 100_000:
            try:
                store.put(f"more {written}", bytes(100_000))
                written += 1
            except LarderError as error:
                self.assertEqual(error.code, Code.storeFull)
                self.assertLess(time.monotonic(), deadline, "the cache does not give up memory")
                time.sleep(0.1)
        self.assertLess(cache.count(), before)
        self.assertLess(self.resident_bytes(), self.limit * self.tolerance)
        self.assertEqual(store.count(), 1_000 + written)

    def test_a_limit_of_a_store_above_that_of_the_process_is_refused(self) -> None:
        with tempfile.NamedTemporaryFile() as empty:
            arguments = ["config", "check", empty.name, "--memory-limit", "256MiB", "--store", "large=memory?limit=1GiB"]
            checked = subprocess.run([self.program, *arguments], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 78)
        self.assertIn("memory-limit", checked.stderr)


class AddressSpaceChecks(MemoryCase):
    """A server to which the system gives no more memory."""

    def test_connections_are_told_why_they_end(self) -> None:
        process = self.server.process.pid
        status = Path(f"/proc/{process}/status").read_text()
        size = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmSize:"))
        limit = size + 100 * MEBIBYTE
        frame = wire.encode_frame(Operation.put, 2, bytes(15 * MEBIBYTE))[:-1]
        connections = [RawConnection.greeted(self.server.address) for _ in range(20)]
        before = resource.prlimit(process, resource.RLIMIT_AS)
        resource.prlimit(process, resource.RLIMIT_AS, (limit, before[1]))
        notices = 0
        for raw in connections:
            self.addCleanup(raw.close)
            try:
                raw.send(frame)
                notice = raw.reply(timeout=0.1)
            except TimeoutError:
                continue
            assert notice is not None, "a connection was closed without a notice"
            self.assertEqual((notice.id, notice.code), (0, Code.tooManyRequests))
            self.assertIn("memory", notice.body.decode())
            notices += 1
        self.assertGreater(notices, 5)
        resource.prlimit(process, resource.RLIMIT_AS, before)
        store = self.create_store()
        store.put("key", bytes(MEBIBYTE))
        self.assertEqual(len(store.get("key").value), MEBIBYTE)


class CommandChecks(MemoryCase):
    """`larder put` and `larder get` of a value of 48 MiB, whose memory must not grow with it."""

    options = ("--max-frame", str(64 * MEBIBYTE))
    size = 48 * MEBIBYTE

    def peak_bytes(self, *arguments: str, **files: IO[bytes]) -> int:
        """Runs `larder` and returns the greatest size of its resident memory."""
        command = [self.program.with_name("larder"), "--server", self.server.address, *arguments]
        process = subprocess.Popen(command, **files)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0, arguments)
        return usage.ru_maxrss << 10

    def test_values_of_commands(self) -> None:
        self.create_store()
        with tempfile.TemporaryFile() as value, tempfile.TemporaryFile() as output:
            for number in range(self.size // MEBIBYTE):
                value.write(random.Random(number).randbytes(MEBIBYTE))
            value.seek(0)
            base = self.peak_bytes("ping", stdout=subprocess.DEVNULL)
            peaks = [self.peak_bytes("put", "store", "key", stdin=value, stdout=subprocess.DEVNULL)]
            peaks.append(self.peak_bytes("get", "store", "key", stdout=output))
            self.assertLess(max(peaks), base + self.size // 4, "put and get keep much of the value in memory")
            value.seek(0)
            output.seek(0)
            self.assertTrue(value.read() == output.read())


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the memory of a larderd.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--thorough", action="store_true", help="make larger bursts, and several of them")
    options = parser.parse_args()
    MemoryCase.program, MemoryCase.thorough = options.server.resolve(), options.thorough
    cases = (MemoryChecks, MemoryLimitChecks, AddressSpaceChecks, CommandChecks)
    suites = (unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in cases)
    passed, failed = run(unittest.TestSuite(suites))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
