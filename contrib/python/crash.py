"""Kills a server again and again under the load of several client processes, and checks what it still knows when it is back.

    python3 crash.py --server PATH [--cycles 50] [--engine log] [--processes 4] [--seed N] [--keep]

Each process owns some keys. It sends writes in batches that it does not wait for one by one, and notes what was acknowledged; it also
reads what the others write. After each SIGKILL, at a random moment that may be in the recovery from the one before, the store must hold
for each process what was acknowledged and then some first part of what was not, in its order and with commits of many keys as a whole;
no key may be older than anyone has seen it; and revisions go on.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import larder_wire as wire
from larder import Client, LarderError, Store
from larder_wire import Entry, Operation, Write
from session import Server

# What an operation makes of keys: their values, or None for those that it deletes.
Effect = dict[str, bytes | None]


@dataclass
class Figures:
    """What one process did in one cycle, and what it found wrong."""

    acknowledged: int = 0
    survived: int = 0
    violations: list[str] = field(default_factory=list)


class Owner:
    """The writer and reader of some keys, in a process of its own."""

    def __init__(self, number: int, count: int, address: str, seed: int) -> None:
        self.address = address
        self.choose = random.Random(seed * 1_000 + number)
        self.keys = [f"p{number}:{index:03}" for index in range(200)]
        self.counter = f"counter:{number}"
        self.counters = [f"counter:{other}" for other in range(count)]
        self.model: dict[str, bytes] = {}
        self.pending: list[Effect] = []
        self.seen: dict[str, int] = {}
        self.last_revision = 0
        self.counted = 0

    def run(self, cycle: int) -> Figures:
        figures = Figures()
        try:
            with self.connect() as client:
                store = client.open("crash")
                self.verify(store, figures)
                while True:
                    self.work(client, store, figures)
        except LarderError as error:
            if error.code is not None:
                figures.violations.append(f"a request was refused: {error}")
            return figures

    def connect(self) -> Client:
        deadline = time.monotonic() + 20
        while True:
            try:
                return Client(self.address, timeout=20)
            except LarderError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.002)

    # The check

    def verify(self, store: Store, figures: Figures) -> None:
        names = [*self.keys, self.counter]
        found = {name: entry.value for name, entry in zip(names, store.get_many(names)) if entry}
        expected, survived = dict(self.model), 0
        while found != expected and survived < len(self.pending):
            apply(self.pending[survived], expected)
            survived += 1
        if found != expected:
            figures.violations.append(describe(found, self.model, self.pending))
        else:
            figures.survived += survived
        self.model, self.pending = found, []
        for name, entry in zip(self.counters, store.get_many(self.counters)):
            self.check_counter(name, entry, figures)

    def check_counter(self, name: str, entry: Entry | None, figures: Figures) -> None:
        value = int(entry.value) if entry else 0
        if value < self.seen.get(name, 0):
            figures.violations.append(f"{name} was seen at {self.seen[name]} and is {value}")
        self.seen[name] = value

    # The load

    def work(self, client: Client, store: Store, figures: Figures) -> None:
        """A batch of writes, all sent before the first answer is waited for."""
        sent = [self.send_write(client, store) for _ in range(self.choose.choice((1, 2, 8, 32)))]
        reads = [client.send(Operation.get, wire.encode_key(name), store.handle) for name in self.counters]
        for id, returns_revision in sent:
            number = wire.decode_integer(client.receive(id).body)
            if returns_revision:
                if number <= self.last_revision:
                    figures.violations.append(f"revision {number} comes behind {self.last_revision}")
                self.last_revision = number
            apply(self.pending.pop(0), self.model)
            figures.acknowledged += 1
        for name, id in zip(self.counters, reads):
            try:
                (entry,) = wire.decode_records(client.receive(id).body)
            except LarderError as error:
                if error.code != wire.Code.notFound:
                    raise
                entry = None
            self.check_counter(name, entry, figures)

    def send_write(self, client: Client, store: Store) -> tuple[int, bool]:
        """Sends one write. Its id, and whether the answer is a revision."""
        kind = self.choose.random()
        if kind < 0.1:
            key = self.choose.choice(self.keys)
            self.pending.append({key: None})
            return client.send(Operation.delete, wire.encode_delete(key), store.handle), False
        if kind < 0.2:
            effect: Effect = {key: self.value() for key in self.choose.sample(self.keys, 8)}
            writes = [Write(key, value) for key, value in effect.items()]
            self.pending.append(effect)
            return client.send(Operation.put_many, wire.encode_writes(writes), store.handle), True
        if kind < 0.4:
            self.counted += 1
            key, value = self.counter, b"%d" % self.counted
        else:
            key, value = self.choose.choice(self.keys), self.value()
        self.pending.append({key: value})
        return client.send(Operation.put, wire.encode_write(Write(key, value)), store.handle), True

    def value(self) -> bytes:
        size = self.choose.choices((0, 10, 100, 2_000, 40_000), weights=(1, 5, 20, 5, 0.3))[0]
        return self.choose.randbytes(size)


def apply(effect: Effect, model: dict[str, bytes]) -> None:
    for key, value in effect.items():
        if value is None:
            model.pop(key, None)
        else:
            model[key] = value


def describe(found: dict[str, bytes], model: dict[str, bytes], pending: list[Effect]) -> str:
    """Where what was found is closest to: how many of the unacknowledged writes, and what is different then."""
    expected, best = dict(model), ""
    fewest = len(found) + len(model) + 1
    for count in range(len(pending) + 1):
        if count:
            apply(pending[count - 1], expected)
        wrong = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
        if len(wrong) < fewest:
            fewest = len(wrong)
            parts = [f"{key} {origin(key, found.get(key), model, pending)} and not {origin(key, expected.get(key), model, pending)}" for key in wrong]
            best = f"closest to {count} of {len(pending)} unacknowledged writes, but for " + "; ".join(parts[:5])
    return best


def origin(key: str, value: bytes | None, model: dict[str, bytes], pending: list[Effect]) -> str:
    """Which write has made the value."""
    writes = [str(index) for index, effect in enumerate(pending) if key in effect and effect[key] == value]
    if model.get(key) == value:
        writes.insert(0, "what was acknowledged")
    size = "nothing" if value is None else f"{len(value)} bytes"
    return f"is {size} of write {' or '.join(writes) or 'unknown'}"


def serve(number: int, count: int, address: str, seed: int, pipe: Connection) -> None:
    owner = Owner(number, count, address, seed)
    while (cycle := pipe.recv()) is not None:
        pipe.send(owner.run(cycle))


def main() -> int:
    parser = argparse.ArgumentParser(description="Kills a Larder server under load and checks what it still knows.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--engine", default="log", help="the store's engine and options, as in --store NAME=ENGINE")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="leave the data where it is, and say where")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    directory = Path(tempfile.mkdtemp(prefix="larder-crash-"))
    choose = random.Random(options.seed)
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    address = f"unix:{directory}/larder.sock"
    for number in range(options.processes):
        own, other = context.Pipe()
        process = context.Process(
            target=serve, args=(number, options.processes, address, options.seed, other), daemon=True
        )
        process.start()
        pipes.append(own)
        processes.append(process)

    total, early, longest = Figures(), 0, 0.0
    try:
        for cycle in range(options.cycles + 1):
            server = Server(
                options.server.resolve(), directory, "--data", str(directory / "data"), "--store", f"crash={options.engine}"
            )
            try:
                if choose.random() < 0.15:
                    # In the recovery, if it takes that long.
                    time.sleep(choose.uniform(0, 0.03))
                    server.end()
                    early += 1
                    continue
                start = time.monotonic()
                server.wait_until_it_accepts()
                longest = max(longest, time.monotonic() - start)
                for pipe in pipes:
                    pipe.send(cycle)
                time.sleep(choose.uniform(0.02, 0.4))
            finally:
                server.end()
            for pipe in pipes:
                figures = pipe.recv()
                total.acknowledged += figures.acknowledged
                total.survived += figures.survived
                total.violations += [f"cycle {cycle}: {violation}" for violation in figures.violations]
            if total.violations:
                break
    finally:
        for pipe in pipes:
            pipe.send(None)
    for violation in total.violations[:20]:
        print(f"FAILED {violation}")
    print(
        f"{cycle} kills ({early} of them early), {total.acknowledged} writes acknowledged and none lost, {total.survived} more survived,"
        f" longest start {longest:.2f} s"
        if not total.violations
        else f"the data is in {directory}"
    )
    if not total.violations and not options.keep:
        for path in sorted(directory.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        directory.rmdir()
    print(f"{0 if total.violations else 1} passed, {1 if total.violations else 0} failed")
    return 1 if total.violations else 0


if __name__ == "__main__":
    sys.exit(main())
