"""What a store replies to requests that only read, and what replies show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import larder_wire as wire
from larder import Client
from larder_wire import Check, Code, Operation
from store_model import Apply, Call, Content, Entry, Outcome, Request, State, content, documents, tag_of, unchanged


class Seen(NamedTuple):
    """An entry as a reply has it. `content` is None if only keys were requested."""

    key: str
    content: Content | None
    revision: int
    milliseconds_left: int | None = None


def seen(record: wire.Entry, keys_only: bool = False) -> Seen:
    return Seen(record.key, None if keys_only else content(record.value), record.revision, record.expire_after_milliseconds)


@dataclass(frozen=True)
class Get(Request):
    """Reads one entry or, with `size`, the entry's revision and the first bytes of its value, which has to be a document."""

    key: str
    size: int | None = None

    def send(self, client: Client, store: int) -> int:
        if self.size is None:
            return client.send(Operation.get, wire.encode_key(self.key), store)
        return client.send(Operation.get_range, wire.encode_range(self.key, 0, self.size), store)

    def decode(self, body: bytes) -> object:
        if self.size is None:
            return seen(wire.decode_records(body)[0])
        part = wire.decode_range(body)
        return Seen("", None, part.revision, part.expire_after_milliseconds)

    def touches(self, key: str) -> bool:
        return key == self.key

    def execute(self, state: State, call: Call) -> Outcome:
        entry = state.entries.get(self.key)
        if entry is None:
            return unchanged(Code.notFound, state)
        if self.size is not None and not entry.is_document:
            return unchanged(Code.illegalArgument, state)
        return unchanged(show("", entry, call.result, self.size is not None), state)


def show(key: str, entry: Entry, result: object, keys_only: bool) -> Seen:
    """Returns the entry as a reply has it; the time left is that of the result, as `times_agree` compares it."""
    left = result.milliseconds_left if isinstance(result, Seen) else None
    return Seen(key, None if keys_only else entry.content, entry.revision, left)


@dataclass(frozen=True)
class GetMany(Request):
    keys: tuple[str, ...]

    def send(self, client: Client, store: int) -> int:
        return client.send(Operation.get_many, wire.encode_keys(self.keys), store)

    def decode(self, body: bytes) -> object:
        return [record and seen(record) for record in wire.decode_records(body)]

    def touches(self, key: str) -> bool:
        return key in self.keys

    def execute(self, state: State, call: Call) -> Outcome:
        entries = [state.entries.get(key) for key in self.keys]
        results = call.result if isinstance(call.result, list) else [None] * len(entries)
        return unchanged([entry and show("", entry, result, False) for entry, result in zip(entries, results)], state)


@dataclass(frozen=True)
class Page(Request):
    """Reads entries in key order; without a limit, all of them."""

    limit: int | None = None
    offset: int = 0
    prefix: str = ""
    cursor: str | None = None
    reverse: bool = False
    keys_only: bool = False

    def send(self, client: Client, store: int) -> int:
        range = (self.prefix, self.cursor, self.reverse, self.keys_only)
        if self.limit is None:
            return client.send(Operation.all, wire.encode_all(*range), store)
        return client.send(Operation.page, wire.encode_page(self.limit, self.offset, *range), store)

    def decode(self, body: bytes) -> object:
        return [seen(record, self.keys_only) for record in wire.decode_records(body)]

    def touches(self, key: str) -> bool:
        return key.startswith(self.prefix)

    def execute(self, state: State, call: Call) -> Outcome:
        keys = sorted((key for key in state.entries if key.startswith(self.prefix)), reverse=self.reverse)
        if self.cursor is not None:
            keys = [key for key in keys if (key < self.cursor if self.reverse else key > self.cursor)]
        if self.limit is not None:
            keys = keys[self.offset : self.offset + self.limit]
        results = {result.key: result for result in call.result} if isinstance(call.result, list) else {}
        return unchanged([show(key, state.entries[key], results.get(key), self.keys_only) for key in keys], state)


@dataclass(frozen=True)
class Count(Request):
    prefix: str

    def send(self, client: Client, store: int) -> int:
        return client.send(Operation.count, wire.encode_key(self.prefix), store)

    def touches(self, key: str) -> bool:
        return key.startswith(self.prefix)

    def execute(self, state: State, call: Call) -> Outcome:
        return unchanged(sum(key.startswith(self.prefix) for key in state.entries), state)


@dataclass(frozen=True)
class Find(Request):
    """Reads all documents with at least this number, and the store's revision."""

    least: int

    def send(self, client: Client, store: int) -> int:
        return client.send(Operation.find, wire.encode_find(json.dumps({"n": {"$gte": self.least}})), store)

    def decode(self, body: bytes) -> object:
        *found, result = wire.decode_found(body)
        return result.revision, [(record.key, content(record.value), record.revision) for record in found]

    def execute(self, state: State, call: Call) -> Outcome:
        found = [(key, entry) for key, entry in sorted(documents(state).items()) if dict(entry.content)["n"] >= self.least]
        return unchanged((state.revision, [(key, entry.content, entry.revision) for key, entry in found]), state)


@dataclass(frozen=True)
class Aggregate(Request):
    """Computes the number of documents and the sum of their numbers."""

    def send(self, client: Client, store: int) -> int:
        return client.send(Operation.aggregate, wire.encode_aggregate("", '{"compute":["count",{"sum":"n"}]}'), store)

    def decode(self, body: bytes) -> object:
        *groups, result = wire.decode_found(body)
        return result.revision, [[value[0] if value else 0 for value in json.loads(group.value)["values"]] for group in groups]

    def execute(self, state: State, call: Call) -> Outcome:
        numbers = [dict(entry.content)["n"] for entry in documents(state).values()]
        return unchanged((state.revision, [[len(numbers), sum(numbers)]]), state)


@dataclass(frozen=True)
class Revision(Request):
    """Reads the store's revision from its statistics."""

    def send(self, client: Client, store: int) -> int:
        return client.send(Operation.stats, b"", store)

    def decode(self, body: bytes) -> object:
        return wire.decode_stats(body)["revision"]

    def touches(self, key: str) -> bool:
        return False

    def execute(self, state: State, call: Call) -> Outcome:
        return unchanged(state.revision, state)


@dataclass(frozen=True)
class EntryCount(Request):
    """Reads the number of entries from the list of all stores. None of them expires, as it may be counted for a moment then."""

    store: str

    def send(self, client: Client, store: int) -> int:
        return client.send(Operation.store_list)

    def decode(self, body: bytes) -> object:
        return next(store.entries for store in wire.decode_store_list(body) if store.name == self.store)

    def execute(self, state: State, call: Call) -> Outcome:
        return unchanged(len(state.entries), state)


def seen_entries(call: Call) -> Iterator[tuple[str, int]]:
    """Returns the tags of all values in a reply, and their revisions."""
    match call.result:
        case Seen():
            found = [call.result]
        case list():
            found = [entry for entry in call.result if entry]
        case int(), [*entries] if isinstance(call.request, Find):
            found = [Seen(*entry) for entry in entries]
        case _:
            return
    yield from ((tag_of(entry.content), entry.revision) for entry in found if entry.content)


def times_agree(call: Call, entries: dict[str, Entry], slack: int) -> bool:
    """Returns whether the times that entries in a reply have left agree with when they may expire."""
    match call.request, call.result:
        case Get(key=key), Seen():
            pairs = [(key, call.result)]
        case GetMany(keys=keys), list():
            pairs = [(key, result) for key, result in zip(keys, call.result) if result]
        case Page(), list():
            pairs = [(result.key, result) for result in call.result]
        case _:
            return True
    return all(_time_agrees(result.milliseconds_left, entries[key].expiry, call, slack) for key, result in pairs)


def _time_agrees(left: int | None, expiry: tuple[int, int] | None, call: Call, slack: int) -> bool:
    if left is None or expiry is None:
        return left is expiry
    earliest, latest = expiry
    return call.invoked + left * 1_000_000 <= latest + slack and call.returned + left * 1_000_000 >= earliest - slack


def seen_revisions(call: Call) -> dict[str, int]:
    """Returns the revisions of entries that a reply tells, by key."""
    match call.request, call.result:
        case Get(key=key), Seen(revision=revision):
            return {key: revision}
        case Apply(operations=operations), int(revision) if revision and not isinstance(revision, Code):
            return {operation.key: revision for operation in operations if not isinstance(operation, Check)}
        case Page(), list():
            return {entry.key: entry.revision for entry in call.result}
    return {}
