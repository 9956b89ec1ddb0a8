"""Connections and stores: Protocol/wire.md §3, §6.1 to §6.3 and §8."""

import os
import socket
import time

import larder_wire as wire
from larder import Client, LarderError
from larder_wire import Code, Operation, Outcome
from session_case import Case


class ConnectionChecks(Case):
    def test_hello(self) -> None:
        hello = self.client.hello
        self.assertEqual((hello.version, hello.features, hello.max_key_size), (1, wire.FEATURES, 4096))
        self.assertGreaterEqual(hello.max_frame_size, 4096)
        self.assertLessEqual(hello.max_value_size, hello.max_frame_size - 8192)
        self.assertGreater(min(hello.max_value_size, hello.max_stores, hello.max_requests, hello.max_keys), 0)
        self.assertTrue(hello.name)

    def test_hello_of_a_newer_client(self) -> None:
        raw = self.raw(greeted=False)
        body = wire.encode_hello(0, 65535, 0xFFFF_FFFF, "a" * 255, features=0xFFFF_FFFF) + b"later fields"
        raw.send(wire.encode_frame(Operation.hello, 0xFFFF_FFFF, body))
        hello = wire.decode_hello(raw.done(0xFFFF_FFFF).body)
        self.assertEqual((hello.version, hello.features), (1, wire.FEATURES))

    def test_byte_5_and_the_store_of_a_hello_are_ignored(self) -> None:
        raw = self.raw(greeted=False)
        hello = wire.encode_hello(1, 1, 1, "session")
        raw.send(wire.FRAME.pack(8 + len(hello), Operation.hello, 0xFF, 0xFFFF, 1) + hello)
        raw.done(1)
        self.assert_usable(raw)

    def test_the_id_of_the_hello_can_be_reused(self) -> None:
        raw = self.raw()
        raw.done(raw.send_request(Operation.ping, id=1))

    def test_longest_first_frame(self) -> None:
        raw = self.raw(greeted=False)
        hello = wire.encode_hello(1, 1, 1, "session")
        raw.send(wire.encode_frame(Operation.hello, 1, hello.ljust(4096 - 8, b"\xff")))
        raw.done(1)
        self.assert_usable(raw)

    def test_requests_right_behind_the_hello(self) -> None:
        raw = self.raw(greeted=False)
        hello = wire.encode_frame(Operation.hello, 1, wire.encode_hello(1, 1, 1, ""))
        raw.send(hello + b"".join(wire.encode_frame(Operation.ping, id) for id in range(2, 50)))
        self.assertEqual({raw.reply().id for _ in range(1, 50)}, set(range(1, 50)))

    def test_requests_behind_a_refused_hello_are_not_executed(self) -> None:
        raw = self.raw(greeted=False)
        hello = wire.encode_frame(Operation.hello, 1, wire.encode_hello(2, 9, 1, ""))
        raw.send(hello + wire.encode_frame(Operation.store_drop, 2, self.store.name.encode()))
        reply = raw.reply()
        self.assert_error(reply, 1, Code.versionNotSupported)
        self.assertIn("1", reply.message, "the message must name the server's versions")
        self.assert_closed(raw)
        self.assertIn(self.store.name, {store.name for store in self.client.stores()})

    def test_a_frame_byte_by_byte(self) -> None:
        raw = self.raw()
        for byte in wire.encode_frame(Operation.ping, 77) + wire.encode_frame(Operation.ping, 78):
            raw.send(bytes([byte]))
        raw.done(77)
        raw.done(78)

    def test_ping(self) -> None:
        self.client.ping()

    def test_stats_of_the_server(self) -> None:
        before = after = self.client.stats()
        deadline = time.monotonic() + 5
        while after["requests_total"] == before["requests_total"] and time.monotonic() < deadline:
            after = self.client.stats()  # Requests are counted shortly after their replies.
        names = {"uptime_milliseconds", "connections", "connections_accepted_total", "requests_total", "stores", "memory_bytes"}
        self.assertLessEqual(names | {"output_bytes"}, set(after))
        self.assertGreaterEqual(after["connections"], 1)
        self.assertGreaterEqual(after["stores"], 1)
        self.assertGreater(after["requests_total"], before["requests_total"])

    def test_connections(self) -> None:
        self.client.ping()
        found = self.client.connections()
        self.assertEqual(found, sorted(found, key=lambda each: (-each.requests_per_second, -each.requests, each.number)))
        mine = [each for each in found if each.process == os.getpid() or each.address.rpartition(":")[2].isdigit()]
        self.assertTrue(mine, f"{found}")
        for each in mine:
            self.assertTrue(each.received_bytes >= each.requests * 12 and each.waiting_bytes == 0, f"{each}")
        self.assertEqual(len(self.client.connections(1)), 1)
        self.assertEqual(self.client.connections(0), [])
        self.assertLessEqual(len(self.client.connections(0xFFFF_FFFF)), 256)

    def test_stats_of_a_store(self) -> None:
        self.store.put("key", b"value")
        revision = self.store.put("expiring", [b"a"], expire_after_milliseconds=60_000)
        stats = self.store.stats()
        self.assertGreater(stats["memory_bytes"], 0)
        self.assertLessEqual({"snapshots", "key_bytes", "value_bytes"}, set(stats))
        self.assertEqual((stats["entries"], stats["revision"], stats["expiring"]), (2, revision, 1))
        self.store.put_many([wire.Write(key, b"1") for key in ("a", "b", "c")])
        self.store.delete("a")
        self.assertEqual(self.store.stats()["written_total"], stats["written_total"] + 4, "each key counts")
        self.assertEqual((stats["key_bytes"], stats["value_bytes"]), (len("key") + len("expiring"), 10))

    def test_pipelining(self) -> None:
        """Sends a thousand requests at once. They are executed in order: each get sees the preceding put."""
        raw = self.raw()
        handle = raw.open(self.store.name)
        requests = min(1000, raw.limits.max_requests)
        frames = []
        for id in range(1, requests, 2):
            write = wire.encode_write(wire.Write("key", str(id).encode()))
            frames.append(wire.encode_frame(Operation.put, id, write, handle))
            frames.append(wire.encode_frame(Operation.get, id + 1, b"key", handle))
        raw.send(b"".join(frames))
        replies = [raw.reply() for _ in frames]
        self.assertEqual({reply.id for reply in replies}, set(range(1, len(frames) + 1)))
        for reply in replies:
            self.assertEqual(reply.outcome, Outcome.done)
            if reply.id % 2 == 0:
                self.assertEqual(wire.decode_records(reply.body)[0].value, str(reply.id - 1).encode())
        self.assert_usable(raw)

    def test_a_half_closed_connection_gets_all_replies(self) -> None:
        raw = self.raw()
        raw.send(b"".join(wire.encode_frame(Operation.ping, id) for id in range(1, 301)))
        raw.socket.shutdown(socket.SHUT_WR)
        self.assertEqual({raw.reply().id for _ in range(300)}, set(range(1, 301)))
        self.assert_closed(raw)

    def test_a_half_closed_connection_gets_whole_reply_streams(self) -> None:
        self.store.put_many([wire.Write(f"{number}", bytes(50_000)) for number in range(100)])
        raw = self.raw(credit=1)
        handle = raw.open(self.store.name)
        credit = wire.encode_frame(Operation.credit, 5, wire.encode_credit(1 << 30))
        raw.send(wire.encode_frame(Operation.all, 5, wire.encode_all(), handle) + credit)
        raw.socket.shutdown(socket.SHUT_WR)
        frames = [raw.done(5)]
        while frames[-1].more:
            frames.append(raw.done(5))
        self.assertEqual(sum(len(wire.decode_records(frame.body)) for frame in frames), 100)
        self.assert_closed(raw)

    def test_a_client_that_does_not_read(self) -> None:
        """It delays no other client, and gets all its replies once it reads."""
        value = b"x" * 60_000
        self.store.put("key", value)
        raw = self.raw()
        handle = raw.open(self.store.name)
        count = min(500, raw.limits.max_requests)
        raw.send(b"".join(wire.encode_frame(Operation.get, id, b"key", handle) for id in range(1, count + 1)))
        for _ in range(3):
            self.client.ping()
        self.assertEqual(self.store.get("key").value, value)
        ids = set()
        for _ in range(count):
            reply = raw.reply()
            self.assertEqual((reply.outcome, reply.body[16:]), (Outcome.done, value))
            ids.add(reply.id)
        self.assertEqual(ids, set(range(1, count + 1)))
        self.assert_usable(raw)


class StoreChecks(Case):
    def test_create_list_open_drop(self) -> None:
        name = self.unique_name()
        with self.refuses(Code.storeUnknown):
            self.client.open(name)
        self.client.create(name)
        with self.refuses(Code.storeExists):
            self.client.create(name)
        store = self.client.open(name)
        self.assertEqual(store.engine, "memory")
        self.assertNotEqual(store.handle, 0)
        self.assertNotEqual(store.handle, self.store.handle)
        store.put_many([wire.Write("a", b"1"), wire.Write("b", b"2")])
        stores = self.client.stores()
        self.assertEqual([each.name for each in stores], sorted(each.name for each in stores))
        self.assertIn(wire.StoreDescription(name, "memory", 2), stores)
        self.client.drop(name)
        self.assertNotIn(name, {each.name for each in self.client.stores()})
        with self.refuses(Code.storeUnknown):
            self.client.drop(name)

    def test_create_with_an_unknown_engine(self) -> None:
        for engine in ("", "no-such-engine", "Memory", "memory\0"):
            name = self.unique_name()
            with self.subTest(engine=engine), self.refuses(Code.illegalArgument):
                self.client.create(name, engine)
            with self.refuses(Code.storeUnknown):
                self.client.open(name)

    def test_names(self) -> None:
        for name in (self.unique_name() + ".-_aZ09" + "x" * 114, self.unique_name() + "."):
            self._names.append(name)
            self.client.create(name)
            self.client.open(name).put("key", name.encode())
            self.client.drop(name)

    def test_reopening_returns_the_same_handle(self) -> None:
        self.assertEqual(self.client.open(self.store.name).handle, self.store.handle)

    def test_handles_belong_to_their_connection(self) -> None:
        other = self.second_client()
        with self.refuses(Code.storeUnknown):
            other.request(Operation.count, store=self.store.handle)

    def test_close(self) -> None:
        self.store.put("key", b"value")
        self.store.close()
        for _ in range(2):
            with self.refuses(Code.storeUnknown):
                self.store.get("key")
            with self.refuses(Code.storeUnknown):
                self.store.close()
        self.assertEqual(self.client.open(self.store.name).get("key").value, b"value")

    def test_close_of_a_dropped_store(self) -> None:
        self.client.drop(self.store.name)
        self.store.close()
        with self.refuses(Code.storeUnknown):
            self.store.close()
        self.client.create(self.store.name)
        recreated = self.client.open(self.store.name)
        self.assertNotEqual(recreated.handle, 0)
        self.assertEqual(recreated.put("key", b"value"), 1)

    def test_dropping_affects_every_connection(self) -> None:
        other = self.second_client().open(self.store.name)
        other.put("key", b"value")
        self.client.drop(self.store.name)
        for store in (self.store, other):
            with self.refuses(Code.storeUnknown):
                store.get("key")
            with self.refuses(Code.storeUnknown):
                store.stats()

    def test_a_recreated_store_is_a_different_store(self) -> None:
        revision = self.store.put("key", b"value")
        self.client.drop(self.store.name)
        self.client.create(self.store.name)
        with self.refuses(Code.storeUnknown):
            self.store.put("key", b"value", if_revision=revision)
        with self.refuses(Code.storeUnknown):
            self.store.stats()
        with self.refuses(Code.storeUnknown):
            list(self.store.all())
        recreated = self.client.open(self.store.name)
        self.assertEqual(recreated.handle, self.store.handle)
        self.assertIsNone(recreated.get("key"))

    def test_too_many_stores(self) -> None:
        """A connection can open as many stores as the hello allows, unless the server reaches its own limit first."""
        client = Client(self.address)
        self.addCleanup(client.close)
        max_stores = client.hello.max_stores
        if max_stores > 4096:
            self.skipTest(f"{max_stores} stores are too many to try")
        for _ in range(max_stores):
            name = self.unique_name()
            try:
                client.create(name)
            except LarderError as error:
                self.assertEqual((error.code, error.outcome), (Code.tooManyStores, Outcome.rejected))
                return
            client.open(name)
        with self.refuses(Code.tooManyStores):
            client.open(self.store.name)
        client.ping()
        self.assertEqual(client.open(name).count(), 0)
