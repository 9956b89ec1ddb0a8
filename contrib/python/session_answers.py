"""Answers of several frames and their flow control: Protocol/wire.md §5."""

import socket
import struct
import time

import larder_wire as wire
from larder import Answer, Client, LarderError, Store, Write
from larder_wire import Code, Operation, Outcome, Reply
from session_case import Case, RawConnection

LARGEST_BODY = 65_536


class AnswerChecks(Case):
    def fill(self, entries: int = 40, size: int = 10_000) -> list[tuple[str, bytes]]:
        """Enough for several frames; what a true answer shows."""
        content = [(f"{number:03}", bytes([number % 256]) * size) for number in range(entries)]
        self.store.put_many([Write(key, value) for key, value in content])
        return content

    def open_answer(self, credit: int = 1) -> tuple[RawConnection, int, int]:
        """A connection with the answer of `all`, of which no frame was received yet: connection, handle and id."""
        raw = self.raw(credit=credit)
        handle = raw.open(self.store.name)
        return raw, handle, raw.send_request(Operation.all, wire.encode_all(), handle)

    def give(self, raw: RawConnection, id: int, credit: int) -> None:
        raw.send(wire.encode_frame(Operation.credit, id, wire.encode_credit(credit)))

    def cancel(self, raw: RawConnection, id: int) -> None:
        raw.send(wire.encode_frame(Operation.cancel, id))

    def rest(self, raw: RawConnection, id: int) -> list[Reply]:
        """Frames up to the last one."""
        frames = [raw.done(id)]
        while frames[-1].more:
            frames.append(raw.done(id))
        return frames

    def records(self, frames: list[Reply]) -> list[tuple[str, bytes]]:
        return [(entry.key, entry.value) for frame in frames for entry in wire.decode_records(frame.body)]

    def test_frames_hold_as_many_records_as_fit(self) -> None:
        content = self.fill(entries=300, size=1_000)
        raw, _, id = self.open_answer(credit=1 << 30)
        frames = self.rest(raw, id)
        record = 16 + 3 + 1_000
        self.assertEqual({len(frame.body) for frame in frames[:-1]}, {LARGEST_BODY // record * record})
        self.assertEqual(self.records(frames), content)

    def test_frames_that_are_just_full(self) -> None:
        self.store.put_many([Write(key, bytes(LARGEST_BODY // 2 - 17)) for key in "abcd"])
        self.store.put("e", bytes(LARGEST_BODY - 16))
        self.store.put("f", b"")
        raw, _, id = self.open_answer(credit=1 << 30)
        sizes = [len(frame.body) for frame in self.rest(raw, id)]
        self.assertEqual(sizes, [LARGEST_BODY, LARGEST_BODY, LARGEST_BODY + 1, 17])

    def test_an_empty_answer_is_one_frame(self) -> None:
        raw, _, id = self.open_answer()
        self.assertEqual([frame.body for frame in self.rest(raw, id)], [b""])

    def test_no_frame_without_credit(self) -> None:
        content = self.fill()
        raw, handle, id = self.open_answer(credit=1)
        first = raw.done(id)
        self.assertTrue(first.more)
        self.assert_quiet(raw)
        for _ in range(3):
            raw.ping()
        self.assertEqual(raw.done(raw.send_request(Operation.count, b"", handle)).body, (40).to_bytes(8, "little"))
        self.give(raw, id, first.size - 1)
        self.assert_quiet(raw)
        self.give(raw, id, 1)
        second = raw.done(id)
        self.assert_quiet(raw)
        self.give(raw, id, 0)
        self.assert_quiet(raw)
        self.give(raw, id, 1 << 30)
        self.assertEqual(self.records([first, second, *self.rest(raw, id)]), content)

    def test_credit_of_several_frames(self) -> None:
        self.fill()
        raw, _, id = self.open_answer(credit=2 * LARGEST_BODY)
        for _ in range(3):
            self.assertTrue(raw.done(id).more)
        self.assert_quiet(raw)

    def test_credit_stays_at_its_greatest(self) -> None:
        content = self.fill()
        raw, _, id = self.open_answer()
        first = raw.done(id)
        raw.send(wire.encode_frame(Operation.credit, id, b"\xff\xff\xff\xff") * 3)
        self.assertEqual(self.records([first, *self.rest(raw, id)]), content)

    def test_credit_right_behind_the_request(self) -> None:
        content = self.fill()
        raw = self.raw(credit=1)
        handle = raw.open(self.store.name)
        credit = wire.encode_frame(Operation.credit, 9, wire.encode_credit(1 << 30))
        raw.send(wire.encode_frame(Operation.all, 9, wire.encode_all(), handle) + credit)
        self.assertEqual(self.records(self.rest(raw, 9)), content)

    def test_credit_and_cancel_that_do_nothing(self) -> None:
        self.fill()
        raw, handle, id = self.open_answer()
        first = raw.done(id)
        for body in (b"", b"\0\0\1", b"\0\0\1\0\0"):
            raw.send(wire.encode_frame(Operation.credit, id, body))
        raw.send(wire.encode_frame(Operation.cancel, id, b"\0"))
        credit = wire.encode_credit(1 << 30)
        for byte5, store in ((1, 0), (0, handle), (0, 0xFFFF)):
            raw.send(wire.FRAME.pack(8 + len(credit), Operation.credit, byte5, store, id) + credit)
            raw.send(wire.FRAME.pack(8, Operation.cancel, byte5, store, id))
        for other in (0x7FFF_FFFF, id + 1):
            self.give(raw, other, 1 << 30)
            self.cancel(raw, other)
        self.assert_quiet(raw)
        self.assert_goes_on(raw)
        self.give(raw, id, first.size)
        self.assertTrue(raw.done(id).more)

    def test_one_moment(self) -> None:
        """What is written while the answer waits does not show, whoever writes it."""
        content = self.fill()
        client = self.second_client(credit=1)
        store = client.open(self.store.name)
        answers = {"all": store.all(), "page": store.page(limit=1000, reverse=True)}
        seen = {name: [next(answer)] for name, answer in answers.items()}
        self.assertTrue(store.delete("039"))
        self.store.put("010", b"changed")
        self.store.put("0105", b"new")
        self.store.delete_many(["020", "021"])
        client.ping()
        for name, answer in answers.items():
            seen[name].append(next(answer))
        self.store.delete_all()
        store.put("999", b"last")
        client.ping()
        for name, answer in answers.items():
            seen[name] += answer
        pairs = {name: [(entry.key, entry.value) for entry in entries] for name, entries in seen.items()}
        self.assertEqual(pairs["all"], content)
        self.assertEqual(pairs["page"], content[::-1])
        self.assertEqual([entry.key for entry in store.all()], ["999"])

    def test_entries_that_expire_while_the_answer_waits_are_left_out(self) -> None:
        self.store.put("a", b"first")
        self.store.put("b", bytes(70_000), expire_after_milliseconds=150)
        self.store.put("c", b"last")
        raw, _, id = self.open_answer()
        first = raw.done(id)
        time.sleep(0.25)
        self.give(raw, id, 1 << 30)
        self.assertEqual(self.records([first, *self.rest(raw, id)]), [("a", b"first"), ("c", b"last")])

    def test_a_last_frame_may_be_empty(self) -> None:
        self.store.put("a", b"first")
        self.store.put("b", bytes(70_000), expire_after_milliseconds=150)
        raw, _, id = self.open_answer()
        first = raw.done(id)
        self.assertTrue(first.more)
        time.sleep(0.25)
        self.give(raw, id, 1 << 30)
        frames = [first, *self.rest(raw, id)]
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
        self.give(raw, id, 1 << 30)
        entries = [entry for frame in [first, *self.rest(raw, id)] for entry in wire.decode_records(frame.body)]
        self.assertEqual([entry and entry.value for entry in entries], [b"first", None, b"last", None])

    def test_get_many(self) -> None:
        content = dict(self.fill())
        store = self.second_client(credit=1).open(self.store.name)
        keys = ["039", "absent", *content, "000", "absent", "000"]
        entries = store.get_many(keys)
        expected = [(key, content[key]) if key in content else None for key in keys]
        self.assertEqual([entry and (entry.key, entry.value) for entry in entries], expected)

    def test_many_answers_at_once(self) -> None:
        content = self.fill()
        client = self.second_client(credit=1)
        store = client.open(self.store.name)
        answers = [store.all() for _ in range(20)]
        for key, value in content:
            for answer in answers:
                entry = next(answer)
                self.assertEqual((entry.key, entry.value), (key, value))
            client.ping()
        self.assertEqual([list(answer) for answer in answers], [[]] * 20)

    def test_cancel(self) -> None:
        content = self.fill()
        raw, handle, id = self.open_answer()
        self.assertTrue(raw.done(id).more)
        self.cancel(raw, id)
        self.assert_error(raw.reply(), id, Code.cancelled)
        self.give(raw, id, 1 << 30)
        self.cancel(raw, id)
        self.assert_goes_on(raw)
        raw.send_request(Operation.page, wire.encode_page(limit=1), handle, id)
        self.assertEqual(self.records(self.rest(raw, id)), content[:1])

    def test_cancel_by_a_client(self) -> None:
        self.fill()
        client = self.second_client(credit=1)
        with client.open(self.store.name).all() as answer:
            next(answer)
        self.assertEqual(list(answer), [])
        client.ping()

    def test_an_id_that_an_open_answer_has(self) -> None:
        self.fill()
        bodies = {Operation.get_many: wire.encode_keys(["000"]), Operation.page: wire.encode_page(1), Operation.all: wire.encode_all()}
        for operation, body in bodies.items():
            with self.subTest(operation.name):
                raw, handle, id = self.open_answer()
                self.assertTrue(raw.done(id).more)
                raw.send_request(operation, body, handle, id)
                raw.send_request(Operation.delete_all, b"", handle)
                self.assert_error(raw.reply(), 0, Code.malformed)
                self.assert_closed(raw)
                self.assertEqual(self.store.count(), 40)

    def test_an_id_that_an_open_answer_has_in_other_requests(self) -> None:
        """The server does not look for it there."""
        content = self.fill()
        raw, handle, id = self.open_answer()
        first = raw.done(id)
        for operation, body in ((Operation.ping, b""), (Operation.get, b"absent")):
            raw.send_request(operation, body, handle if body else 0, id)
            reply = raw.reply()
            self.assertEqual((reply.id, reply.code), (id, Code.notFound if body else Code.unknown))
        self.give(raw, id, 1 << 30)
        self.assertEqual(self.records([first, *self.rest(raw, id)]), content)

    def test_closing_a_handle_ends_no_answer(self) -> None:
        content = self.fill()
        raw, handle, id = self.open_answer()
        first = raw.done(id)
        raw.done(raw.send_request(Operation.store_close, b"", handle))
        self.give(raw, id, 1 << 30)
        self.assertEqual(self.records([first, *self.rest(raw, id)]), content)

    def test_a_store_dropped_meanwhile(self) -> None:
        content = self.fill()
        keys = wire.encode_keys(key for key, _ in content)
        bodies = {Operation.get_many: keys, Operation.page: wire.encode_page(100), Operation.all: wire.encode_all()}
        raw = self.raw(credit=1)
        handle = raw.open(self.store.name)
        ids = [raw.send_request(operation, body, handle) for operation, body in bodies.items()]
        self.assertEqual(sorted(raw.reply().id for _ in ids), ids)
        self.client.drop(self.store.name)
        self.client.create(self.store.name)
        for id in ids:
            self.give(raw, id, 1 << 30)
        replies = sorted((raw.reply() for _ in ids), key=lambda reply: reply.id)
        for id, reply in zip(ids, replies):
            self.assert_error(reply, id, Code.storeUnknown)
        self.assert_goes_on(raw)
        self.assertEqual(raw.open(self.store.name), handle)
        self.assertEqual([frame.body for frame in self.rest(raw, raw.send_request(Operation.all, wire.encode_all(), handle))], [b""])

    def test_a_store_dropped_by_the_reader_of_an_answer(self) -> None:
        self.fill()
        client = self.second_client(credit=1)
        answer = client.open(self.store.name).all()
        next(answer)
        client.drop(self.store.name)
        with self.refuses(Code.storeUnknown):
            list(answer)
        client.ping()

    def as_many_answers_as_there_can_be(self) -> tuple[Client, Store, list[Answer]]:
        """Answers that wait for credit. The first frame of each is small, for the second record has a frame of its own."""
        self.store.put_many([Write("a", b""), Write("b", bytes(70_000))])
        client = self.second_client(credit=1)
        store = client.open(self.store.name)
        if client.hello.most_requests > 70_000:
            self.skipTest(f"{client.hello.most_requests} requests are too many to try")
        answers = [store.all() for _ in range(client.hello.most_requests)]
        for answer in answers:
            self.assertEqual(len(answer.next_frame()), 1)
        return client, store, answers

    def test_too_many_answers(self) -> None:
        client, store, answers = self.as_many_answers_as_there_can_be()
        for _ in range(2):
            for refused in (store.all, lambda: store.page(limit=2), lambda: store.get_many(["a", "b"])):
                with self.refuses(Code.tooManyRequests, Outcome.not_executed):
                    list(refused())
        self.client.ping()
        answers.pop().cancel()
        answers.append(store.page(limit=2))
        self.assertEqual(len(answers[-1].next_frame()), 1)
        for answer in answers:
            answer.cancel()
        self.assertEqual([entry.key for entry in store.all()], ["a", "b"])
        client.ping()

    def test_other_requests_beside_too_many_answers(self) -> None:
        """What needs no answer that stays open may be refused or not (§3)."""
        client, store, answers = self.as_many_answers_as_there_can_be()
        entries = 2
        for attempt in (client.ping, lambda: store.put("c", b""), lambda: list(store.page(limit=1))):
            try:
                entries += isinstance(attempt(), int)
            except LarderError as error:
                self.assertEqual((error.code, error.outcome), (Code.tooManyRequests, Outcome.not_executed))
        self.assertEqual(self.store.count(), entries)
        answers.pop().cancel()
        store.put("d", b"")
        self.assertEqual(store.count(), entries + 1)

    def test_a_client_that_goes_leaves_nothing_behind(self) -> None:
        self.fill()
        raw, _, id = self.open_answer()
        raw.done(id)
        self.assertGreaterEqual(self.store.stats()["snapshots"], 1)
        # Over TCP a plain close looks like a client that has only sent everything (§8), and whose answer stays open until it expires.
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.close()
        deadline = time.monotonic() + 5
        while self.store.stats()["snapshots"] and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.store.stats()["snapshots"], 0)
