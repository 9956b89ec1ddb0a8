"""Sends random requests to a server from several connections, kills and restarts it, and records what happens."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from larder import Client, LarderError
from larder_wire import Check, Delete, Operation, Update, Write
from linearizability import Epoch, Watched
from server_process import Server
from store_model import Apply, Call, ChangeMatching, Remove, Request, document, update
from store_reads import Aggregate, Count, Find, Get, GetMany, Page, Revision, seen_revisions

KEYS = tuple(f"{prefix}{number}" for prefix in "ab" for number in range(4))
SIZES, SIZE_WEIGHTS = (0, 20, 200, 3_000, 40_000), (5, 10, 10, 3, 1)


class Requests:
    """Makes random requests on one store. The same tag is never used twice."""

    def __init__(self, rng: random.Random, expiring: float = 0.08, keys: Sequence[str] = KEYS) -> None:
        self.rng, self.expiring, self.keys = rng, expiring, keys
        self.count = 0
        # The last revision that a reply had for each key, for conditions that are often met.
        self.revisions: dict[str, int] = {}

    def next(self) -> Request:
        rng = self.rng
        kinds = (self.put, self.put_many, self.remove, self.apply, self.change_matching, self.get, self.read_many, self.find)
        return rng.choices(kinds, weights=(30, 8, 10, 12, 2, 18, 16, 4))[0]()

    def tag(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def write(self, key: str, tag: str, *, only_document: bool = False) -> Write:
        rng = self.rng
        expiry = rng.choice((1, 5, 20, 60, 60_000)) if rng.random() < self.expiring else None
        value: bytes | list[bytes] = document(tag, rng.randrange(10), rng.choices(SIZES, SIZE_WEIGHTS)[0])
        if not only_document and rng.random() < 0.05:
            value = [tag.encode(), b"", rng.randbytes(10)]
        return Write(key, value, expiry, **self.condition(key))

    def condition(self, key: str) -> dict[str, object]:
        kind = self.rng.random()
        if kind < 0.1:
            return {"if_absent": True}
        return {"if_revision": self.revisions.get(key, 1)} if kind < 0.25 else {}

    def put(self) -> Request:
        tag, is_upload = self.tag(), self.rng.random() < 0.05
        write = self.write(self.rng.choice(self.keys), tag, only_document=is_upload)
        return Apply((write,), Operation.upload_put if is_upload else Operation.put, tag=tag)

    def put_many(self) -> Request:
        tag = self.tag()
        keys = self.rng.sample(self.keys, self.rng.randrange(2, 5))
        return Apply(tuple(self.write(key, tag) for key in keys), Operation.put_many, tag=tag)

    def remove(self) -> Request:
        kind, tag = self.rng.random(), self.tag()
        if kind < 0.02:
            return Remove(None, tag=tag)
        if kind < 0.3:
            return Remove(tuple(self.rng.sample(self.keys, self.rng.randrange(2, 4))), tag=tag)
        key = self.rng.choice(self.keys)
        return Remove((key,), self.condition(key).get("if_revision"), tag=tag)

    def apply(self) -> Request:
        tag = self.tag()
        keys = self.rng.sample(self.keys, self.rng.choice((1, 1, 2, 3)))
        return Apply(tuple(self.operation(key, tag) for key in keys), tag=tag)

    def operation(self, key: str, tag: str) -> Write | Delete | Update | Check:
        condition = self.condition(key)
        revision = condition.get("if_revision")
        match self.rng.choices(("write", "delete", "update", "check"), weights=(3, 1, 6, 1))[0]:
            case "write":
                return self.write(key, tag)
            case "delete":
                return Delete(key, revision)
            case "check" if condition:
                return Check(key, **condition)
        return Update(key, update(tag), revision, create=self.rng.random() < 0.5)

    def change_matching(self) -> Request:
        return ChangeMatching(self.rng.choice(("a", "b", "a1")), self.rng.random() < 0.2, tag=self.tag())

    def get(self) -> Request:
        return Get(self.rng.choice(self.keys), self.rng.choice((0, 10)) if self.rng.random() < 0.2 else None)

    def read_many(self) -> Request:
        rng = self.rng
        match rng.randrange(4):
            case 0:
                return GetMany(tuple(rng.choices(self.keys, k=rng.randrange(1, 6))))
            case 1:
                return Count(rng.choice(("", "a", "b", "c")))
            case 2:
                return Page(keys_only=rng.random() < 0.5)
        cursor = rng.choice(self.keys) if rng.random() < 0.5 else None
        return Page(rng.randrange(5), rng.randrange(3), rng.choice(("", "a")), cursor, rng.random() < 0.5, rng.random() < 0.5)

    def find(self) -> Request:
        return Find(self.rng.randrange(8)) if self.rng.random() < 0.7 else Aggregate()


class Session:
    """A connection with its calls on each store, and the calls that have no reply yet."""

    def __init__(self, address: str, stores: Iterable[str]) -> None:
        self.client = Client(address, timeout=30)
        self.handles = {store: self.client.open(store).handle for store in stores}
        self.calls: dict[str, list[Call]] = {store: [] for store in self.handles}
        self.pending: list[tuple[int, str, Call]] = []

    def send(self, store: str, request: Request) -> None:
        call = Call(request, time.monotonic_ns())
        self.calls[store].append(call)
        self.pending.append((request.send(self.client, self.handles[store]), store, call))

    def receive(self) -> tuple[str, Call]:
        """Receives the reply to the oldest request."""
        id, store, call = self.pending[0]
        call.result = call.request.receive(self.client, id)
        call.returned = time.monotonic_ns()
        del self.pending[0]
        return store, call

    def end(self, killed: int) -> None:
        """Receives what the server has sent before it was killed."""
        for id, _, call in self.pending:
            try:
                call.result = call.request.receive(self.client, id)
            except LarderError:
                pass
            call.returned = killed
        self.client.close()


class Watcher(threading.Thread):
    """Watches a store until the server ends."""

    def __init__(self, address: str, store: str) -> None:
        super().__init__(daemon=True)
        self.address, self.store = address, store
        self.watched: Watched | None = None
        self.start()

    def run(self) -> None:
        try:
            with Client(self.address, timeout=30) as client:
                watch = client.open(self.store).watch()
                self.watched = Watched(watch.through, watch.through)
                while True:
                    self.watched.changes += watch.next_changes()
                    self.watched.through = watch.through
        except LarderError:
            # The server has ended.
            pass


class Recorder:
    """Records one history for each of some stores, given as `name=specification`."""

    def __init__(self, program: Path, directory: Path, stores: list[str], rng: random.Random, prefix: Sequence[str] = ()) -> None:
        self.program, self.directory, self.rng, self.prefix = program, directory, rng, prefix
        self.data, self.specifications = directory / "data", stores
        self.requests = {store.split("=")[0]: Requests(rng) for store in stores}
        self.histories: dict[str, list[Epoch]] = {store: [] for store in self.requests}
        self.watches = True
        # The database of replicated stores. Every server is another node than the one before, or the same one again.
        self.database = ""
        self.kills = self.kills_during_start = self.operations = 0

    def record(self, operations: int, kills: int) -> None:
        """Records calls between kills, and what the last one has left. Kills some starts, too."""
        for count in [operations // kills] * kills + [0]:
            while self.rng.random() < 0.15:
                self.kill_start()
            self.run(count)

    def start(self) -> Server:
        options = [option for store in self.specifications for option in ("--store", store)]
        options += ["--data", str(self.data), "--workers", str(self.rng.choice((1, 1, 2, 3)))]
        environment = {
            "LARDERD_DATABASES": f"main={self.database}", "LARDERD_CLUSTER_NODE": self.rng.choice("ab"), "LARDERD_CLUSTER_LEASE": "500ms",
        } if self.database else {}
        return Server(self.program, self.directory, *options, prefix=self.prefix, environment=environment)

    def kill_start(self) -> None:
        server = self.start()
        time.sleep(self.rng.uniform(0, 0.02))
        server.kill()
        self.kills_during_start += 1

    def run(self, operations: int) -> None:
        """Starts a server, reads what it has, sends it requests, and kills it."""
        server = self.start()
        try:
            server.wait_until_ready(pause=0.002)
            if self.database:
                for store in self.requests:
                    server.wait_for_store(store)
            sessions = [Session(server.address, self.requests) for _ in range(self.rng.choice((2, 4, 6)))]
            for store in self.requests:
                for request in (Revision(), Page()):
                    sessions[0].send(store, request)
            self.receive_all(sessions[0])
            watchers = self.work(server, sessions, operations) if operations else []
        finally:
            server.kill()
        killed = time.monotonic_ns()
        self.kills += operations > 0
        for session in sessions:
            session.end(killed)
        for watcher in watchers:
            watcher.join()
        for store, history in self.histories.items():
            watched = [watcher.watched for watcher in watchers if watcher.store == store and watcher.watched]
            history.append(Epoch([session.calls[store] for session in sessions], watched))

    def work(self, server: Server, sessions: list[Session], operations: int) -> list[Watcher]:
        """Sends requests, and ends with some that have no reply yet."""
        rng, sent = self.rng, 0
        starts = {rng.randrange(operations): store for store in self.requests if self.watches}
        watchers = []
        while sent < operations:
            for start in [start for start in starts if start <= sent]:
                watchers.append(Watcher(server.address, starts.pop(start)))
            session = rng.choice(sessions)
            if session.pending and rng.random() < 0.7:
                for _ in range(rng.randint(1, len(session.pending))):
                    self.learn(*session.receive())
            elif not session.pending:
                sent += self.send_batch(session)
        # What a watch shows first may also be taken back.
        watchers += [Watcher(server.address, store) for store in self.requests if self.watches and rng.random() < 0.5]
        for session in sessions:
            if not session.pending:
                sent += self.send_batch(session)
                # So that some of them are executed while the server writes the earlier ones.
                time.sleep(rng.choice((0, rng.uniform(0, 0.0005))))
        self.operations += sent
        time.sleep(rng.choice((0, rng.uniform(0, 0.001), rng.uniform(0, 0.005))))
        return watchers

    def send_batch(self, session: Session) -> int:
        """Sends some requests on one store."""
        store = self.rng.choice(list(self.requests))
        count = self.rng.choice((1, 1, 2, 4, 8))
        for _ in range(count):
            session.send(store, self.requests[store].next())
        return count

    def receive_all(self, session: Session) -> None:
        while session.pending:
            self.learn(*session.receive())

    def learn(self, store: str, call: Call) -> None:
        self.requests[store].revisions |= seen_revisions(call)
