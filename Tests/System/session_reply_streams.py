"""Replies of several frames and their flow control: Protocol/wire.md §5."""

import socket
import struct
import time

import larder_wire as wire
from larder import ReplyStream, Client, LarderError, Store, Write
from larder_wire import Code, Operation, Outcome, Reply
from session_case import Case, RawConnection

MAX_BODY_SIZE = 65_536


class ReplyStreamChecks(Case):
    def fill(self, entries: int = 40, size: int = 10_000) -> list[tuple[str, bytes]]:
        """Puts enough entries for several frames and returns what a correct reply stream contains."""
        content = [(f"{number:03}", bytes([number % 256]) * size) for number in range(entries)]
        self.store.put_many([Write(key, value) for key, value in content])
        return content

    def open_stream(self, credit: int = 1) -> tuple[RawConnection, int, int]:
        """Sends `all` on a new connection without receiving a frame. Returns the connection, the handle and the id."""
        raw = self.raw(credit=credit)
        handle = raw.open(self.store.name)
        return raw, handle, raw.send_request(Operation.all, wire.encode_all(), handle)

    def grant(self, raw: RawConnection, id: int, credit: int) -> None:
        raw.send(wire.encode_frame(Operation.credit, id, wire.encode_credit(credit)))

    def cancel(self, raw: RawConnection, id: int) -> None:
        raw.send(wire.encode_frame(Operation.cancel, id))

    def remaining_frames(self, raw: RawConnection, id: int) -> list[Reply]:
        """Returns the remaining frames, including the last one."""
        frames = [raw.done(id)]
        while frames[-1].more:
            frames.append(raw.done(id))
        return frames

    def records(self, frames: list[Reply]) -> list[tuple[str, bytes]]:
        return [(entry.key, entry.value) for frame in frames for entry in wire.decode_records(frame.body)]

    def test_frames_hold_as_many_records_as_fit(self) -> None:
        content = self.fill(entries=300, size=1_000)
        raw, _, id = self.open_stream(credit=1 << 30)
        frames = self.remaining_frames(raw, id)
        record = 16 + 3 + 1_000
        self.assertEqual({len(frame.body) for frame in frames[:-1]}, {MAX_BODY_SIZE // record * record})
        self.assertEqual(self.records(frames), content)

    def test_exactly_full_frames(self) -> None:
        self.store.put_many([Write(key, bytes(MAX_BODY_SIZE // 2 - 17)) for key in "abcd"])
        self.store.put("e", bytes(MAX_BODY_SIZE - 16))
        self.store.put("f", b"")
        raw, _, id = self.open_stream(credit=1 << 30)
        sizes = [len(frame.body) for frame in self.remaining_frames(raw, id)]
        self.assertEqual(sizes, [MAX_BODY_SIZE, MAX_BODY_SIZE, MAX_BODY_SIZE + 1, 17])

    def test_an_empty_stream_is_one_frame(self) -> None:
        raw, _, id = self.open_stream()
        self.assertEqual([frame.body for frame in self.remaining_frames(raw, id)], [b""])

    def test_no_frame_without_credit(self) -> None:
        content = self.fill()
        raw, handle, id = self.open_stream(credit=1)
        first = raw.done(id)
        self.assertTrue(first.more)
        self.assert_quiet(raw)
        for _ in range(3):
            raw.ping()
        self.assertEqual(raw.done(raw.send_request(Operation.count, b"", handle)).body, (40).to_bytes(8, "little"))
        self.grant(raw, id, first.size - 1)
        self.assert_quiet(raw)
        self.grant(raw, id, 1)
        second = raw.done(id)
        self.assert_quiet(raw)
        self.grant(raw, id, 0)
        self.assert_quiet(raw)
        self.grant(raw, id, 1 << 30)
        self.assertEqual(self.records([first, second, *self.remaining_frames(raw, id)]), content)

    def test_credit_of_several_frames(self) -> None:
        self.fill()
        raw, _, id = self.open_stream(credit=2 * MAX_BODY_SIZE)
        for _ in range(3):
            self.assertTrue(raw.done(id).more)
        self.assert_quiet(raw)

    def test_credit_saturates(self) -> None:
        content = self.fill()
        raw, _, id = self.open_stream()
        first = raw.done(id)
        raw.send(wire.encode_frame(Operation.credit, id, b"\xff\xff\xff\xff") * 3)
        self.assertEqual(self.records([first, *self.remaining_frames(raw, id)]), content)

    def test_credit_right_after_the_request(self) -> None:
        content = self.fill()
        raw = self.raw(credit=1)
        handle = raw.open(self.store.name)
        credit = wire.encode_frame(Operation.credit, 9, wire.encode_credit(1 << 30))
        raw.send(wire.encode_frame(Operation.all, 9, wire.encode_all(), handle) + credit)
        self.assertEqual(self.records(self.remaining_frames(raw, 9)), content)

    def test_ignored_credit_and_cancel(self) -> None:
        self.fill()
        raw, handle, id = self.open_stream()
        first = raw.done(id)
        for body in (b"", b"\0\0\1", b"\0\0\1\0\0"):
            raw.send(wire.encode_frame(Operation.credit, id, body))
        raw.send(wire.encode_frame(Operation.cancel, id, b"\0"))
        credit = wire.encode_credit(1 << 30)
        for byte5, store in ((1, 0), (0, handle), (0, 0xFFFF)):
            raw.send(wire.FRAME.pack(8 + len(credit), Operation.credit, byte5, store, id) + credit)
            raw.send(wire.FRAME.pack(8, Operation.cancel, byte5, store, id))
        for other in (0x7FFF_FFFF, id + 1):
            self.grant(raw, other, 1 << 30)
            self.cancel(raw, other)
        self.assert_quiet(raw)
        self.assert_usable(raw)
        self.grant(raw, id, first.size)
        self.assertTrue(raw.done(id).more)

    def test_streams_show_a_snapshot(self) -> None:
        """Writes made while the stream waits do not appear in it, not even those of its own connection."""
        content = self.fill()
        client = self.second_client(credit=1)
        store = client.open(self.store.name)
        streams = {"all": store.all(), "page": store.page(limit=1000, reverse=True)}
        seen = {name: [next(stream)] for name, stream in streams.items()}
        self.assertTrue(store.delete("039"))
        self.store.put("010", b"changed")
        self.store.put("0105", b"new")
        self.store.delete_many(["020", "021"])
        client.ping()
        for name, stream in streams.items():
            seen[name].append(next(stream))
        self.store.delete_all()
        store.put("999", b"last")
        client.ping()
        for name, stream in streams.items():
            seen[name] += stream
        pairs = {name: [(entry.key, entry.value) for entry in entries] for name, entries in seen.items()}
        self.assertEqual(pairs["all"], content)
        self.assertEqual(pairs["page"], content[::-1])
        self.assertEqual([entry.key for entry in store.all()], ["999"])

    def test_entries_that_expire_while_the_stream_waits_are_left_out(self) -> None:
        self.store.put("a", b"first")
        self.store.put("b", bytes(70_000), expire_after_milliseconds=150)
        self.store.put("c", b"last")
        raw, _, id = self.open_stream()
        first = raw.done(id)
        time.sleep(0.25)
        self.grant(raw, id, 1 << 30)
        self.assertEqual(self.records([first, *self.remaining_frames(raw, id)]), [("a", b"first"), ("c", b"last")])

    def test_the_last_frame_may_be_empty(self) -> None:
        self.store.put("a", b"first")
        self.store.put("b", bytes(70_000), expire_after_milliseconds=150)
        raw, _, id = self.open_stream()
        first = raw.done(id)
        self.assertTrue(first.more)
        time.sleep(0.25)
        self.grant(raw, id, 1 << 30)
        frames = [first, *self.remaining_frames(raw, id)]
        self.assertEqual(self.records(frames), [("a", b"first")])
        self.assertEqual(frames[-1].body, b"")

    def test_entries_that_expire_while_get_many_waits(self) -> None:
        self.store.put("a", b"first")
        self.store.put("b", bytes(70_000), expire_after_milliseconds=150)
        self.store.put("c", b"last")
        raw = self.raw(credit=1)
        id = raw.send_request(Operation.get_many, wire.encode_keys(["a", "b", "c", "b"]), raw.open(self.store.name))
        first = raw.done(id)
        self.assertTrue(first.more)
        time.sleep(0.25)
        self.grant(raw, id, 1 << 30)
        entries = [entry for frame in [first, *self.remaining_frames(raw, id)] for entry in wire.decode_records(frame.body)]
        self.assertEqual([entry and entry.value for entry in entries], [b"first", None, b"last", None])

    def test_get_many(self) -> None:
        content = dict(self.fill())
        store = self.second_client(credit=1).open(self.store.name)
        keys = ["039", "absent", *content, "000", "absent", "000"]
        entries = store.get_many(keys)
        expected = [(key, content[key]) if key in content else None for key in keys]
        self.assertEqual([entry and (entry.key, entry.value) for entry in entries], expected)

    def test_concurrent_streams(self) -> None:
        content = self.fill()
        client = self.second_client(credit=1)
        store = client.open(self.store.name)
        streams = [store.all() for _ in range(20)]
        for key, value in content:
            for stream in streams:
                entry = next(stream)
                self.assertEqual((entry.key, entry.value), (key, value))
            client.ping()
        self.assertEqual([list(stream) for stream in streams], [[]] * 20)

    def test_cancel(self) -> None:
        content = self.fill()
        raw, handle, id = self.open_stream()
        self.assertTrue(raw.done(id).more)
        self.cancel(raw, id)
        self.assert_error(raw.reply(), id, Code.cancelled)
        self.grant(raw, id, 1 << 30)
        self.cancel(raw, id)
        self.assert_usable(raw)
        raw.send_request(Operation.page, wire.encode_page(limit=1), handle, id)
        self.assertEqual(self.records(self.remaining_frames(raw, id)), content[:1])

    def test_cancel_by_a_client(self) -> None:
        self.fill()
        client = self.second_client(credit=1)
        with client.open(self.store.name).all() as stream:
            next(stream)
        self.assertEqual(list(stream), [])
        client.ping()

    def test_the_id_of_an_open_stream(self) -> None:
        self.fill()
        bodies = {Operation.get_many: wire.encode_keys(["000"]), Operation.page: wire.encode_page(1), Operation.all: wire.encode_all()}
        for operation, body in bodies.items():
            with self.subTest(operation.name):
                raw, handle, id = self.open_stream()
                self.assertTrue(raw.done(id).more)
                raw.send_request(operation, body, handle, id)
                raw.send_request(Operation.delete_all, b"", handle)
                self.assert_error(raw.reply(), 0, Code.malformed)
                self.assert_closed(raw)
                self.assertEqual(self.store.count(), 40)

    def test_the_id_of_an_open_stream_in_other_requests(self) -> None:
        """The server does not check these for it."""
        content = self.fill()
        raw, handle, id = self.open_stream()
        first = raw.done(id)
        for operation, body in ((Operation.ping, b""), (Operation.get, b"absent")):
            raw.send_request(operation, body, handle if body else 0, id)
            reply = raw.reply()
            self.assertEqual((reply.id, reply.code), (id, Code.notFound if body else Code.unknown))
        self.grant(raw, id, 1 << 30)
        self.assertEqual(self.records([first, *self.remaining_frames(raw, id)]), content)

    def test_closing_a_handle_does_not_end_its_streams(self) -> None:
        content = self.fill()
        raw, handle, id = self.open_stream()
        first = raw.done(id)
        raw.done(raw.send_request(Operation.store_close, b"", handle))
        self.grant(raw, id, 1 << 30)
        self.assertEqual(self.records([first, *self.remaining_frames(raw, id)]), content)

    def test_dropping_the_store_ends_its_streams_without_credit(self) -> None:
        content = self.fill()
        keys = wire.encode_keys(key for key, _ in content)
        bodies = {Operation.get_many: keys, Operation.page: wire.encode_page(100), Operation.all: wire.encode_all()}
        raw = self.raw(credit=1)
        handle = raw.open(self.store.name)
        ids = [raw.send_request(operation, body, handle) for operation, body in bodies.items()]
        self.assertEqual(sorted(raw.reply().id for _ in ids), ids)
        self.client.drop(self.store.name)
        self.client.create(self.store.name)
        replies = sorted((raw.reply() for _ in ids), key=lambda reply: reply.id)
        for id, reply in zip(ids, replies):
            self.assert_error(reply, id, Code.storeUnknown)
        self.assert_usable(raw)
        self.assertEqual(raw.open(self.store.name), handle)
        self.assertEqual([frame.body for frame in self.remaining_frames(raw, raw.send_request(Operation.all, wire.encode_all(), handle))], [b""])

    def test_a_reader_drops_the_store_of_its_stream(self) -> None:
        self.fill()
        client = self.second_client(credit=1)
        stream = client.open(self.store.name).all()
        next(stream)
        client.drop(self.store.name)
        with self.refuses(Code.storeUnknown):
            list(stream)
        client.ping()

    def open_max_streams(self) -> tuple[Client, Store, list[ReplyStream]]:
        """Opens streams that wait for credit. Their first frames are small: the second record has its own frame."""
        self.store.put_many([Write("a", b""), Write("b", bytes(70_000))])
        client = self.second_client(credit=1)
        store = client.open(self.store.name)
        if client.hello.max_requests > 70_000:
            self.skipTest(f"{client.hello.max_requests} requests are too many to try")
        streams = [store.all() for _ in range(client.hello.max_requests)]
        for stream in streams:
            self.assertEqual(len(stream.next_frame()), 1)
        return client, store, streams

    def test_too_many_streams(self) -> None:
        client, store, streams = self.open_max_streams()
        for _ in range(2):
            for refused in (store.all, lambda: store.page(limit=2), lambda: store.get_many(["a", "b"])):
                with self.refuses(Code.tooManyRequests, Outcome.not_executed):
                    list(refused())
        self.client.ping()
        streams.pop().cancel()
        streams.append(store.page(limit=2))
        self.assertEqual(len(streams[-1].next_frame()), 1)
        for stream in streams:
            stream.cancel()
        self.assertEqual([entry.key for entry in store.all()], ["a", "b"])
        client.ping()

    def test_other_requests_beside_too_many_streams(self) -> None:
        """The server may execute or refuse requests whose replies need no open stream (§3)."""
        client, store, streams = self.open_max_streams()
        entries = 2
        for attempt in (client.ping, lambda: store.put("c", b""), lambda: list(store.page(limit=1))):
            try:
                entries += isinstance(attempt(), int)
            except LarderError as error:
                self.assertEqual((error.code, error.outcome), (Code.tooManyRequests, Outcome.not_executed))
        self.assertEqual(self.store.count(), entries)
        streams.pop().cancel()
        store.put("d", b"")
        self.assertEqual(store.count(), entries + 1)

    def test_a_disconnected_client_leaves_no_snapshot(self) -> None:
        self.fill()
        raw, _, id = self.open_stream()
        raw.done(id)
        self.assertGreaterEqual(self.store.stats()["snapshots"], 1)
        # Over TCP a plain close looks like a half-closed connection (§8), whose stream stays open until it expires.
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.close()
        deadline = time.monotonic() + 5
        while self.store.stats()["snapshots"] and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.store.stats()["snapshots"], 0)
