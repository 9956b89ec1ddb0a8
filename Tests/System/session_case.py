"""The base class of a session's checks: a client, a store of its own, and connections that can send any bytes."""

from __future__ import annotations

import secrets
import string
import time
from typing import Self

import larder_wire as wire
from brief_case import BriefCase, clip, excerpt
from larder import Client, LarderError, Store, connect, send_while_receiving
from larder_wire import Code, Hello, Operation, Outcome, Reply


class RawConnection:
    """A connection that sends any bytes and returns the received frames in order."""

    limits: Hello

    def __init__(self, address: str) -> None:
        self.socket = connect(address, timeout=10)
        self._received = bytearray()
        self._last_id = 1000

    @classmethod
    def greeted(cls, address: str, credit: int = 1 << 20) -> Self:
        raw = cls(address)
        raw.send(wire.encode_frame(Operation.hello, 1, wire.encode_hello(1, 1, credit, "session")))
        raw.limits = wire.decode_hello(raw.done(1).body)
        return raw

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        send_while_receiving(self.socket, data, self._received, time.monotonic() + 10)

    def send_request(self, operation: int, body: bytes = b"", store: int = 0, id: int | None = None) -> int:
        if id is None:
            self._last_id += 1
            id = self._last_id
        self.send(wire.encode_frame(operation, id, body, store))
        return id

    def reply(self, timeout: float = 5) -> Reply | None:
        """Returns the next frame, or None if the connection is closed. Raises `TimeoutError` if nothing arrives."""
        deadline = time.monotonic() + timeout
        while (reply := wire.take_reply(self._received)) is None:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                received = self.socket.recv(1 << 18)
            except ConnectionResetError:
                received = b""
            if not received:
                if self._received:
                    raise wire.WireError("the server closed the connection inside a frame")
                return None
            self._received += received
        return reply

    def done(self, id: int) -> Reply:
        """Returns the next frame, which must be a *done* reply to `id`."""
        reply = self.reply()
        assert reply is not None, f"the connection was closed instead of a reply to {id}"
        assert reply.id == id and reply.outcome == Outcome.done, f"{excerpt(reply)} instead of a reply to {id}"
        return reply

    def open(self, name: str) -> int:
        return wire.decode_store_open(self.done(self.send_request(Operation.store_open, name.encode())).body)[0]

    def ping(self) -> None:
        self.done(self.send_request(Operation.ping))


class Case(BriefCase):
    """A check with a client and a store, both of which it cleans up."""

    address: str
    client: Client
    store: Store

    def setUp(self) -> None:
        self._names: list[str] = []
        self.client = Client(self.address)
        self.addCleanup(self.clean_up_stores)
        self.addCleanup(self.client.close)
        self.store = self.client.open(self.create_store())

    def clean_up_stores(self) -> None:
        with Client(self.address) as client:
            for name in self._names:
                try:
                    client.drop(name)
                except LarderError as error:
                    if error.code != Code.storeUnknown:
                        raise

    def unique_name(self) -> str:
        """Returns a store name of seven characters. The store is dropped when the test ends."""
        name = "_" + "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(6))
        self._names.append(name)
        return name

    def create_store(self) -> str:
        name = self.unique_name()
        self.client.create(name)
        return name

    def second_client(self, credit: int = 1 << 20) -> Client:
        client = Client(self.address, credit=credit)
        self.addCleanup(client.close)
        return client

    def raw(self, greeted: bool = True, credit: int = 1 << 20) -> RawConnection:
        raw = RawConnection.greeted(self.address, credit) if greeted else RawConnection(self.address)
        self.addCleanup(raw.close)
        return raw

    def refuses(self, code: Code, outcome: Outcome = Outcome.rejected) -> _Refusal:
        """Returns a context in which a `LarderError` with this code must be raised."""
        return _Refusal(self, code, outcome)

    def assert_error(self, reply: Reply | None, id: int, code: Code, outcome: Outcome = Outcome.rejected) -> None:
        self.assertIsNotNone(reply, f"the connection was closed without the error {code.name}")
        seen = (reply.code.name, reply.outcome.name, reply.id, reply.more)
        self.assertEqual(seen, (code.name, outcome.name, id, False), f"body {reply.body[:200]!r}")
        reply.body.decode()

    def assert_usable(self, raw: RawConnection) -> None:
        raw.ping()
        self.client.ping()

    def assert_closed(self, raw: RawConnection) -> None:
        try:
            reply = raw.reply(timeout=5)
        except TimeoutError:
            self.fail("the connection is still open")
        if reply is not None:
            self.fail(f"got {excerpt(reply)} instead of a closed connection")

    def assert_quiet(self, raw: RawConnection, seconds: float = 0.1) -> None:
        try:
            reply = raw.reply(timeout=seconds)
        except TimeoutError:
            return
        self.fail(f"got {excerpt(reply)} instead of nothing")


class _Refusal:
    def __init__(self, case: Case, code: Code, outcome: Outcome) -> None:
        self._case, self._code, self._outcome = case, code, outcome

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is not None and not isinstance(error, LarderError):
            return False
        if error is None:
            self._case.fail(f"got done instead of {self._code.name}")
        if (error.code, error.outcome) != (self._code, self._outcome):
            seen = f"{clip(str(error))} (outcome {error.outcome.name})"
            self._case.fail(f"got {seen} instead of {self._code.name} (outcome {self._outcome.name})")
        return True
