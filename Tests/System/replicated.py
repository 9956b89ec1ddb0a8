"""Checks stores that outlive their server: larderd processes that share a PostgreSQL server, and what befalls them.

    python3 replicated.py --server PATH --larder PATH
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path

from brief_case import BriefCase, run
from larder import Client, LarderError, Store
from larder_wire import Code, Outcome, Write
from postgres import Postgres, wait_for

LEASE = 1.0


class Node:
    """A larderd process of a cluster."""

    def __init__(self, server: Path, folder: Path, name: str, database: str, **settings: object) -> None:
        self.server, self.folder, self.name, self.database, self.settings = server, folder, name, database, settings
        self.address = f"unix:{folder}/{name}"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        settings = {
            "listen": [self.address], "databases": [f"main={self.database}"], "cluster.node": self.name,
            "cluster.lease": f"{int(LEASE * 1_000)}ms", **self.settings,
        }
        configuration = self.folder / f"{self.name}.yaml"
        configuration.write_text(json.dumps(settings))
        with (self.folder / f"{self.name}.log").open("a") as log:
            self.process = subprocess.Popen([str(self.server), f"--config={configuration}"], stderr=log)

    @property
    def log(self) -> str:
        return (self.folder / f"{self.name}.log").read_text()

    def client(self, timeout: float = 20) -> Client:
        end = time.monotonic() + 30
        while True:
            try:
                return Client(self.address, timeout=timeout)
            except LarderError:
                assert self.process and self.process.poll() is None, f"{self.name} has ended: {self.log}"
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def signal(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process
        self.process.terminate()
        return self.process.wait(timeout=30)

    def end(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()

    def serves(self, store: str) -> bool:
        with contextlib.suppress(LarderError), self.client(timeout=5) as client:
            client.open(store)
            return True
        return False


class ReplicatedCase(BriefCase):
    server: Path
    larder_program: Path

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="larder-replicated-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.postgres = self.database()
        self.names = (f"node{number}" for number in itertools.count(1))

    def database(self, **settings: str) -> Postgres:
        postgres = Postgres(**settings)
        self.addCleanup(postgres.remove)
        return postgres

    def node(self, name: str | None = None, **settings: object) -> Node:
        node = Node(self.server, self.folder, name or next(self.names), self.postgres.address, **settings)
        self.addCleanup(node.end)
        return node

    def served(self, node: Node, store: str = "orders", seconds: float = 20) -> Store:
        """Returns the store once the node serves it."""
        wait_for(lambda: node.serves(store), seconds, f"{node.name} does not serve {store}: {node.log}")
        client = node.client()
        self.addCleanup(client.close)
        return client.open(store)

    def created(self, node: Node, store: str = "orders", options: str = "") -> Store:
        def creates() -> bool:
            with node.client() as client:
                try:
                    client.create(store, f"replicated{options}")
                except LarderError as error:
                    return error.code is Code.storeExists
                return True

        wait_for(creates, 10, f"{node.name} can't create a store")
        return self.served(node, store)


    def larder(self, nodes: list[Node], *arguments: str) -> str:
        """Returns the output of `larder`, which is given the addresses of the nodes."""
        environment = os.environ | {"LARDER_SERVER": ",".join(node.address for node in nodes)}
        result = subprocess.run([self.larder_program, *arguments], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout


class TakeoverChecks(ReplicatedCase):
    def test_another_server_takes_over_with_everything(self) -> None:
        first, second = self.node(), self.node()
        orders = self.created(first)
        orders.ensure_index(["total"], name="by-total")
        for number in range(500):
            orders.put(f"order-{number:03}", b'{"total":%d}' % number)
        orders.put("temporary", b"1", expire_after_milliseconds=3_600_000)
        orders.put("large", bytes(200_000))
        orders.delete("order-007")
        revision = orders.put("last", b"2")
        self.assertFalse(second.serves("orders"))
        first.kill()
        begun = time.monotonic()
        orders = self.served(second)
        self.assertLess(time.monotonic() - begun, LEASE * 1.1 + 4)
        self.assertEqual(orders.get("last").revision, revision)
        self.assertEqual(orders.get("large").value, bytes(200_000))
        self.assertIsNone(orders.get("order-007"))
        self.assertIsNotNone(orders.get("temporary").expire_after_milliseconds)
        self.assertEqual(orders.count(), 502)
        self.assertEqual([index["name"] for index in orders.indexes()], ["by-total"])
        self.assertEqual([entry.key for entry in orders.find({"total": {"$gt": 497}}, sort=["total"])], ["order-498", "order-499"])
        self.assertEqual(orders.put("more", b"3"), revision + 1)

    def test_a_stopped_server_hands_over_at_once(self) -> None:
        first, second = self.node(), self.node()
        self.created(first).put("a", b"1")
        self.assertEqual(first.stop(), 0)
        begun = time.monotonic()
        self.assertEqual(self.served(second).get("a").value, b"1")
        self.assertLess(time.monotonic() - begun, 3)

    def test_a_paused_server_neither_acknowledges_nor_answers_from_its_memory(self) -> None:
        first, second = self.node(), self.node()
        old = self.created(first)
        old.put("a", b"1")
        first.signal(signal.SIGSTOP)
        new = self.served(second)
        new.put("a", b"2")
        results: list[object] = []

        def ask(operation: Callable[[], object]) -> None:
            try:
                results.append(operation())
            except LarderError as error:
                results.append(error)

        with first_client(first) as other:
            threads = [
                threading.Thread(target=ask, args=(lambda: old.get("a"),)),
                threading.Thread(target=ask, args=(lambda: other.open("orders").put("a", b"3"),)),
            ]
            for thread in threads:
                thread.start()
            time.sleep(0.2)
            first.signal(signal.SIGCONT)
            for thread in threads:
                thread.join()
        for result in results:
            self.assertIsInstance(result, LarderError, f"{result}")
        self.assertEqual(new.get("a").value, b"2")
        wait_for(lambda: "another server has taken over" in first.log, 10, first.log)
        with first.client() as client, self.assertRaises(LarderError) as raised:
            client.open("orders")
        self.assertIn("node2", raised.exception.message)

    def test_stores_are_moved_and_a_server_is_drained(self) -> None:
        first, second = self.node(), self.node()
        names = [f"store{number}" for number in range(4)]
        for name in names:
            self.created(first, name).put("a", name.encode())
        with first.client() as client:
            client.move("store0", "node2")
            with self.assertRaises(LarderError) as raised:
                client.open("store0").get("a")
            self.assertIs(raised.exception.code, Code.notLeader)
            self.assertEqual(raised.exception.message.split("\n")[-1], second.address)
            with self.assertRaises(LarderError) as raised:
                client.move("store1", "node3")
            self.assertIs(raised.exception.code, Code.illegalArgument)
        self.assertEqual(self.served(second, "store0").get("a").value, b"store0")
        for name in names[1:]:
            with first.client() as client:
                client.move(name, "node2")
            self.assertEqual(self.served(second, name).get("a").value, name.encode())
        wait_for(lambda: {store.get("leader") for store in self.report(first)["stores"]} == {"node2"}, 5, "the report is old")
        self.assertEqual([node["address"] for node in self.report(second)["nodes"]], [first.address, second.address])

    def test_commands_with_the_addresses_of_all_servers(self) -> None:
        first, second = nodes = [self.node(), self.node()]
        for name in ("store0", "store1"):
            self.created(first, name)
            self.larder(nodes, "put", name, "key", name)
        for node in nodes:
            wait_for(lambda node=node: len(self.report(node)["stores"]) == 2, 5, "the report is old")
        self.assertEqual(self.larder(nodes, "cluster", "drain", "node1"), "store0\tnode2\nstore1\tnode2\n")
        self.assertEqual(self.larder(nodes, "get", "store0", "key"), "store0")
        self.larder(nodes, "cluster", "move", "store0", "node1")
        self.assertEqual(self.larder(nodes, "put", "store0", "key", "new"), "2\n")
        self.larder(nodes, "create", "own", "memory")
        names = [json.loads(line)["name"] for line in self.larder(nodes, "stores").splitlines()]
        self.assertEqual(names, ["own", "store0", "store1"])
        self.larder(nodes, "put", "own", "key", "value")
        self.larder(nodes, "copy-store", "own", "moved", "--engine", "replicated?database=main")
        first.kill()
        self.assertIn("store1", self.larder(nodes, "stores"))
        self.assertEqual(self.larder(nodes, "get", "store0", "key"), "new")
        self.assertEqual(self.larder(nodes, "get", "moved", "key"), "value")

    def report(self, node: Node) -> dict:
        with node.client() as client:
            (report,) = client.cluster()
        return report

    def test_the_same_server_comes_back(self) -> None:
        node = self.node()
        self.created(node).put("a", b"1")
        node.kill()
        node.start()
        orders = self.served(node)
        self.assertEqual(orders.get("a").value, b"1")
        node.stop()
        node.start()
        self.assertEqual(self.served(node).get("a").value, b"1")

    def assert_denies_nothing(self, node: Node, until: Callable[[], bool]) -> int:
        """Asks for a store in three protocols, and checks that it is never said to be absent. Returns how often it was asked
        for in vain."""
        attempts = 0
        end = time.monotonic() + 30
        while not until():
            self.assertLess(time.monotonic(), end, node.log)
            with contextlib.suppress(ConnectionError, FileNotFoundError), node.client() as client:
                with self.assertRaises(LarderError) as raised:
                    client.create("orders", "memory")
                self.assertIn(raised.exception.code, (Code.notLeader, Code.storeExists))
                try:
                    client.open("orders")
                except LarderError as error:
                    self.assertIs(error.code, Code.notLeader, error)
                    attempts += 1
                status = self.request(f"{node.folder}/{node.name}.http", "GET", "/v1/stores/orders/entries/a")
                self.assertIn(status, (200, 503))
                with socket.socket(socket.AF_UNIX) as resp:
                    resp.connect(f"{node.folder}/{node.name}.resp")
                    resp.sendall(b"GET a\r\n")
                    reply = resp.recv(1_000)
                self.assertRegex(reply, rb"^(-LOADING|-READONLY|\$1)", reply)
        return attempts

    @staticmethod
    def request(path: str, method: str, target: str) -> int:
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(path)
        with contextlib.closing(connection):
            connection.request(method, target)
            return connection.getresponse().status

    def test_a_server_that_comes_back_never_denies_its_stores(self) -> None:
        name = "node"
        protocols = [f"unix:{self.folder}/{name}", f"http+unix:{self.folder}/{name}.http", f"resp+unix:{self.folder}/{name}.resp"]
        settings = {"listen": protocols, "resp.databases": ["0=orders"]}
        node = self.node(name=name, **settings)
        self.created(node).put("a", b"1")
        for _ in range(3):
            node.kill()
            node.start()
            self.assertGreater(self.assert_denies_nothing(node, lambda: node.serves("orders")), 0)
        node.kill()
        self.postgres.stop("immediate")
        node.start()
        end = time.monotonic() + 2
        self.assertGreater(self.assert_denies_nothing(node, lambda: time.monotonic() > end), 10)
        self.assertEqual(self.request(f"{self.folder}/{name}.http", "GET", "/readyz"), 503)
        self.postgres.start()
        self.assert_denies_nothing(node, lambda: node.serves("orders"))
        self.assertEqual(self.served(node).get("a").value, b"1")
        self.assertEqual(self.request(f"{self.folder}/{name}.http", "GET", "/readyz"), 200)

    def test_two_servers_of_one_name_are_noticed(self) -> None:
        first = self.node(name="twin")
        self.created(first).put("a", b"1")
        folder = self.folder / "other"
        folder.mkdir()
        second = Node(self.server, folder, "twin", self.postgres.address)
        self.addCleanup(second.end)
        wait_for(lambda: "another server is the node twin" in second.log, 15, "the second one is not refused")
        self.assertEqual(self.served(first).get("a").value, b"1")

    def test_a_dropped_store_is_gone_everywhere(self) -> None:
        first, second = self.node(), self.node()
        self.created(first).put("a", b"1")
        with first.client() as client:
            client.drop("orders")
        first.kill()
        time.sleep(LEASE * 2 + 1)
        self.assertFalse(second.serves("orders"))
        self.assertEqual(self.postgres.query("SELECT count(*) FROM larder.commit"), "0")
        self.assertEqual(self.created(second).count(), 0)

    def test_snapshots_replace_commits(self) -> None:
        first, second = self.node(), self.node()
        orders = self.created(first)
        value = bytes(range(250)) * 100
        for round in range(35):
            for number in range(100):
                orders.put(f"{number:03}", value + bytes([round]))

        def is_trimmed() -> bool:
            return int(self.postgres.query("SELECT min(position) FROM larder.commit")) > 50

        wait_for(is_trimmed, 20, "no snapshot was written")
        first.kill()
        orders = self.served(second)
        self.assertEqual(orders.count(), 100)
        for number in range(100):
            self.assertEqual(orders.get(f"{number:03}").value, value + bytes([34]))

    def test_large_values_stay_in_the_database(self) -> None:
        nodes = first, second = [self.node(**{"cluster.value-cache": 1 << 20}) for _ in range(2)]
        orders = self.created(first)
        orders.ensure_index(["round"], name="by-round")

        def document(number: int, round: int) -> bytes:
            return json.dumps({"round": round, "number": number, "text": chr(97 + number) * 100_000}).encode()

        orders.put("kept", document(25, 0))
        rounds = 40
        for round in range(rounds):
            for number in range(20):
                orders.put(f"{number:02}", document(number, round))
        wait_for(
            lambda: int(self.postgres.query("SELECT min(position) FROM larder.commit")) > 20, 20, "no commits were removed")
        self.assertGreater(int(self.postgres.query("SELECT count(*) FROM larder.value")), 0)
        self.assertLess(int(self.postgres.query("SELECT count(*) FROM larder.value")), 60)

        def check(orders: Store) -> None:
            for number in range(20):
                self.assertEqual(orders.get(f"{number:02}").value, document(number, rounds - 1))
            found = orders.find({"round": rounds - 1}, sort=["round"], limit=100)
            self.assertEqual([entry.value for entry in found], [document(number, rounds - 1) for number in range(20)])
            statistics = orders.stats()
            self.assertEqual(orders.get("kept").value, document(25, 0))
            self.assertEqual(statistics["values_on_disk"], 21)
            self.assertLess(statistics["memory_bytes"], 1 << 20)

        check(orders)
        self.assertGreater(orders.stats()["replicated_value_reads_total"], 20)
        first.kill()
        check(self.served(second))
        second.stop()
        second.start()
        orders = self.served(second)
        check(orders)
        self.postgres.stop()
        with self.assertRaises(LarderError) as raised:
            for number in range(20):
                orders.get(f"{number:02}")
        self.assertIs(raised.exception.outcome, Outcome.not_executed)
        self.postgres.start()
        wait_for(lambda: second.serves("orders"), 20, second.log)
        check(self.served(second))
        with second.client() as client:
            client.drop("orders")
        self.assertEqual(self.postgres.query("SELECT count(*) FROM larder.value"), "0")

    def test_an_older_schema_is_migrated(self) -> None:
        first = self.node()
        self.created(first).put("large", bytes(50_000))
        first.stop()
        self.postgres.query("DROP TABLE larder.value; UPDATE larder.version SET version = 1")
        nodes = [self.node() for _ in range(3)]
        wait_for(lambda: any(node.serves("orders") for node in nodes), 20, nodes[0].log)
        leader = next(node for node in nodes if node.serves("orders"))
        self.assertEqual(self.served(leader).get("large").value, bytes(50_000))
        self.assertEqual(self.postgres.query("SELECT version FROM larder.version"), "2")
        self.assertEqual(self.postgres.query("SELECT count(*) FROM larder.value"), "0")

    def test_stores_from_the_settings(self) -> None:
        nodes = [self.node(stores=["carts=replicated?durability=interval:1s"]) for _ in range(2)]
        wait_for(lambda: any(node.serves("carts") for node in nodes), 10, nodes[0].log)
        server = next(node for node in nodes if node.serves("carts"))
        other = next(node for node in nodes if node is not server)
        self.served(server, "carts").put("a", b"1")
        time.sleep(1.5)
        server.kill()
        self.assertEqual(self.served(other, "carts").get("a").value, b"1")


class FollowerChecks(ReplicatedCase):
    """Reads that may be old, at a server that another one's store follows."""

    STALENESS = 2_000  # In milliseconds.

    def followed(self, node: Node, store: str = "orders") -> Store:
        client = node.client()
        self.addCleanup(client.close)
        found: list[Store] = []

        def opens() -> bool:
            with contextlib.suppress(LarderError):
                found.append(client.open(store, max_staleness=self.STALENESS))
            return bool(found)

        wait_for(opens, 20, f"{node.name} does not follow {store}: {node.log}")
        return found[0]

    def answer(self, store: Store) -> bytes | Code | None:
        """Returns the value of the key, or the code of an error."""
        try:
            return store.get("key").value
        except LarderError as error:
            return error.code

    def test_a_follower_is_a_moment_behind(self) -> None:
        first, second = self.node(), self.node()
        orders = self.created(first)
        orders.put("key", b"1")
        orders.put("large", bytes(200_000))
        orders.ensure_index(["n"], name="by-n")
        followed = self.followed(second)
        wait_for(lambda: self.answer(followed) == b"1", 5, "the follower has nothing")
        self.assertEqual(followed.get("large").value, bytes(200_000))
        with followed.watch() as watch:
            begun = time.monotonic()
            for number in range(100):
                revision = orders.put(f"key-{number}", b'{"n":%d}' % number)
            seen = 0
            while seen < revision:
                seen = watch.next_changes()[-1].revision
            self.assertLess(time.monotonic() - begun, 5)
        self.assertEqual(followed.count(), 102)
        wait_for(lambda: followed.indexes(), 10, "the follower has no index")
        self.assertEqual([entry.key for entry in followed.find({"n": {"$gt": 97}}, sort=["n"])], ["key-98", "key-99"])
        self.assertLess(followed.stats()["staleness_milliseconds"], self.STALENESS)
        for write in (lambda: followed.put("key", b"2"), lambda: followed.delete_all(), lambda: followed.ensure_index(["m"])):
            with self.assertRaises(LarderError) as raised:
                write()
            self.assertIs(raised.exception.code, Code.notLeader)

    def test_a_follower_keeps_up_with_large_values_and_many_writes(self) -> None:
        first, second = self.node(), self.node()
        orders = self.created(first)
        orders.put("key", b"1")
        followed = self.followed(second)
        # Each is larger than what is read at a time, or together they are.
        for number, size in enumerate([3_000_000, 1_048_576, 1_048_500, 10_000_000, 100, 2_000_000]):
            orders.put(f"large-{number}", bytes([number]) * size)
        orders.put("key", b"2")
        wait_for(lambda: self.answer(followed) == b"2", 10, "the follower is stuck")
        self.assertEqual([len(followed.get(f"large-{number}").value) for number in (0, 3)], [3_000_000, 10_000_000])
        writing = threading.Event()

        def write() -> None:
            with first.client() as client:
                store = client.open("orders")
                while not writing.is_set():
                    store.put_many([Write(f"many-{number}", b"value") for number in range(50)])

        thread = threading.Thread(target=write)
        thread.start()
        try:
            time.sleep(1)
            ages = []
            for _ in range(20):
                ages.append(followed.stats()["staleness_milliseconds"])
                time.sleep(0.05)
        finally:
            writing.set()
            thread.join()
        self.assertLess(max(ages), 1_500)
        last = orders.put("large-last", bytes(12_000_000))
        first.kill()
        orders = self.served(second)
        self.assertEqual(orders.get("large-last").revision, last)
        self.assertEqual(len(orders.get("large-last").value), 12_000_000)

    def test_what_is_too_old_is_not_shown(self) -> None:
        first, second = self.node(), self.node()
        orders = self.created(first)
        orders.put("key", b"1")
        followed = self.followed(second)
        wait_for(lambda: self.answer(followed) == b"1", 5, "the follower has nothing")
        second.signal(signal.SIGSTOP)
        orders.put("key", b"2")
        answers: list[object] = []
        thread = threading.Thread(target=lambda: answers.append(self.answer(followed)))
        thread.start()
        time.sleep(self.STALENESS / 1_000 + 0.2)
        second.signal(signal.SIGCONT)
        thread.join()
        self.assertIn(answers[0], (b"2", Code.notLeader, None))
        followed = self.followed(second)
        wait_for(lambda: self.answer(followed) == b"2", 5, "the follower does not catch up")

    def test_without_the_database_nothing_is_current(self) -> None:
        first, second = self.node(), self.node()
        self.created(first).put("key", b"1")
        followed = self.followed(second)
        wait_for(lambda: self.answer(followed) == b"1", 5, "the follower has nothing")
        self.postgres.stop()
        wait_for(lambda: self.answer(followed) is Code.notLeader, 10, "an old value is shown")
        self.postgres.start()
        # It may serve the store from now on, and its handle is another one then.
        wait_for(lambda: self.answer(self.followed(second)) == b"1", 20, "the follower does not come back")


class DatabaseChecks(ReplicatedCase):
    def test_a_database_that_is_away_comes_back(self) -> None:
        node = self.node()
        orders = self.created(node)
        orders.put("a", b"1")
        self.postgres.stop("immediate")
        begun = time.monotonic()
        self.assertEqual(orders.get("a").value, b"1")

        def is_refused() -> bool:
            try:
                orders.get("a")
            except LarderError as error:
                self.assertIs(error.outcome, Outcome.not_executed)
                self.assertIn("database", error.message)
                return True
            return False

        wait_for(is_refused, 10, "reads go on without the database")
        with node.client() as client:
            wait_for(lambda: client.stats()["cluster_unavailable"] == 1, 20, "the figure does not say so")
        self.assertLess(time.monotonic() - begun, LEASE + 2)
        with self.assertRaises(LarderError) as raised:
            orders.put("b", b"1")
        self.assertIs(raised.exception.outcome, Outcome.not_executed)
        self.assertIsNone(node.process.poll())
        self.postgres.start()

        def is_served() -> bool:
            try:
                return bool(orders.put("c", b"1"))
            except LarderError:
                return False

        wait_for(is_served, 20, node.log)
        self.assertEqual(orders.get("a").value, b"1")

    def test_a_write_that_waits_for_the_database_is_acknowledged_once(self) -> None:
        """The database stops in the middle of commits again and again, and every counter still adds up."""
        node = self.node()
        orders = self.created(node)
        ends = threading.Event()

        def disturb() -> None:
            while not ends.is_set():
                self.postgres.query(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'larderd%'")
                time.sleep(0.15)

        thread = threading.Thread(target=disturb)
        thread.start()
        acknowledged, value = 0, 0
        end = time.monotonic() + 8
        while time.monotonic() < end:
            try:
                value += 1
                orders.put("counter", str(value).encode())
                acknowledged = value
            except LarderError as error:
                self.assertIs(error.outcome, Outcome.not_executed, f"{error}")
                time.sleep(0.02)
        ends.set()
        thread.join()
        self.assertGreater(acknowledged, 20)
        node.kill()
        self.assertGreaterEqual(int(self.served(self.node()).get("counter").value), acknowledged)
        positions = self.postgres.query("SELECT count(*) = max(position) - min(position) + 1 FROM larder.commit")
        self.assertEqual(positions, "t")

    def test_a_database_that_went_back_is_noticed(self) -> None:
        node = self.node()
        orders = self.created(node)
        for number in range(10):
            orders.put(f"{number}", b"1")
        self.postgres.query("DELETE FROM larder.commit WHERE position > 5")
        with self.assertRaises(LarderError):
            orders.put("a", b"1")
        wait_for(lambda: "another server has taken over" in node.log, 10, node.log)

    def test_what_is_wrong_with_a_database_is_said(self) -> None:
        for settings, options, expected in (
            ({"fsync": "off"}, {}, "set fsync = on"),
            ({"synchronous_commit": "off"}, {}, "set synchronous_commit = on"),
            ({}, {"cluster.require-standby": True}, "set synchronous_standby_names"),
            ({"default_transaction_read_only": "on"}, {}, "read-only"),
        ):
            with self.subTest(expected):
                self.postgres = self.database(**settings)
                node = self.node(**options)
                with node.client() as client:
                    client.ping()
                wait_for(lambda: expected in node.log, 15, node.log)
                self.assertIsNone(node.process.poll())
                node.end()

    def test_another_version_of_the_tables_is_refused(self) -> None:
        self.node().client().close()
        wait_for(lambda: self.postgres.query("SELECT to_regclass('larder.version') IS NOT NULL") == "t", 10, "no tables")
        self.postgres.query("UPDATE larder.version SET version = 3")
        node = self.node()
        wait_for(lambda: "has version 3" in node.log, 10, node.log)


@contextlib.contextmanager
def first_client(node: Node):
    """A connection to a server that is stopped, whose system accepts it."""
    os.kill(node.process.pid, signal.SIGCONT)
    client = node.client()
    os.kill(node.process.pid, signal.SIGSTOP)
    try:
        yield client
    finally:
        client.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks replicated stores with real PostgreSQL servers.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--larder", metavar="PATH", type=Path, required=True, help="the larder to run")
    parser.add_argument("names", nargs="*", help="the tests to run, such as DatabaseChecks; all by default")
    options = parser.parse_args()
    ReplicatedCase.server = options.server.resolve()
    ReplicatedCase.larder_program = options.larder.resolve()
    loader, module = unittest.defaultTestLoader, sys.modules[__name__]
    suite = loader.loadTestsFromNames(options.names, module) if options.names else loader.loadTestsFromModule(module)
    passed, failed = run(suite)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
