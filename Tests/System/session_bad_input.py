"""Bad input: Protocol/wire.md §9, with the vectors of Protocol/vectors/malformed.json."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import larder_wire as wire
from larder_wire import Code, Operation, Outcome
from session_case import Case

VECTORS = Path(__file__).resolve().parents[2] / "Protocol" / "vectors" / "malformed.json"


class MalformedVectorChecks(Case):
    """One check per vector, added below."""

    def check(self, vector: dict[str, Any]) -> None:
        greeted = vector.get("hello", True)
        raw = self.raw(greeted)
        data = bytearray.fromhex(vector["hex"]).replace(b"vectors", self.store.name.encode())
        if greeted:
            handle = raw.open(self.store.name)
            if data[6:8] == b"\1\0":
                data[6:8] = handle.to_bytes(2, "little")
        raw.send(data)
        answer = vector["answer"]
        self.assert_error(raw.reply(), answer["id"], Code[answer["code"]], Outcome(answer["outcome"]))
        if answer["closes"]:
            self.assert_closed(raw)
        else:
            self.assert_usable(raw)
        self.client.ping()
        self.assertEqual(self.store.count(), 0)


def check_of(vector: dict[str, Any]) -> Callable[[MalformedVectorChecks], None]:
    return lambda self: self.check(vector)


for each in json.loads(VECTORS.read_text()):
    setattr(MalformedVectorChecks, f"test_{each['name']}", check_of(each))


class BadInputChecks(Case):
    def test_a_length_just_over_the_limit(self) -> None:
        raw = self.raw()
        raw.send(wire.FRAME.pack(raw.limits.max_frame_size + 1, Operation.ping, 0, 0, 5))
        self.assert_error(raw.reply(), 0, Code.frameLength)
        self.assert_closed(raw)
        self.client.ping()

    def test_requests_before_a_notice_are_answered(self) -> None:
        raw = self.raw()
        pings = b"".join(wire.encode_frame(Operation.ping, id) for id in range(1, 51))
        raw.send(pings + wire.encode_frame(Operation.ping, 0) + wire.encode_frame(Operation.store_drop, 51, self.store.name.encode()))
        ids = {raw.reply().id for _ in range(50)}
        notice = raw.reply()
        self.assert_error(notice, 0, Code.malformed)
        self.assertEqual(ids, set(range(1, 51)))
        self.assert_closed(raw)
        self.assertEqual(self.store.count(), 0)

    def test_a_stream_that_ends_inside_a_frame(self) -> None:
        for size in (1, 4, 11, 12, 20):
            raw = self.raw()
            handle = raw.open(self.store.name)
            put = wire.encode_frame(Operation.put, 8, wire.encode_write(wire.Write("key", b"value")), handle)
            raw.send(wire.encode_frame(Operation.ping, 7) + put[:size])
            raw.socket.shutdown(socket.SHUT_WR)
            raw.done(7)
            self.assert_closed(raw)
            self.assertEqual(self.store.count(), 0)

    def test_a_connection_that_ends_inside_the_hello(self) -> None:
        raw = self.raw(greeted=False)
        raw.send(b"\x20\0\0\0\1")
        raw.socket.shutdown(socket.SHUT_WR)
        self.assert_closed(raw)
        self.client.ping()

    def test_a_declared_length_allocates_nothing(self) -> None:
        """A hundred connections each announce a frame of the maximum size."""
        connections = [self.raw() for _ in range(100)]
        before = self.client.stats()["memory_bytes"]
        for raw in connections:
            raw.send(wire.FRAME.pack(raw.limits.max_frame_size, Operation.put, 0, 1, 5))
        self.client.ping()
        self.assertLess(self.client.stats()["memory_bytes"] - before, 1 << 20)
        for raw in connections:
            raw.close()
        self.client.ping()
