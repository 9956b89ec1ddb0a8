"""A synchronous client for Larder that needs only the standard library.

    with Client("unix:/run/larder.sock") as client:
        users = client.open("users")
        users.put("ada", b"Lovelace", if_absent=True)
        print(users.get("ada").value)
        for entry in users.all(prefix="a"):
            print(entry.key)
        users.ensure_index(["name", {"age": "desc"}])
        for entry in users.find({"age": {"$gt": 12}}, sort=["name"], limit=20):
            print(entry.key, entry.value)

A client is one connection and belongs to one thread. Every call returns within `timeout` seconds or raises
`LarderError`, whose `outcome` says whether the request was executed; it is unknown, too, if the reply can't be decoded.
A timeout, a notice or a lost connection closes the client permanently. A request that does not fit into a frame raises
`ValueError`, and nothing is sent.
"""

from __future__ import annotations

import json
import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Self, TypeVar

import larder_wire as wire
from larder_wire import Change, Check, Code, ConnectionStatistics, Delete, DocumentChanges, Entry, FindResult, Hello, Key, Operation
from larder_wire import Outcome, Range, Reply, SlowLogRecord, StoreDescription, Update, Value, Write

__all__ = [
    "ReplyStream", "Change", "Check", "Client", "Code", "Delete", "DocumentChanges", "Entry", "FindResult", "FoundDocuments",
    "LarderError", "Outcome", "Range", "Store", "StoreDescription", "Update", "Watch", "Write",
]

Decoded = TypeVar("Decoded")


class LarderError(Exception):
    """A request whose reply was not *done*. `code` is None if the connection failed, or the reply can't be decoded."""

    def __init__(self, outcome: Outcome, code: Code | None, message: str) -> None:
        super().__init__(f"{code.name if code is not None else 'connection'}: {message}" if message else code.name)
        self.outcome, self.code, self.message = outcome, code, message


def connect(address: str, timeout: float | None, tls: ssl.SSLContext | None = None) -> socket.socket:
    """Connects to `unix:/path`, `tcp:host:port` or `tls:host:port` (`tcp:[::1]:port` for IPv6).

    `tls` says whom to trust at an address with TLS, and which certificate to show; by default whom the system trusts.
    """
    scheme, _, rest = address.partition(":")
    if scheme == "unix":
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(timeout)
        try:
            connected.connect(rest)
        except OSError:
            connected.close()
            raise
        return connected
    host, _, port = rest.rpartition(":")
    if scheme not in ("tcp", "tls") or not host or not port.isdigit():
        raise ValueError(f"{address!r} is neither unix:/path nor tcp:host:port nor tls:host:port")
    host = host.strip("[]")
    connected = socket.create_connection((host, int(port)), timeout)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if scheme == "tcp":
        return connected
    tls = tls or ssl.create_default_context()
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    tls.set_alpn_protocols(["larder/1"])
    try:
        return tls.wrap_socket(connected, server_hostname=host)
    except OSError:
        connected.close()
        raise


def send_while_receiving(connected: socket.socket, data: bytes, received: bytearray, deadline: float) -> bool:
    """Sends `data` and meanwhile appends incoming bytes to `received`.

    A server stops reading from a client that does not read (§9). Returns False if the server closed the connection;
    part of `data` may then be unsent.
    """
    remaining = memoryview(data)
    connected.settimeout(0)
    while remaining:
        try:
            remaining = remaining[connected.send(remaining) :]
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if _is_readable_before_writable(connected, deadline):
                try:
                    chunk = connected.recv(1 << 18)
                except ssl.SSLWantReadError:
                    continue
                if not chunk:
                    return False
                received += chunk
    return True


def _is_readable_before_writable(connected: socket.socket, deadline: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(connected, selectors.EVENT_READ | selectors.EVENT_WRITE)
        ready = selector.select(max(deadline - time.monotonic(), 0))
    if not ready:
        raise TimeoutError("the server does not read")
    return bool(ready[0][1] & selectors.EVENT_READ)


class Client:
    """An open connection. `credit` is how many bytes of a reply stream the server may send ahead of its reader.

    `token` proves who the client is, if the server has given it one. `max_frame_size` limits the size of a frame, in
    bytes, and with it the memory that a server can make the client use; the server may allow less.
    """

    def __init__(
        self, address: str, timeout: float = 5.0, credit: int = 1 << 20, name: str = "larder.py",
        tls: ssl.SSLContext | None = None, token: str = "", max_frame_size: int = wire.MAX_LENGTH + 4,
    ) -> None:
        self._timeout = timeout
        self._max_length = wire.MAX_HELLO_LENGTH
        self._credit = credit
        self._credits: dict[int, int] = {}  # The bytes that the server may still send, by the id of the request.
        self._received = bytearray()
        self._replies: dict[int, deque[Reply]] = {}  # Received frames by the id of each unfinished request.
        self._last_id = 0
        self._failure: LarderError | None = None
        try:
            self._socket = connect(address, timeout, tls)
        except OSError as error:
            raise LarderError(Outcome.not_executed, None, f"{address}: {error}") from error
        try:
            hello = wire.encode_hello(1, 1, credit, name, wire.FEATURES, token)
            self.hello: Hello = _decoded(wire.decode_hello, self.request(Operation.hello, hello))
            self._max_length = min(self.hello.max_frame_size, max_frame_size - 4)
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
        _decoded(wire.decode_nothing, self.request(Operation.ping))

    def stats(self) -> dict[str, int]:
        return _decoded(wire.decode_stats, self.request(Operation.stats))

    def slow_log(self) -> list[SlowLogRecord]:
        """Returns slow wakeups, the latest first."""
        return _decoded(wire.decode_slow_log, self.request(Operation.slow_log))

    def connections(self, limit: int = 256) -> list[ConnectionStatistics]:
        """Returns connections, the busiest (in requests per second) first."""
        return _decoded(wire.decode_connections, self.request(Operation.connections, wire.encode_connections(limit)))

    def whoami(self) -> dict[str, Any]:
        """Returns who this client is to the server, and its rights (§6.14)."""
        return _decoded(json.loads, self.request(Operation.whoami))

    def check_rules(self, **question: Any) -> list[dict[str, Any]]:
        """Returns whether a client may do something, for each socket that it can connect to (§6.14)."""
        return _decoded(json.loads, self.request(Operation.rules_check, _text(question).encode()))

    def tokens(self) -> list[dict[str, Any]]:
        """Returns the tokens that the server accepts, and when each was last used (§6.14)."""
        return _decoded(json.loads, self.request(Operation.token_list))

    def cluster(self) -> list[dict[str, Any]]:
        """Returns the servers that share stores, and who serves these, for each database (§6.15)."""
        return _decoded(json.loads, self.request(Operation.cluster))

    def console_link(self) -> dict[str, Any]:
        """Returns where the console is, and a link to it that works once (§6.14)."""
        return _decoded(json.loads, self.request(Operation.console_link))

    def move(self, store: str, node: str) -> None:
        """Hands a store over to another server (§6.15)."""
        _decoded(wire.decode_nothing, self.request(Operation.store_move, wire.encode_store_create(store, node)))

    def open(self, name: str, max_staleness: int | None = None) -> Store:
        """Opens a store; one whose reads may be `max_staleness` milliseconds old if that is given (§6.15)."""
        if max_staleness is None:
            reply = self.request(Operation.store_open, name.encode())
        else:
            reply = self.request(Operation.store_open_stale, wire.encode_store_open_stale(name, max_staleness))
        handle, engine = _decoded(wire.decode_store_open, reply)
        return Store(self, name, engine, handle)

    def create(self, name: str, specification: str = "memory") -> None:
        """Creates a store with an engine and its options, such as `log?durability=interval:1s` (§6.2)."""
        _decoded(wire.decode_nothing, self.request(Operation.store_create, wire.encode_store_create(name, specification)))

    def stores(self) -> list[StoreDescription]:
        return _decoded(wire.decode_store_list, self.request(Operation.store_list))

    def drop(self, name: str) -> None:
        _decoded(wire.decode_nothing, self.request(Operation.store_drop, name.encode()))

    # Raw requests: `request` for a single reply, or `send` and `receive`, with up to `hello.max_requests` in flight.

    def request(self, operation: int, body: bytes = b"", store: int = 0) -> bytes:
        """Returns the body of a reply of one frame."""
        return self.receive(self.send(operation, body, store)).body

    def send(self, operation: int, body: bytes = b"", store: int = 0) -> int:
        """Sends a request and returns its id. The caller must then receive every frame of its reply."""
        id = self._last_id % 0xFFFF_FFFF + 1
        while id in self._replies:
            id = id % 0xFFFF_FFFF + 1
        self.send_frame(operation, id, body, store)
        self._last_id, self._replies[id], self._credits[id] = id, deque(), self._credit
        return id

    def send_frame(self, operation: int, id: int, body: bytes = b"", store: int = 0) -> None:
        if self._failure:
            raise LarderError(Outcome.not_executed, self._failure.code, self._failure.message)
        frame = wire.encode_frame(operation, id, body, store)
        if operation != Operation.hello and len(frame) - 4 > self._max_length:
            raise ValueError(f"a request of {len(frame)} bytes exceeds the limit of {self._max_length + 4}")
        if operation == Operation.credit and id in self._credits:
            self._credits[id] += int.from_bytes(body, "little")
        try:
            is_open = send_while_receiving(self._socket, frame, self._received, time.monotonic() + self._timeout)
        except OSError as error:
            self._receive_notice()
            self._fail(Outcome.unknown, None, f"sending: {error}")
        else:
            self._take_replies()
            if not is_open:
                self._fail(Outcome.unknown, None, "the server closed the connection")
        if self._failure:
            raise self._failure

    def receive(self, id: int) -> Reply:
        """Returns the next frame of the reply to request `id`. Keeps frames of other replies for later."""
        deadline = time.monotonic() + self._timeout
        replies = self._replies[id]
        while not replies:
            if self._failure:
                raise self._failure
            self._receive_some(deadline)
        reply = replies.popleft()
        if not reply.more:
            del self._replies[id], self._credits[id]
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
            while not self._failure and (reply := wire.take_reply(self._received, self._max_length)):
                if reply.id == 0:
                    # Requests that have no reply before a notice were not executed (§8), whatever the notice's outcome.
                    return self._fail(Outcome.not_executed, reply.code, reply.message)
                if reply.id not in self._replies:
                    raise wire.WireError(f"a reply to unknown request {reply.id}")
                if reply.outcome == Outcome.done and self._credits[reply.id] <= 0:
                    raise wire.WireError("a frame of a reply stream exceeds the credit")
                self._credits[reply.id] -= reply.size
                self._replies[reply.id].append(reply)
        except wire.WireError as error:
            self._fail(Outcome.unknown, None, str(error))

    def _receive_notice(self) -> None:
        """Receives the notice in which a server that stopped reading may have given the reason."""
        self._take_replies()
        deadline = time.monotonic() + 0.1
        while not self._failure and time.monotonic() < deadline:
            self._receive_some(deadline)

    def _fail(self, outcome: Outcome, code: Code | None, message: str) -> None:
        """Closes the client. Earlier replies can still be received; later calls raise the first failure."""
        self._failure = self._failure or LarderError(outcome, code, message)
        self._socket.close()


class Store:
    """An open store. A key is a str or UTF-8 bytes; a value is bytes, or a list of bytes."""

    def __init__(self, client: Client, name: str, engine: str, handle: int) -> None:
        self.client, self.name, self.engine, self.handle = client, name, engine, handle

    def close(self) -> None:
        _decoded(wire.decode_nothing, self._request(Operation.store_close))

    def stats(self) -> dict[str, int]:
        return _decoded(wire.decode_stats, self._request(Operation.stats))

    def get(self, key: Key) -> Entry | None:
        try:
            entry = _decoded(_only_entry, self._request(Operation.get, wire.encode_key(key)))
        except LarderError as error:
            if error.code == Code.notFound:
                return None
            raise
        return _named(entry, key)

    def get_range(self, key: Key, offset: int, count: int, if_revision: int | None = None) -> Range | None:
        """Returns up to `count` bytes of a single value from `offset` on, with the size of the value."""
        try:
            return _decoded(wire.decode_range, self._request(Operation.get_range, wire.encode_range(key, offset, count, if_revision)))
        except LarderError as error:
            if error.code == Code.notFound:
                return None
            raise

    def get_many(self, keys: Iterable[Key]) -> list[Entry | None]:
        """Returns each key's entry or None, all from one snapshot."""
        keys = list(keys)
        entries = list(self._stream(Operation.get_many, wire.encode_keys(keys)))
        if len(entries) != len(keys):
            raise LarderError(Outcome.unknown, None, f"the reply has {len(entries)} entries for {len(keys)} keys")
        return [_named(entry, key) for key, entry in zip(keys, entries)]

    def put(
        self,
        key: Key,
        value: Value,
        expire_after_milliseconds: int | None = None,
        if_absent: bool = False,
        if_revision: int | None = None,
    ) -> int:
        """Writes an entry and returns its revision."""
        write = Write(key, value, expire_after_milliseconds, if_absent, if_revision)
        return _decoded(wire.decode_revision, self._request(Operation.put, wire.encode_write(write)))

    def put_chunks(
        self,
        key: Key,
        chunks: Iterable[bytes],
        expire_after_milliseconds: int | None = None,
        if_absent: bool = False,
        if_revision: int | None = None,
    ) -> int:
        """Writes a single value that arrives in chunks, in one step at the end. Returns the entry's revision."""
        upload = _decoded(wire.decode_integer, self._request(Operation.upload_begin))
        try:
            size = 0
            for chunk in chunks:
                self.client.request(Operation.upload_part, wire.encode_upload_part(upload, size, chunk))
                size += len(chunk)
            write = Write(key, b"", expire_after_milliseconds, if_absent, if_revision)
            return _decoded(wire.decode_revision, self._request(Operation.upload_put, wire.encode_upload_put(upload, size, write)))
        except BaseException as error:
            # The server discards the upload of a connection that ends.
            if not isinstance(error, LarderError) or error.code is not None:
                self.client.request(Operation.upload_discard, wire.encode_upload_discard(upload))
            raise

    def put_many(self, writes: Iterable[Write]) -> int:
        """Writes all entries, or none if a condition fails. Returns their common revision (0 for no writes)."""
        return _decoded(wire.decode_revision, self._request(Operation.put_many, wire.encode_writes(writes)))

    def delete(self, key: Key, if_revision: int | None = None) -> bool:
        """Returns whether the entry existed."""
        return _decoded(wire.decode_integer, self._request(Operation.delete, wire.encode_delete(key, if_revision))) == 1

    def delete_many(self, keys: Iterable[Key]) -> int:
        """Returns the number of deleted entries."""
        return _decoded(wire.decode_integer, self._request(Operation.delete_many, wire.encode_keys(keys)))

    def delete_all(self) -> int:
        """Returns the number of deleted entries."""
        return _decoded(wire.decode_integer, self._request(Operation.delete_all))

    def count(self, prefix: Key = b"") -> int:
        return _decoded(wire.decode_integer, self._request(Operation.count, wire.encode_key(prefix)))

    def page(
        self,
        limit: int,
        offset: int = 0,
        prefix: Key = b"",
        cursor: Key | None = None,
        reverse: bool = False,
        keys_only: bool = False,
    ) -> ReplyStream:
        """Returns at most `limit` entries in key order, after `cursor` and `offset` further entries."""
        return self._stream(Operation.page, wire.encode_page(limit, offset, prefix, cursor, reverse, keys_only))

    def all(self, prefix: Key = b"", cursor: Key | None = None, reverse: bool = False, keys_only: bool = False) -> ReplyStream:
        return self._stream(Operation.all, wire.encode_all(prefix, cursor, reverse, keys_only))

    def watch(
        self, from_revision: int = 0, prefix: Key = b"", keys_only: bool = False, incarnation: int | None = None
    ) -> Watch:
        """Watches the changes since a revision, or only future ones.

        To continue an earlier watch, pass its `incarnation` and its `through` plus one. Changes are lost if the store has
        another incarnation by now. None stands for any incarnation.
        """
        if self.client.hello.features & wire.INCARNATIONS:
            incarnation = incarnation or 0
        elif incarnation is not None:
            message = "the server is too old to tell whether the store is the same"
            raise LarderError(Outcome.not_executed, Code.unknownOperation, message)
        body = wire.encode_watch(from_revision, prefix, keys_only, incarnation)
        return Watch(self.client, self.client.send(Operation.watch, body, self.handle))

    def find(
        self,
        selector: dict[str, Any] | None = None,
        sort: list[Any] | None = None,
        fields: list[str] | None = None,
        limit: int | None = None,
        skip: int = 0,
        bookmark: str = "",
        index: str = "",
        time: int | None = None,
    ) -> FoundDocuments:
        """Returns the documents that match a selector.

        The bookmark is that of an earlier page. An index is used by its name, or else if the server chooses to. The time
        is how many milliseconds finding the documents may take; the server has a default and a maximum.
        """
        texts = (_text(selector), _text(sort), _text(fields), bookmark)
        body = wire.encode_find(*texts, limit, skip, index=index, time=time)
        return self._found(Operation.find, body)

    def explain(
        self,
        selector: dict[str, Any] | None = None,
        sort: list[Any] | None = None,
        fields: list[str] | None = None,
        limit: int | None = None,
        skip: int = 0,
        bookmark: str = "",
        index: str = "",
    ) -> dict[str, Any]:
        """Returns how the server finds documents: the plan, and why it is the best one."""
        texts = (_text(selector), _text(sort), _text(fields), bookmark)
        return _decoded(json.loads, self._result(wire.encode_find(*texts, limit, skip, explain=True, index=index)).text)

    def count_documents(self, selector: dict[str, Any] | None = None, index: str = "", time: int | None = None) -> int:
        """Returns the number of documents that match a selector. The time is as in `find`."""
        return self._result(wire.encode_find(_text(selector), count_only=True, index=index, time=time)).found

    def aggregate(
        self,
        by: list[str] | None = None,
        compute: list[Any] | None = None,
        selector: dict[str, Any] | None = None,
        sort: list[dict[str, str]] | None = None,
        limit: int | None = None,
        time: int | None = None,
    ) -> list[tuple[list[Any], list[Any]]]:
        """Returns the groups of the documents that match a selector: the values of the paths in `by`, and what is computed.

        `compute` has "count" (the default) and objects such as {"avg": "age"}. A missing value is None, as null is. `sort`
        has objects such as {"count": "desc"} with what is computed or grouped by; without it, the groups are in the order
        of the values. The time is as in `find`.
        """
        aggregation = {"by": by or [], "compute": ["count"] if compute is None else compute}
        if sort is not None:
            aggregation["sort"] = sort
        if limit is not None:
            aggregation["limit"] = limit
        body = wire.encode_aggregate(_text(selector), _text(aggregation), time)
        return [_decoded(_group, entry.value) for entry in self._found(Operation.aggregate, body)]

    def distinct(self, path: str, selector: dict[str, Any] | None = None) -> list[Any]:
        """Returns the different values of a field; of an array, the elements."""
        body = wire.encode_aggregate(_text(selector), _text({"by": [path], "compute": []}))
        groups = [_decoded(_first_values, entry.value) for entry in self._found(Operation.aggregate, body)]
        return [value for values in groups for value in values]

    def update_matching(
        self, selector: dict[str, Any], update: dict[str, Any], dry_run: bool = False, time: int | None = None
    ) -> DocumentChanges:
        """Updates all documents that match a selector in one step, or returns what that would change."""
        body = wire.encode_change_matching(_text(selector), _text(update), dry_run, time)
        return _decoded(wire.decode_document_changes, self._request(Operation.change_matching, body))

    def delete_matching(
        self, selector: dict[str, Any], dry_run: bool = False, time: int | None = None
    ) -> DocumentChanges:
        """Deletes all documents that match a selector in one step, or returns what that would delete."""
        body = wire.encode_change_matching(_text(selector), None, dry_run, time)
        return _decoded(wire.decode_document_changes, self._request(Operation.change_matching, body))

    def apply(self, operations: Iterable[Write | Delete | Update | Check]) -> int:
        """Executes all operations in one step, or none, and returns the revision; 0 if nothing was written.

        If a condition does not hold, the error has the code `conditionFailed` and names the operation, counted from 1.
        """
        return _decoded(wire.decode_revision, self._request(Operation.apply, wire.encode_apply(operations)))

    def ensure_index(self, fields: list[Any], where: dict[str, Any] | None = None, name: str | None = None) -> str:
        """Creates an index, unless it exists, and returns its name. The server builds it in the background.

        A field is a path, or an object such as {"age": "desc"}; `where` selects the documents that are in the index.
        """
        definition = {"name": name, "fields": fields, "where": where}
        text = _text({member: value for member, value in definition.items() if value is not None})
        return _decoded(wire.decode_index_ensure, self._request(Operation.index_ensure, text.encode()))[1]

    def delete_index(self, name: str) -> None:
        _decoded(wire.decode_nothing, self._request(Operation.index_delete, name.encode()))

    def indexes(self) -> list[dict[str, Any]]:
        """Returns the indexes with their state and figures, sorted by name."""
        return _decoded(json.loads, self._request(Operation.index_list))

    def wait_for_index(self, name: str, timeout: float = 60) -> dict[str, Any]:
        """Waits until an index is ready, and returns its state and figures."""
        deadline = time.monotonic() + timeout
        while True:
            index = next((index for index in self.indexes() if index["name"] == name), None)
            if index is None:
                raise LarderError(Outcome.rejected, Code.indexUnknown, f"the store {self.name} has no index {name}")
            if index["state"] == "ready":
                return index
            if index["state"] == "failed":
                raise LarderError(Outcome.rejected, Code.failed, f"the index {name} can't be built: {index.get('reason', '')}")
            if time.monotonic() > deadline:
                raise LarderError(Outcome.rejected, None, f"the index {name} is not ready after {timeout} s")
            time.sleep(0.01)

    def _found(self, operation: Operation, body: bytes) -> FoundDocuments:
        return FoundDocuments(self.client, self.client.send(operation, body, self.handle))

    def _result(self, body: bytes) -> FindResult:
        """Returns the result of a find that returns no documents."""
        found = self._found(Operation.find, body)
        list(found)
        if found.result is None:
            raise LarderError(Outcome.unknown, None, "the reply ends without a result")
        return found.result

    def _request(self, operation: Operation, body: bytes = b"") -> bytes:
        return self.client.request(operation, body, self.handle)

    def _stream(self, operation: Operation, body: bytes) -> ReplyStream:
        return ReplyStream(self.client, self.client.send(operation, body, self.handle))


def _text(part: object) -> str:
    return "" if part is None else json.dumps(part, ensure_ascii=False)


def _decoded(decode: Callable[[Any], Decoded], body: bytes | str) -> Decoded:
    """Decodes the body of a reply. The request was executed, but this client can't tell with which result."""
    try:
        return decode(body)
    except (wire.WireError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise LarderError(Outcome.unknown, None, f"the reply can't be decoded: {error}") from error


def _group(value: bytes) -> tuple[list[Any], list[Any]]:
    group = json.loads(value)
    return tuple([value[0] if value else None for value in group[name]] for name in ("by", "values"))


def _first_values(value: bytes) -> list[Any]:
    return json.loads(value)["by"][0]


def _only_entry(body: bytes) -> Entry | None:
    (entry,) = wire.decode_records(body)
    return entry


def _named(entry: Entry | None, key: Key) -> Entry | None:
    return entry and replace(entry, key=key if isinstance(key, str) else key.decode())


class Watch:
    """The changes of a store (§6.5). A watch ends only with `cancel` or an error such as *changesLost*.

    `through` is the revision up to which all changes have arrived. After a loss, `lost` is the newest revision with a
    missing change; it is set at once if the watch begins too late. `incarnation` is the identity of the store's history;
    None if the server is too old to tell.
    """

    def __init__(self, client: Client, id: int) -> None:
        self._client, self.id = client, id
        self._size = 0
        self.lost: int | None = None
        self.incarnation: int | None = None
        self.through = 0
        self._take()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    def next_changes(self) -> list[Change]:
        """Returns the changes of the next frame. If none arrives within the client's timeout, the client is closed."""
        self._client.send_frame(Operation.credit, self.id, wire.encode_credit(self._size))
        return self._take()

    def cancel(self) -> None:
        self._client.send_frame(Operation.cancel, self.id)
        try:
            while True:
                self._take()
        except LarderError as error:
            if error.code not in (Code.cancelled, Code.changesLost, Code.storeUnknown):
                raise

    def _take(self) -> list[Change]:
        reply = self._client.receive(self.id)
        self._size = reply.size
        self.through, changes = _decoded(wire.decode_changes, reply.body)
        if changes and changes[0].kind == wire.ChangeKind.incarnation:
            self.incarnation = changes.pop(0).revision
        if changes and changes[-1].kind == wire.ChangeKind.lost:
            self.lost = changes.pop().revision
        return changes


class ReplyStream(Iterator[Entry | None]):
    """The records of a reply stream, which show the store as of the request, however slowly they are read (§5).

    The server sends at most `credit` bytes ahead; reading the next frame returns the credit of the one before. The client
    can make other requests in between. Read a stream to its end or cancel it (leaving a `with` block does so).
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
        """Returns the records of the next frame, or an empty list after the end."""
        if self._ended:
            return []
        if self._frame:
            self._client.send_frame(Operation.credit, self.id, wire.encode_credit(self._frame.size))
        return self._decode(self._receive().body)

    def _decode(self, body: bytes) -> list[Entry | None]:
        return _decoded(wire.decode_records, body)

    def cancel(self) -> None:
        """Ends the stream and discards its remaining records. Does nothing if the stream has ended."""
        self._records.clear()
        if self._ended:
            return
        self._client.send_frame(Operation.cancel, self.id)
        try:
            while not self._ended:
                self._receive()
        except LarderError as error:
            # The stream may have ended in another way before the server received the cancel.
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


class FoundDocuments(ReplyStream):
    """The documents of a find (§6.7), or the groups of an aggregate (§6.8). `result` is there once all have been read."""

    def __init__(self, client: Client, id: int) -> None:
        super().__init__(client, id)
        self.result: FindResult | None = None

    def _decode(self, body: bytes) -> list[Entry | None]:
        records = _decoded(wire.decode_found, body)
        if records and isinstance(records[-1], FindResult):
            self.result = records.pop()
        return records

    @property
    def bookmark(self) -> str:
        """The bookmark of the next page; empty if there is none, or not all documents have been read."""
        return self.result.text if self.result else ""
