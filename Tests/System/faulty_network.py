"""Checks replicated stores while everything between and below their servers fails.

    python3 faulty_network.py --server PATH [--seconds 20] [--seed N] [--sabotage]

Three larderds reach their database through proxies that delay, cut, swallow replies, and stay silent. Leaders are killed,
and paused for longer than their lease. The database's primary is killed, and its standby promoted, often after waits for
the standby were canceled, so that the primary has shown commits that nobody else has. Meanwhile each of several clients
writes ascending numbers under a key of its own, and others read these keys at all servers.

A read has to return the last number that was acknowledged before it, or one that was sent later, and never less than an
earlier read. With --sabotage, reads that may be old are checked in the same way, which must be noticed.
"""

from __future__ import annotations

import argparse
import json
import random
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from larder import Client, LarderError, Store
from larder_wire import Outcome
from postgres import Postgres, wait_for

LEASE = 1.0
WRITERS, READERS = 4, 3


class Proxy(threading.Thread):
    """Carries connections to a Unix socket, well or badly."""

    def __init__(self, target: str, rng: random.Random) -> None:
        super().__init__(daemon=True)
        self.target, self.rng = target, rng
        self.mode = "pass"
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        # The other end of each socket, and whether data from it are replies.
        self.peers: dict[socket.socket, tuple[socket.socket, bool]] = {}
        self.must_cut = False
        self.start()

    def cut(self) -> None:
        self.must_cut = True

    def run(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self.server, selectors.EVENT_READ)
        while True:
            ready = selector.select(0.02)
            if self.must_cut:
                self.must_cut = False
                for end in list(self.peers):
                    self.close(end, selector)
                continue
            if self.mode == "silent":
                time.sleep(0.02)
                continue
            for key, _ in ready:
                if key.fileobj is self.server:
                    self.accept(selector)
                elif key.fileobj in self.peers:
                    self.carry(key.fileobj, selector)

    def accept(self, selector: selectors.BaseSelector) -> None:
        client, _ = self.server.accept()
        database = socket.socket(socket.AF_UNIX)
        try:
            database.connect(self.target)
        except OSError:
            client.close()
            return
        self.peers[client], self.peers[database] = (database, False), (client, True)
        for end in (client, database):
            selector.register(end, selectors.EVENT_READ)

    def carry(self, source: socket.socket, selector: selectors.BaseSelector) -> None:
        peer, is_reply = self.peers[source]
        try:
            data = source.recv(1 << 16)
        except OSError:
            data = b""
        if self.mode == "delay":
            time.sleep(self.rng.uniform(0, 0.05))
        # What was asked for happens, and nobody learns of it.
        if not data or self.mode == "swallow" and is_reply:
            self.close(source, selector)
            return
        try:
            peer.sendall(data)
        except OSError:
            self.close(source, selector)

    def close(self, end: socket.socket, selector: selectors.BaseSelector) -> None:
        if end in self.peers:
            peer, _ = self.peers.pop(end)
            self.peers.pop(peer)
            for closed in (end, peer):
                selector.unregister(closed)
                closed.close()


class Database:
    """A primary and a synchronous standby, which takes over when the primary is killed."""

    def __init__(self) -> None:
        self.postgres = Postgres()
        self.postgres.add_standbys(1)
        self.primary, self.port = self.postgres.data, 5432
        self.standby, self.standby_port = self.postgres.standbys.pop(), 5433

    @property
    def socket(self) -> str:
        return f"{self.postgres.folder}/.s.PGSQL.{self.port}"

    def query(self, sql: str) -> str:
        return self.postgres.query(sql, self.port)

    def fail_over(self) -> None:
        self.postgres.signal(signal.SIGKILL, self.primary)
        self.postgres.signal(signal.SIGCONT, self.standby)
        self.postgres.control(self.standby, "promote")
        shutil.rmtree(self.primary, ignore_errors=True)
        self.primary, self.port = self.standby, self.standby_port
        self.standby_port += 1
        self.standby = self.postgres.start_standby(self.standby_port, of=self.port)

    def remove(self) -> None:
        for data in (self.standby, self.primary):
            self.postgres.signal(signal.SIGKILL, data)
        shutil.rmtree(self.postgres.folder, ignore_errors=True)


class Node:
    def __init__(self, program: Path, folder: Path, name: str, database: Database, rng: random.Random) -> None:
        self.program, self.folder, self.name = program, folder, name
        self.proxy = Proxy(database.socket, rng)
        self.address = f"unix:{folder}/{name}"
        self.start()

    def start(self) -> None:
        settings = self.folder / f"{self.name}.yaml"
        settings.write_text(json.dumps({
            "listen": [self.address], "cluster.node": self.name, "cluster.lease": f"{int(LEASE * 1_000)}ms",
            "databases": [f"main=postgresql://larder@127.0.0.1:{self.proxy.port}/postgres?connect_timeout=2"],
        }))
        with (self.folder / f"{self.name}.log").open("a") as log:
            self.process = subprocess.Popen([self.program, f"--config={settings}"], stderr=log)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


class Worker(threading.Thread):
    """A client that asks one server after the other."""

    def __init__(self, test: Test) -> None:
        super().__init__(daemon=True)
        self.test, self.stores, self.server = test, {}, 0
        self.failure: str | None = None

    def run(self) -> None:
        try:
            while not self.test.ends.is_set() and self.failure is None:
                self.step()
        except Exception as error:
            self.failure = self.failure or f"{error!r}"

    def store(self) -> Store:
        node = self.test.nodes[self.server]
        if node.name not in self.stores:
            client = Client(node.address, timeout=3)
            try:
                self.stores[node.name] = client.open("s", max_staleness=self.max_staleness)
            except LarderError:
                client.close()
                raise
        return self.stores[node.name]

    max_staleness: int | None = None

    def leave(self) -> None:
        store = self.stores.pop(self.test.nodes[self.server].name, None)
        if store:
            store.client.close()
        self.server = (self.server + 1) % len(self.test.nodes)
        time.sleep(0.005)


class Writer(Worker):
    def __init__(self, test: Test, key: str) -> None:
        super().__init__(test)
        self.key, self.sent, self.acknowledged, self.unknown_count = key, 0, 0, 0

    def step(self) -> None:
        try:
            store = self.store()
        except LarderError:
            self.leave()
            return
        self.sent += 1
        try:
            store.put(self.key, str(self.sent).encode())
            self.acknowledged = self.sent
        except LarderError as error:
            # The client tells apart what was executed, what was not, and what may have been.
            self.unknown_count += error.outcome is Outcome.unknown
            self.leave()


class Reader(Worker):
    def __init__(self, test: Test, *, is_old: bool = False) -> None:
        super().__init__(test)
        self.count = 0
        self.max_staleness = 60_000 if is_old else None

    def step(self) -> None:
        writer = self.test.rng.choice(self.test.writers)
        least = max(writer.acknowledged, self.test.seen[writer.key])
        try:
            entry = self.store().get(writer.key)
        except LarderError:
            self.leave()
            return
        most, found = writer.sent, int(entry.value) if entry else 0
        if not least <= found <= most:
            self.failure = f"{self.test.nodes[self.server].name} has shown {found} for {writer.key}, instead of {least} to {most}"
            return
        self.count += 1
        self.test.show(writer.key, found)
        if self.test.rng.random() < 0.05:
            self.leave()


class Test:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.rng = random.Random(options.seed)
        self.options, self.ends, self.counts = options, threading.Event(), {}
        self.database = Database()
        self.nodes = [Node(options.server.resolve(), folder, name, self.database, self.rng) for name in ("a", "b", "c")]
        self.lock = threading.Lock()
        self.seen = {f"k{number}": 0 for number in range(WRITERS)}
        self.writers = [Writer(self, key) for key in self.seen]

    def show(self, key: str, number: int) -> None:
        with self.lock:
            self.seen[key] = max(self.seen[key], number)

    def run(self) -> str | None:
        """Returns what is wrong, if anything is."""
        wait_for(self.creates, 20, "no server creates the store")
        readers = [Reader(self, is_old=self.options.sabotage) for _ in range(READERS)]
        workers = [*self.writers, *readers]
        for worker in workers:
            worker.start()
        end = time.monotonic() + self.options.seconds
        faults = (self.disturb, self.disturb, self.disturb, self.kill, self.pause, self.fail_over)
        while time.monotonic() < end and not any(worker.failure for worker in workers):
            fault = self.rng.choice(faults)
            self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1
            fault()
            time.sleep(self.rng.uniform(0, 1))
        before = [writer.acknowledged for writer in self.writers]
        try:
            wait_for(
                lambda: all(w.acknowledged > b for w, b in zip(self.writers, before)) or any(w.failure for w in workers), 40,
                "the writes don't go on")
        except AssertionError as error:
            return f"{error}: {self.nodes[0].folder}"
        finally:
            self.ends.set()
        for worker in workers:
            worker.join()
        self.reads = sum(reader.count for reader in readers)
        return next((worker.failure for worker in workers if worker.failure), None)

    def creates(self) -> bool:
        try:
            with Client(self.nodes[0].address) as client:
                client.create("s", "replicated")
            return True
        except LarderError:
            return False

    # Faults

    def disturb(self) -> None:
        proxy, mode = self.rng.choice(self.nodes).proxy, self.rng.choice(("delay", "cut", "swallow", "silent"))
        if mode == "cut":
            proxy.cut()
            return
        proxy.mode = mode
        time.sleep(self.rng.uniform(0, 2.5 * LEASE if mode == "silent" else LEASE))
        proxy.mode = "pass"

    def kill(self) -> None:
        node = self.rng.choice(self.nodes)
        node.kill()
        time.sleep(self.rng.uniform(0, 2))
        node.start()

    def pause(self) -> None:
        node = self.rng.choice(self.nodes)
        node.process.send_signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(0, 2.5 * LEASE))
        node.process.send_signal(signal.SIGCONT)

    def fail_over(self) -> None:
        if self.rng.random() < 0.7:
            # Commits wait, and are shown without having reached the standby.
            self.database.postgres.signal(signal.SIGSTOP, self.database.standby)
            for _ in range(20):
                self.database.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
                time.sleep(self.rng.uniform(0, 0.02))
        self.database.fail_over()
        for node in self.nodes:
            node.proxy.target = self.database.socket
            node.proxy.cut()

    def remove(self) -> None:
        for node in self.nodes:
            node.kill()
        self.database.remove()

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        sent = sum(writer.sent for writer in self.writers)
        unknown = sum(writer.unknown_count for writer in self.writers)
        return (
            f"{self.reads:,} reads were right, and {sent:,} writes, {unknown:,} of which had an unknown outcome; faults: {counts}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks replicated stores while their database and its network fail.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--sabotage", action="store_true", help="expect reads to be current that may be old, and a violation")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="larder-faulty-"))
    test = Test(options, folder)
    try:
        violation = test.run()
    finally:
        test.remove()
    passed = (violation is not None) == options.sabotage
    if passed:
        shutil.rmtree(folder)
        print(f"seed {options.seed}: {violation if options.sabotage else test}")
    else:
        print(f"FAILED seed {options.seed}: {violation or 'the sabotage was not noticed'}")
    print(f"{1 if passed else 0} passed, {0 if passed else 1} failed")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
