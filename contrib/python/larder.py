"""A synchronous client for Larder, from the standard library alone.

    with Client("unix:/run/larder.sock") as client:
        users = client.open("users")
        users.put("ada", b"Lovelace", if_absent=True)
        print(users.get("ada").value)
        for entry in users.all(prefix="a"):
            print(entry.key)

A client is one connection and belongs to one thread. Every call ends within `timeout` seconds or raises `LarderError`, whose
`outcome` says whether the request was executed. After a timeout, a notice, or a lost connection the client is closed for good.
A request that no frame can hold is a `ValueError`, and nothing is sent.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Self

import larder_wire as wire
from larder_wire import BusyConnection, Change, Code, Entry, Hello, Key, Operation, Outcome, Reply, SlowWakeUp, StoreDescription, Value, Write

__all__ = ["Answer", "Change", "Client", "Code", "Entry", "LarderError", "Outcome", "Store", "StoreDescription", "Watch", "Write"]


class LarderError(Exception):
    """A request that was not answered with *done*. `code` is None when it was the connection that failed."""

    def __init__(self, outcome: Outcome, code: Code | None, message: str) -> None:
        super().__init__(f"{code.name if code is not None else 'connection'}: {message}" if message else code.name)
        self.outcome, self.code, self.message = outcome, code, message


def connect(address: str, timeout: float | None) -> socket.socket:
    """A connected socket for `unix:/path` or `tcp:host:port` (`tcp:[::1]:port` for IPv6)."""
    scheme, _, place = address.partition(":")
    if scheme == "unix":
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(timeout)
        try:
            connected.connect(place)
        except OSError:
            connected.close()
            raise
        return connected
    host, _, port = place.rpartition(":")
    if scheme != "tcp" or not host or not port.isdigit():
        raise ValueError(f"{address!r} is neither unix:/path nor tcp:host:port")
    connected = socket.create_connection((host.strip("[]"), int(port)), timeout)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def send_while_receiving(connected: socket.socket, data: bytes, received: bytearray, deadline: float) -> bool:
    """Sends `data`, and meanwhile adds to `received` what comes: a server stops reading from a client that does not read (§9).

    Returns whether the server may send more; once it may not, `data` may not all have been sent.
    """
    left = memoryview(data)
    connected.settimeout(0)
    while left:
        try:
            left = left[connected.send(left) :]
        except BlockingIOError:
            if _is_readable_before_writable(connected, deadline):
                some = connected.recv(1 << 18)
                if not some:
                    return False
                received += some
    return True


def _is_readable_before_writable(connected: socket.socket, deadline: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(connected, selectors.EVENT_READ | selectors.EVENT_WRITE)
        ready = selector.select(max(deadline - time.monotonic(), 0))
    if not ready:
        raise TimeoutError("the server does not read")
    return bool(ready[0][1] & selectors.EVENT_READ)


class Client:
    """A connection that has been greeted. `credit` is how many bytes of an answer the server may send ahead of its reader."""

    def __init__(self, address: str, timeout: float = 5.0, credit: int = 1 << 20, name: str = "larder.py") -> None:
        self._timeout = timeout
        self._received = bytearray()
        self._replies: dict[int, deque[Reply]] = {}  # Frames not yet asked for, by the id of each unfinished request.
        self._last_id = 0
        self._failure: LarderError | None = None
        try:
            self._socket = connect(address, timeout)
        except OSError as error:
            raise LarderError(Outcome.not_executed, None, f"{address}: {error}") from error
        try:
            self.hello: Hello = wire.decode_hello(self.request(Operation.hello, wire.encode_hello(1, 1, credit, name)))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()
        self._failure = self._failure or LarderError(Outcome.unknown, None, "the client is closed")

    def ping(self) -> None:
        wire.decode_nothing(self.request(Operation.ping))

    def stats(self) -> dict[str, int]:
        return wire.decode_stats(self.request(Operation.stats))

    def slow_log(self) -> list[SlowWakeUp]:
        """The latest first."""
        return wire.decode_slow_log(self.request(Operation.slow_log))

    def connections(self, most: int = 256) -> list[BusyConnection]:
        """Those with the most requests a second first."""
        return wire.decode_connections(self.request(Operation.connections, wire.encode_connections(most)))

    def open(self, name: str) -> Store:
        handle, engine = wire.decode_store_open(self.request(Operation.store_open, name.encode()))
        return Store(self, name, engine, handle)

    def create(self, name: str, specification: str = "memory") -> None:
        """What keeps it may have options: `log?durability=interval:1s` (§6.2)."""
        wire.decode_nothing(self.request(Operation.store_create, wire.encode_store_create(name, specification)))

    def stores(self) -> list[StoreDescription]:
        return wire.decode_store_list(self.request(Operation.store_list))

    def drop(self, name: str) -> None:
        wire.decode_nothing(self.request(Operation.store_drop, name.encode()))

    # Requests by hand: `request` for one reply, or `send` now and `receive` later, as many at once as `hello.most_requests`.

    def request(self, operation: int, body: bytes = b"", store: int = 0) -> bytes:
        """The body of the one reply."""
        return self.receive(self.send(operation, body, store)).body

    def send(self, operation: int, body: bytes = b"", store: int = 0) -> int:
        """Sends a request; its id. Every frame of its reply is then to be received."""
        id = self._last_id % 0xFFFF_FFFF + 1
        while id in self._replies:
            id = id % 0xFFFF_FFFF + 1
        self.send_frame(operation, id, body, store)
        self._last_id, self._replies[id] = id, deque()
        return id

    def send_frame(self, operation: int, id: int, body: bytes = b"", store: int = 0) -> None:
        if self._failure:
            raise LarderError(Outcome.not_executed, self._failure.code, self._failure.message)
        frame = wire.encode_frame(operation, id, body, store)
        if operation != Operation.hello and len(frame) - 4 > self.hello.largest_frame:
            raise ValueError(f"a request of {len(frame)} bytes; the server takes {self.hello.largest_frame + 4}")
        try:
            goes_on = send_while_receiving(self._socket, frame, self._received, time.monotonic() + self._timeout)
        except OSError as error:
            self._receive_last_words()
            self._fail(Outcome.unknown, None, f"sending: {error}")
        else:
            self._take_replies()
            if not goes_on:
                self._fail(Outcome.unknown, None, "the server closed the connection")
        if self._failure:
            raise self._failure

    def receive(self, id: int) -> Reply:
        """The next frame of the reply to request `id`. Frames that answer other requests are kept for them."""
        deadline = time.monotonic() + self._timeout
        replies = self._replies[id]
        while not replies:
            if self._failure:
                raise self._failure
            self._receive_some(deadline)
        reply = replies.popleft()
        if not reply.more:
            del self._replies[id]
        if reply.outcome != Outcome.done:
            raise LarderError(reply.outcome, reply.code, reply.message)
        return reply

    def _receive_some(self, deadline: float) -> None:
        try:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            received = self._socket.recv(1 << 18)
        except OSError as error:
            return self._fail(Outcome.unknown, None, f"receiving: {error}")
        self._received += received
        self._take_replies()
        if not received:
            self._fail(Outcome.unknown, None, "the server closed the connection")

    def _take_replies(self) -> None:
        try:
            while not self._failure and (reply := wire.take_reply(self._received)):
                if reply.id == 0:
                    # What a notice leaves unanswered was not executed (§8), whatever the notice's own outcome is.
                    return self._fail(Outcome.not_executed, reply.code, reply.message)
                if reply.id not in self._replies:
                    raise wire.WireError(f"a reply to {reply.id}, which is no request")
                self._replies[reply.id].append(reply)
        except wire.WireError as error:
            self._fail(Outcome.unknown, None, str(error))

    def _receive_last_words(self) -> None:
        """A server that stopped reading may have said why in a notice."""
        self._take_replies()
        deadline = time.monotonic() + 0.1
        while not self._failure and time.monotonic() < deadline:
            self._receive_some(deadline)

    def _fail(self, outcome: Outcome, code: Code | None, message: str) -> None:
        """Ends the client. Replies that came before are still to be had; the first failure is what the others follow from."""
        self._failure = self._failure or LarderError(outcome, code, message)
        self._socket.close()


class Store:
    """An open store. A key is a str or UTF-8 bytes; a value is bytes, or a list of bytes."""

    def __init__(self, client: Client, name: str, engine: str, handle: int) -> None:
        self.client, self.name, self.engine, self.handle = client, name, engine, handle

    def close(self) -> None:
        wire.decode_nothing(self._request(Operation.store_close))

    def stats(self) -> dict[str, int]:
        return wire.decode_stats(self._request(Operation.stats))

    def get(self, key: Key) -> Entry | None:
        try:
            (entry,) = wire.decode_records(self._request(Operation.get, wire.encode_key(key)))
        except LarderError as error:
            if error.code == Code.notFound:
                return None
            raise
        return _named(entry, key)

    def get_many(self, keys: Iterable[Key]) -> list[Entry | None]:
        """For each key its entry or None; all as they were at one moment."""
        keys = list(keys)
        return [_named(entry, key) for key, entry in zip(keys, self._answer(Operation.get_many, wire.encode_keys(keys)), strict=True)]

    def put(
        self,
        key: Key,
        value: Value,
        expire_after_milliseconds: int | None = None,
        if_absent: bool = False,
        if_revision: int | None = None,
    ) -> int:
        """The revision of the entry."""
        write = Write(key, value, expire_after_milliseconds, if_absent, if_revision)
        return wire.decode_integer(self._request(Operation.put, wire.encode_write(write)))

    def put_many(self, writes: Iterable[Write]) -> int:
        """Writes all of them or, where a condition does not hold, none; the revision of all (0 for no writes)."""
        return wire.decode_integer(self._request(Operation.put_many, wire.encode_writes(writes)))

    def delete(self, key: Key, if_revision: int | None = None) -> bool:
        """Whether there was such an entry."""
        return wire.decode_integer(self._request(Operation.delete, wire.encode_delete(key, if_revision))) == 1

    def delete_many(self, keys: Iterable[Key]) -> int:
        """How many entries went."""
        return wire.decode_integer(self._request(Operation.delete_many, wire.encode_keys(keys)))

    def delete_all(self) -> int:
        """How many entries went."""
        return wire.decode_integer(self._request(Operation.delete_all))

    def count(self, prefix: Key = b"") -> int:
        return wire.decode_integer(self._request(Operation.count, wire.encode_key(prefix)))

    def page(
        self,
        limit: int,
        offset: int = 0,
        prefix: Key = b"",
        cursor: Key | None = None,
        reverse: bool = False,
        keys_only: bool = False,
    ) -> Answer:
        """At most `limit` entries in order of their keys, after the `cursor` and `offset` entries more."""
        return self._answer(Operation.page, wire.encode_page(limit, offset, prefix, cursor, reverse, keys_only))

    def all(self, prefix: Key = b"", cursor: Key | None = None, reverse: bool = False, keys_only: bool = False) -> Answer:
        return self._answer(Operation.all, wire.encode_all(prefix, cursor, reverse, keys_only))

    def watch(self, from_revision: int = 0, prefix: Key = b"", keys_only: bool = False) -> Watch:
        """The changes since a revision, or those that are still to come."""
        body = wire.encode_watch(from_revision, prefix, keys_only)
        return Watch(self.client, self.client.send(Operation.watch, body, self.handle))

    def _request(self, operation: Operation, body: bytes = b"") -> bytes:
        return self.client.request(operation, body, self.handle)

    def _answer(self, operation: Operation, body: bytes) -> Answer:
        return Answer(self.client, self.client.send(operation, body, self.handle))


def _named(entry: Entry | None, key: Key) -> Entry | None:
    return entry and replace(entry, key=key if isinstance(key, str) else key.decode())


class Watch:
    """The changes of a store (§6.5), which have no end but `cancel`, or an error such as *changesLost*.

    `through` is the revision up to which everything has come. Once some changes were lost, `lost` is the newest revision of which one is missing.
    """

    def __init__(self, client: Client, id: int) -> None:
        self._client, self.id = client, id
        self._size = 0
        self.lost: int | None = None
        self.through, _ = self._take()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    def next_changes(self) -> list[Change]:
        """The changes of the next frame. None comes for as long as nothing changes: the client's timeout then ends the client."""
        self._client.send_frame(Operation.credit, self.id, wire.encode_credit(self._size))
        self.through, changes = self._take()
        if changes and changes[-1].kind == wire.ChangeKind.lost:
            self.lost = changes.pop().revision
        return changes

    def cancel(self) -> None:
        self._client.send_frame(Operation.cancel, self.id)
        try:
            while True:
                self._take()
        except LarderError as error:
            if error.code not in (Code.cancelled, Code.changesLost, Code.storeUnknown):
                raise

    def _take(self) -> tuple[int, list[Change]]:
        reply = self._client.receive(self.id)
        self._size = reply.size
        return wire.decode_changes(reply.body)


class Answer(Iterator[Entry | None]):
    """The records of an answer, which show the store at the moment of the request however slowly they are read (§5).

    The server sends no more than the credit ahead: each frame's share is given back when the next frame is asked for. The client
    can do other things in between. Read an answer to its end, or cancel it (which leaving a `with` does).
    """

    def __init__(self, client: Client, id: int) -> None:
        self._client, self.id = client, id
        self._records: deque[Entry | None] = deque()
        self._frame: Reply | None = None
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    def __next__(self) -> Entry | None:
        while not self._records:
            if self._ended:
                raise StopIteration
            self._records.extend(self.next_frame())
        return self._records.popleft()

    def next_frame(self) -> list[Entry | None]:
        """The records of the next frame; empty once the answer has ended."""
        if self._ended:
            return []
        if self._frame:
            self._client.send_frame(Operation.credit, self.id, wire.encode_credit(self._frame.size))
        return wire.decode_records(self._receive().body)

    def cancel(self) -> None:
        """Ends the answer and forgets what is left of it. Does nothing to an answer that has ended."""
        self._records.clear()
        if self._ended:
            return
        self._client.send_frame(Operation.cancel, self.id)
        try:
            while not self._ended:
                self._receive()
        except LarderError as error:
            # It may have come to another end before the server saw the cancel.
            if error.code not in (Code.cancelled, Code.answerExpired, Code.storeUnknown, Code.notPermitted):
                raise

    def _receive(self) -> Reply:
        try:
            self._frame = self._client.receive(self.id)
        except BaseException:
            self._ended = True
            raise
        self._ended = not self._frame.more
        return self._frame
