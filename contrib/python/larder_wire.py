"""Encoding and decoding of frames as Protocol/wire.md specifies; § refers to its sections. No sockets, no clocks."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

Key = str | bytes
Value = bytes | list[bytes]  # single, or the elements of a list


DOCUMENTS, RANGES, UPLOADS = 1, 2, 4  # §3: the feature bits of documents and their indexes, ranges, and uploads
INCARNATIONS = 8  # §3: the feature bit of watches that follow one incarnation of a store
TIMES = 16  # §3: the feature bit of requests on documents that say how long they may take
GROUP_EXPLANATIONS = 32  # §3: the feature bit of aggregates that are explained
TOKENS = 64  # §3: the feature bit of a hello with a token
RIGHTS = 128  # §3: the feature bit of questions about rights
CLUSTERS = 256  # §3: the feature bit of stores that servers share
CONSOLES = 512  # §3: the feature bit of links to the console
FEATURES = DOCUMENTS | RANGES | UPLOADS | INCARNATIONS | TIMES | GROUP_EXPLANATIONS | TOKENS | RIGHTS | CLUSTERS | CONSOLES


class Operation(IntEnum):
    """§5 and §6."""

    hello, credit, cancel, ping, stats, slow_log, connections = range(1, 8)
    store_open, store_close, store_create, store_list, store_drop, index_ensure, index_delete = range(8, 15)
    get_range, get, get_many, put, put_many, delete, delete_many, delete_all, count, page, all, watch, find = range(15, 28)
    aggregate, change_matching, index_list, apply = range(28, 32)
    upload_begin, upload_part, upload_put, upload_discard, whoami, rules_check, token_list, cluster, store_move = range(32, 41)
    store_open_stale = 41
    console_link = 42


class Outcome(IntEnum):
    """§7: what a client knows about its request. Values from later versions map to `unknown`."""

    done, not_executed, rejected, unknown = 0, 1, 2, 3

    @classmethod
    def _missing_(cls, value: object) -> Outcome:
        return cls.unknown


class Code(IntEnum):
    """§7. A code from a later version keeps its number and is named after it."""

    unknown, notFound, illegalArgument, notImplemented, notValid, failed, queryNotSupported, dataSerialization = range(8)
    malformed, unknownOperation, frameLength, helloExpected, versionNotSupported, storeUnknown, storeExists = range(16, 23)
    conditionFailed, keyInvalid, valueTooLarge, tooManyRequests, tooManyStores, tooManyConnections = range(23, 29)
    storeFull, shuttingDown, timedOut, answerExpired, cancelled, storeReadOnly, valueDamaged = range(29, 36)
    changesLost = 36
    notPermitted = 37
    queryStopped = 38
    indexExists, tooManyIndexes, indexUnknown, uploadUnknown, storeDamaged, notLeader = range(39, 45)

    @classmethod
    def _missing_(cls, value: object) -> Code | None:
        if not isinstance(value, int):
            return None
        code = int.__new__(cls, value)
        code._name_, code._value_ = f"code{value}", value
        return code


class WireError(Exception):
    """Bytes from the server that the protocol does not allow."""


@dataclass(frozen=True)
class Reply:
    """One frame from the server. `body` is the message unless the outcome is `done`; `id` 0 denotes a notice (§8)."""

    outcome: Outcome
    more: bool
    code: Code
    id: int
    body: bytes

    @property
    def size(self) -> int:
        """The credit that the frame consumes."""
        return FRAME.size + len(self.body)

    @property
    def message(self) -> str:
        return self.body.decode(errors="replace")


@dataclass(frozen=True)
class Hello:
    """§3: the server's limits. `max_frame_size` is the maximum `length`, four bytes less than the whole frame."""

    version: int
    features: int
    max_frame_size: int
    max_value_size: int
    max_key_size: int
    max_stores: int
    max_requests: int
    max_keys: int
    name: str


@dataclass(frozen=True)
class Entry:
    """§4: an entry record. `key` is empty if the request named it."""

    key: str
    value: Value
    revision: int
    expire_after_milliseconds: int | None = None


@dataclass(frozen=True)
class Range:
    """§6.12: a part of a value. `size` is that of the whole value."""

    value: bytes
    size: int
    revision: int
    expire_after_milliseconds: int | None = None


@dataclass(frozen=True)
class Write:
    """§4: a write record."""

    key: Key
    value: Value
    expire_after_milliseconds: int | None = None
    if_absent: bool = False
    if_revision: int | None = None


@dataclass(frozen=True)
class Delete:
    """§6.11: an operation of an apply request."""

    key: Key
    if_revision: int | None = None


@dataclass(frozen=True)
class Update:
    """§6.11: an operation of an apply request. `update` is JSON (§6.9); with `create`, an absent key counts as `{}`."""

    key: Key
    update: bytes
    if_revision: int | None = None
    create: bool = False


@dataclass(frozen=True)
class Check:
    """§6.11: an operation of an apply request that writes nothing."""

    key: Key
    if_absent: bool = False
    if_revision: int | None = None


@dataclass(frozen=True)
class SlowLogRecord:
    """§6.1: a slow wakeup of a worker. `operations` has a bit for each operation's number, and bit 0 for those above 31."""

    milliseconds_ago: int
    nanoseconds: int
    received_bytes: int
    requests: int
    operations: int
    store: str


@dataclass(frozen=True)
class ConnectionStatistics:
    """§6.1. Without credentials, `process` is 0 and `user` is 2³² − 1."""

    number: int
    open_milliseconds: int
    requests: int
    requests_per_second: int
    received_bytes: int
    sent_bytes: int
    waiting_bytes: int
    process: int
    user: int
    address: str
    command: str
    client: str


class ChangeKind(IntEnum):
    """§6.5."""

    single, list, deleted, all_deleted, lost, incarnation = range(1, 7)


@dataclass(frozen=True)
class Change:
    """§6.5: a change record. The value is empty with *keys only* and for deletions.

    The record of an incarnation, which is no change, has the incarnation as its revision.
    """

    kind: ChangeKind
    key: str
    value: bytes
    revision: int
    expire_after_milliseconds: int | None = None
    only_expiry: bool = False
    """Whether the entry was written only to change its expiry, or to remove it."""


@dataclass(frozen=True)
class FindResult:
    """§6.7: the last record of a find or an aggregate.

    `text` is the bookmark of the next page (empty if there is none) or, if it was requested, the explanation in JSON.
    """

    revision: int
    examined_documents: int
    examined_keys: int
    found: int
    nanoseconds: int
    text: str


@dataclass(frozen=True)
class DocumentChanges:
    """§6.9: what a change of matching documents did. `revision` is 0 if nothing was changed."""

    matched: int
    changed: int
    revision: int
    examined_documents: int
    examined_keys: int
    nanoseconds: int


@dataclass(frozen=True)
class StoreDescription:
    name: str
    specification: str
    entries: int


# Frames (§2): length, operation or outcome, zero or flags, store or code, id.

FRAME = struct.Struct("<IBBHI")
MORE = 1
# The maximum length of the reply to a hello, whatever later versions append to it.
MAX_HELLO_LENGTH = 131_072
# The maximum length that a client accepts by default, whatever the server's is.
MAX_LENGTH = (64 << 20) - 4


def encode_frame(operation: int, id: int, body: bytes = b"", store: int = 0) -> bytes:
    return FRAME.pack(FRAME.size - 4 + len(body), operation, 0, store, id) + body


def take_reply(received: bytearray, max_length: int = MAX_LENGTH) -> Reply | None:
    """Removes the first frame from `received` and returns it, or returns None if it is incomplete.

    Raises `WireError` for a frame with a greater length, before it arrives.
    """
    if len(received) < FRAME.size:
        return None
    length, outcome, flags, code, id = FRAME.unpack_from(received)
    if not FRAME.size - 4 <= length <= max_length:
        raise WireError(f"frame length {length} is outside {FRAME.size - 4}…{max_length}")
    if len(received) < length + 4:
        return None
    body = bytes(received[FRAME.size : length + 4])
    del received[: length + 4]
    return Reply(Outcome(outcome), bool(flags & MORE), Code(code), id, body)


# Bodies of requests.


def pack(layout: str, *fields: object) -> bytes:
    try:
        return struct.pack("<" + layout, *fields)
    except struct.error as error:
        raise ValueError(f"a field of a request is too large: {error}") from error


def encode_key(key: Key) -> bytes:
    return key.encode() if isinstance(key, str) else key


def encode_list(elements: Iterable[bytes]) -> bytes:
    return b"".join(pack("I", len(element)) + element for element in elements)


def encode_hello(lowest: int, highest: int, credit: int, name: str, features: int = 0, token: str = "") -> bytes:
    text, secret = name.encode(), token.encode()
    hello = pack("4sHHIIH", b"LRDR", lowest, highest, features, credit, len(text)) + text
    return hello + pack("H", len(secret)) + secret if features & TOKENS else hello


def encode_credit(credit: int) -> bytes:
    return pack("I", credit)


def encode_store_create(name: str, specification: str) -> bytes:
    text = name.encode()
    return pack("B", len(text)) + text + specification.encode()


def encode_store_open_stale(name: str, max_staleness: int) -> bytes:
    """`max_staleness` is in milliseconds."""
    return pack("I", max_staleness) + name.encode()


def encode_keys(keys: Iterable[Key]) -> bytes:
    encoded = [encode_key(key) for key in keys]
    return pack("I", len(encoded)) + b"".join(pack("H", len(key)) + key for key in encoded)


def encode_write(write: Write) -> bytes:
    key = encode_key(write.key)
    kind, value = (2, encode_list(write.value)) if isinstance(write.value, list) else (1, write.value)
    flags, options = 0, b""
    if write.expire_after_milliseconds is not None:
        flags, options = 1, pack("Q", write.expire_after_milliseconds)
    if write.if_absent:
        flags |= 2
    if write.if_revision is not None:
        flags, options = flags | 4, options + pack("Q", write.if_revision)
    return pack("BBHI", kind, flags, len(key), len(value)) + options + key + value


def encode_writes(writes: Iterable[Write]) -> bytes:
    encoded = [encode_write(write) for write in writes]
    return pack("I", len(encoded)) + b"".join(encoded)


def encode_apply(operations: Iterable[Write | Delete | Update | Check]) -> bytes:
    encoded = [_encode_operation(operation) for operation in operations]
    return pack("I", len(encoded)) + b"".join(encoded)


def _encode_operation(operation: Write | Delete | Update | Check) -> bytes:
    if isinstance(operation, Write):
        return encode_write(operation)
    key, value, flags, condition = encode_key(operation.key), b"", 0, b""
    match operation:
        case Delete():
            kind = 3
        case Update():
            kind, value, flags = 4, operation.update, operation.create << 3
        case Check():
            kind, flags = 5, operation.if_absent << 1
    if operation.if_revision is not None:
        flags, condition = flags | 4, pack("Q", operation.if_revision)
    return pack("BBHI", kind, flags, len(key), len(value)) + condition + key + value


def encode_delete(key: Key, if_revision: int | None = None) -> bytes:
    condition = b"\0" if if_revision is None else pack("BQ", 4, if_revision)
    return condition + encode_key(key)


def encode_range(key: Key, offset: int, count: int, if_revision: int | None = None) -> bytes:
    condition = b"" if if_revision is None else pack("Q", if_revision)
    return pack("IIQ", (if_revision is not None) << 2, count, offset) + condition + encode_key(key)


def encode_upload_part(upload: int, offset: int, part: bytes) -> bytes:
    return pack("QQ", upload, offset) + part


def encode_upload_put(upload: int, size: int, write: Write) -> bytes:
    """`write` has no value, or an empty list."""
    return pack("QQ", upload, size) + encode_write(write)


def encode_upload_discard(upload: int) -> bytes:
    return pack("Q", upload)


def encode_all(prefix: Key = b"", cursor: Key | None = None, reverse: bool = False, keys_only: bool = False) -> bytes:
    return _encode_range(prefix, cursor, reverse, keys_only, b"")


def encode_page(
    limit: int, offset: int = 0, prefix: Key = b"", cursor: Key | None = None, reverse: bool = False, keys_only: bool = False
) -> bytes:
    return _encode_range(prefix, cursor, reverse, keys_only, pack("IQ", limit, offset))


def encode_watch(
    from_revision: int = 0, prefix: Key = b"", keys_only: bool = False, incarnation: int | None = None
) -> bytes:
    """With an incarnation, which is 0 for any, the first frame of the reply has the store's."""
    encoded = encode_key(prefix)
    flags = keys_only << 1 | (incarnation is not None) << 2
    followed = b"" if incarnation is None else pack("Q", incarnation)
    return pack("BBHIQ", flags, 0, len(encoded), 0, from_revision) + followed + encoded


def encode_find(
    selector: str = "", sort: str = "", fields: str = "", bookmark: str = "", limit: int | None = None, skip: int = 0,
    count_only: bool = False, explain: bool = False, index: str = "", time: int | None = None,
) -> bytes:
    """The time, in milliseconds, is how long the find may take (§6.7)."""
    texts = [text.encode() for text in (selector, sort, fields, bookmark)]
    name = index.encode()
    flags = count_only | (limit is not None) << 1 | explain << 2 | (time is not None) << 3
    header = pack("HHIQIIII", flags, len(name), limit or 0, skip, *map(len, texts))
    return header + _encode_time(time) + b"".join(texts) + name


def _encode_time(time: int | None) -> bytes:
    return b"" if time is None else pack("I", time)


def encode_aggregate(selector: str, aggregation: str, time: int | None = None, explain: bool = False) -> bytes:
    text = selector.encode()
    return pack("II", (time is not None) | explain << 1, len(text)) + _encode_time(time) + text + aggregation.encode()


def encode_change_matching(selector: str, update: str | None, dry_run: bool = False, time: int | None = None) -> bytes:
    """Encodes an update or, without one, a deletion."""
    text = selector.encode()
    flags = dry_run | (update is None) << 1 | (time is not None) << 2
    return pack("II", flags, len(text)) + _encode_time(time) + text + (update or "").encode()


def _encode_range(prefix: Key, cursor: Key | None, reverse: bool, keys_only: bool, window: bytes) -> bytes:
    first, after = encode_key(prefix), encode_key(cursor or b"")
    flags = reverse | keys_only << 1 | (cursor is not None) << 2
    return pack("BBHHH", flags, 0, len(first), len(after), 0) + window + first + after


# Bodies of replies.


class Reader:
    """Reads fields from the front of a body. Raises `WireError` if the body is too short."""

    def __init__(self, body: bytes) -> None:
        self._body, self._offset = body, 0

    def __bool__(self) -> bool:
        return self._offset < len(self._body)

    def bytes(self, size: int) -> bytes:
        end = self._offset + size
        if end > len(self._body):
            raise WireError("the body ends inside a field")
        taken, self._offset = self._body[self._offset : end], end
        return taken

    def integer(self, size: int) -> int:
        return int.from_bytes(self.bytes(size), "little")

    def revision(self) -> int:
        """Returns a revision, which is below 2⁶³ (§4)."""
        revision = self.integer(8)
        if revision >> 63:
            raise WireError(f"a revision of {revision}")
        return revision

    def expiry(self, flags: int) -> int | None:
        if not flags & 1:
            return None
        if (expiry := self.integer(8)) == 0:
            raise WireError("an expiry of 0")
        return expiry

    def text(self, size: int) -> str:
        try:
            return self.bytes(size).decode()
        except UnicodeDecodeError as error:
            raise WireError("text is not UTF-8") from error

    def rest(self) -> bytes:
        return self.bytes(len(self._body) - self._offset)

    def rest_text(self) -> str:
        return self.text(len(self._body) - self._offset)

    def end(self) -> Self:
        if self:
            raise WireError("the body has trailing bytes")
        return self


def decode_nothing(body: bytes) -> None:
    Reader(body).end()


def decode_integer(body: bytes) -> int:
    """Returns a count, or the number of an upload."""
    reader = Reader(body)
    value = reader.integer(8)
    reader.end()
    return value


def decode_revision(body: bytes) -> int:
    reader = Reader(body)
    revision = reader.revision()
    reader.end()
    return revision


def decode_hello(body: bytes) -> Hello:
    """Later versions may add fields at the end."""
    reader = Reader(body)
    version, _, features, frame, value, key, stores, requests, keys = (reader.integer(size) for size in (2, 2, 4, 4, 4, 2, 2, 4, 4))
    return Hello(version, features, frame, value, key, stores, requests, keys, reader.text(reader.integer(2)))


def decode_store_open(body: bytes) -> tuple[int, str]:
    """Returns the handle and the engine's name."""
    reader = Reader(body)
    return reader.integer(2), reader.rest_text()


def decode_store_list(body: bytes) -> list[StoreDescription]:
    reader, stores = Reader(body), []
    while reader:
        name, specification = reader.text(reader.integer(1)), reader.text(reader.integer(1))
        stores.append(StoreDescription(name, specification, reader.integer(8)))
    return stores


def decode_stats(body: bytes) -> dict[str, int]:
    reader, figures = Reader(body), {}
    while reader:
        name = reader.text(reader.integer(1))
        figures[name] = reader.integer(8)
    return figures


def decode_slow_log(body: bytes) -> list[SlowLogRecord]:
    reader, entries = Reader(body), []
    while reader:
        numbers = [reader.integer(size) for size in (8, 8, 8, 4, 4)]
        entries.append(SlowLogRecord(*numbers, reader.text(reader.integer(1))))
    return entries


def encode_connections(limit: int) -> bytes:
    return limit.to_bytes(4, "little")


def decode_connections(body: bytes) -> list[ConnectionStatistics]:
    reader, connections = Reader(body), []
    while reader:
        numbers = [reader.integer(size) for size in (8, 8, 8, 8, 8, 8, 8, 4, 4)]
        connections.append(ConnectionStatistics(*numbers, *(reader.text(reader.integer(1)) for _ in range(3))))
    return connections


def decode_list(value: bytes) -> list[bytes]:
    reader, elements = Reader(value), []
    while reader:
        elements.append(reader.bytes(reader.integer(4)))
    return elements


def decode_records(body: bytes) -> list[Entry | None]:
    """Returns the entries of one frame; None for keys that get-many did not find."""
    reader, entries = Reader(body), []
    while reader:
        kind, flags, key_size, value_size = (reader.integer(size) for size in (1, 1, 2, 4))
        revision, expiry = reader.revision(), reader.expiry(flags)
        key, value = reader.text(key_size), reader.bytes(value_size)
        if kind not in (0, 1, 2):
            raise WireError(f"an entry of kind {kind}")
        entries.append(Entry(key, decode_list(value) if kind == 2 else value, revision, expiry) if kind else None)
    return entries


def decode_range(body: bytes) -> Range:
    size = Reader(body).integer(8)
    match decode_records(body[8:]):
        case [Entry("", bytes(value), revision, expiry)] if len(value) <= size:
            return Range(value, size, revision, expiry)
    raise WireError("the reply to a get-range has no single value")


def decode_found(body: bytes) -> list[Entry | FindResult]:
    """Returns the records of one frame of a find (documents) or an aggregate (groups), and in the last frame the result."""
    reader, records = Reader(body), []
    while reader:
        kind, flags, key_size, value_size = (reader.integer(size) for size in (1, 1, 2, 4))
        revision, expiry = reader.revision(), reader.expiry(flags)
        key, value = reader.text(key_size), reader.bytes(value_size)
        if kind == 1:
            records.append(Entry(key, value, revision, expiry))
        elif kind == 3 and not reader:
            figures = Reader(value)
            numbers = [figures.integer(8) for _ in range(4)]
            records.append(FindResult(revision, *numbers, figures.rest_text()))
        else:
            raise WireError(f"a record of kind {kind} in the reply to a find")
    return records


def decode_document_changes(body: bytes) -> DocumentChanges:
    reader = Reader(body)
    counts = reader.integer(8), reader.integer(8)
    changes = DocumentChanges(*counts, reader.revision(), *(reader.integer(8) for _ in range(3)))
    reader.end()
    return changes


def decode_index_ensure(body: bytes) -> tuple[bool, str]:
    """Returns whether the index was created, and its name."""
    reader = Reader(body)
    created, name = reader.integer(1), reader.rest_text()
    if created > 1 or not name:
        raise WireError(f"an index-ensure reply with {created} and the name {name!r}")
    return created == 1, name


def decode_changes(body: bytes) -> tuple[int, list[Change]]:
    """Returns the revision up to which this frame completes a watch, and the frame's changes."""
    reader, changes = Reader(body), []
    through = reader.revision()
    while reader:
        kind, flags, key_size, value_size = (reader.integer(size) for size in (1, 1, 2, 4))
        revision, expiry = reader.revision(), reader.expiry(flags)
        key, value = reader.text(key_size), reader.bytes(value_size)
        if kind not in list(ChangeKind):
            raise WireError(f"a change of kind {kind}")
        if flags & ~3 or flags & 2 and kind > ChangeKind.list:
            raise WireError(f"a change of kind {kind} with the flags {flags}")
        if kind == ChangeKind.incarnation and revision == 0:
            raise WireError("an incarnation of 0")
        changes.append(Change(ChangeKind(kind), key, value, revision, expiry, flags & 2 != 0))
    return through, changes
