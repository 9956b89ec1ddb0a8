"""What a store does with one request after the other: the reference that recorded histories are checked against.

This file has the requests that write; the others are in `store_reads.py`. Every request that writes has a tag that no
other request has, and puts it into all values that it writes. So a value says which request wrote it. Values are
documents or, now and then, lists.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import larder_wire as wire
from larder import Client, LarderError
from larder_wire import Check, Code, Delete, Operation, Update, Write

# The members of a document in the order of their names, or the elements of a list.
Content = tuple
# What one request changed: a key and its new content, or None if it was deleted. The key "" stands for all entries.
Changes = list[tuple[str, Content | None]]


class Entry(NamedTuple):
    """An entry of the model. `expiry` is the earliest and the latest time at which it may expire, in nanoseconds.

    `since` is a revision from which on the key has had only values of this kind, documents or lists.
    """

    content: Content
    revision: int
    expiry: tuple[int, int] | None = None
    since: int = 0

    @property
    def is_document(self) -> bool:
        return not isinstance(self.content[0], bytes)


class State(NamedTuple):
    revision: int
    entries: dict[str, Entry]


EMPTY = State(0, {})


class Outcome(NamedTuple):
    """What a request returns and does. `state` is the state before if nothing was changed."""

    result: object
    state: State
    changes: Changes


@dataclass(slots=True)
class Call:
    """A request with its result and the times between which it took place, in nanoseconds.

    Without a reply the result is None, and `returned` is when the server had ended.
    """

    request: Request
    invoked: int
    returned: int = 0
    result: object = None

    @property
    def is_answered(self) -> bool:
        return self.result is not None

    def __str__(self) -> str:
        reply = self.result if self.is_answered else "no reply"
        return f"{self.request} at {self.invoked / 1e6:.3f} to {self.returned / 1e6:.3f} ms: {reply}"


def document(tag: str, count: int, size: int) -> bytes:
    """Returns the text of a document with about `size` characters, which all belong to the tag."""
    return json.dumps({"by": tag, "n": count, "pad": (f"{tag} " * (size // (len(tag) + 1) + 1))[:size]}).encode()


def content(value: bytes | list[bytes]) -> Content:
    return tuple(value) if isinstance(value, list) else tuple(sorted(json.loads(value).items()))


def tag_of(content: Content) -> str:
    """Returns the tag of the request that wrote a value."""
    return content[0].decode() if isinstance(content[0], bytes) else content[0][1]


# Requests


@dataclass(frozen=True)
class Request:
    """A request. `tag` is empty if it writes nothing. Subclasses say how it is sent, what its reply means, and what it does."""

    tag: str = field(default="", kw_only=True)

    def send(self, client: Client, store: int) -> int:
        raise NotImplementedError

    def decode(self, body: bytes) -> object:
        return wire.decode_integer(body)

    def execute(self, state: State, call: Call) -> Outcome:
        raise NotImplementedError

    def outcomes(self, state: State, call: Call, least: int) -> Iterator[Outcome]:
        """Returns all that the request may do, if that is up to the server. The store had at least the revision `least` when
        the request was sent."""
        yield self.execute(state, call)

    def touches(self, key: str) -> bool:
        """Returns whether the result or the effect depends on the entry of a key."""
        return True

    def receive(self, client: Client, id: int) -> object:
        """Returns the result, which is the code of an error if there is one."""
        body = b""
        try:
            while (reply := client.receive(id)).more:
                client.send_frame(Operation.credit, id, wire.encode_credit(reply.size))
                body += reply.body
        except LarderError as error:
            if error.code is None or error.code == Code.shuttingDown:
                raise
            return error.code
        return self.decode(body + reply.body)


def unchanged(result: object, state: State) -> Outcome:
    return Outcome(result, state, [])


def changed(state: State, changes: dict[str, Entry | None]) -> tuple[State, Changes]:
    """Returns the next state, in which the entries have the next revision."""
    revision = state.revision + 1
    entries = dict(state.entries)
    for key, entry in changes.items():
        if entry is None:
            del entries[key]
        else:
            old = entries.get(key)
            # An entry with an expiry may have been absent for a moment.
            is_continued = old and not old.expiry and old.is_document == entry.is_document
            entries[key] = entry._replace(revision=revision, since=old.since if is_continued else revision)
    return State(revision, entries), [(key, entry and entry.content) for key, entry in changes.items()]


@dataclass(frozen=True)
class Apply(Request):
    """Puts, deletes, updates and checks in one step: also a single put, a put-many and an upload, by `operation`.

    No key occurs twice.
    """

    operations: tuple[Write | Delete | Update | Check, ...]
    operation: Operation = Operation.apply

    def send(self, client: Client, store: int) -> int:
        if self.operation == Operation.upload_put:
            (write,) = self.operations
            upload = wire.decode_integer(client.request(Operation.upload_begin, b"", store))
            middle = len(write.value) // 2
            for offset, part in (0, write.value[:middle]), (middle, write.value[middle:]):
                client.request(Operation.upload_part, wire.encode_upload_part(upload, offset, part))
            body = wire.encode_upload_put(upload, len(write.value), replace(write, value=b""))
        elif self.operation == Operation.put:
            body = wire.encode_write(self.operations[0])
        elif self.operation == Operation.put_many:
            body = wire.encode_writes(self.operations)
        else:
            body = wire.encode_apply(self.operations)
        return client.send(self.operation, body, store)

    def touches(self, key: str) -> bool:
        return any(operation.key == key for operation in self.operations)

    def execute(self, state: State, call: Call) -> Outcome:
        if not all(meets(operation, state.entries.get(operation.key)) for operation in self.operations):
            return unchanged(Code.conditionFailed, state)
        changes: dict[str, Entry | None] = {}
        for operation in self.operations:
            old = state.entries.get(operation.key)
            match operation:
                case Write():
                    changes[operation.key] = Entry(content(operation.value), 0, expiry(operation, call))
                case Delete() if old:
                    changes[operation.key] = None
                case Update() if old is None and not operation.create:
                    return unchanged(Code.notFound, state)
                case Update():
                    if old and not old.is_document:
                        return unchanged(Code.illegalArgument, state)
                    changes[operation.key] = updated(old, self.tag)
        if not changes:
            return unchanged(0, state)
        after, changes = changed(state, changes)
        return Outcome(after.revision, after, changes)


def meets(operation: Write | Delete | Update | Check, entry: Entry | None) -> bool:
    if getattr(operation, "if_absent", False):
        return entry is None
    return operation.if_revision is None or (entry is not None and entry.revision == operation.if_revision)


def expiry(write: Write, call: Call) -> tuple[int, int] | None:
    if write.expire_after_milliseconds is None:
        return None
    duration = write.expire_after_milliseconds * 1_000_000
    return call.invoked + duration, call.returned + duration


def updated(old: Entry | None, tag: str) -> Entry:
    """Returns what `update` makes of an entry."""
    members = dict(old.content) if old else {}
    members |= {"by": tag, "n": members.get("n", 0) + 1}
    return Entry(tuple(sorted(members.items())), 0, old.expiry if old else None)


def update(tag: str) -> bytes:
    return json.dumps({"$inc": {"n": 1}, "$set": {"by": tag}}).encode()


@dataclass(frozen=True)
class Remove(Request):
    """Deletes some keys, or with `keys` None all of them. With a revision, one key on that condition."""

    keys: tuple[str, ...] | None
    if_revision: int | None = None

    def send(self, client: Client, store: int) -> int:
        if self.keys is None:
            return client.send(Operation.delete_all, b"", store)
        if len(self.keys) == 1:
            return client.send(Operation.delete, wire.encode_delete(self.keys[0], self.if_revision), store)
        return client.send(Operation.delete_many, wire.encode_keys(self.keys), store)

    def touches(self, key: str) -> bool:
        return self.keys is None or key in self.keys

    def execute(self, state: State, call: Call) -> Outcome:
        if self.if_revision is not None and not meets(Delete(self.keys[0], self.if_revision), state.entries.get(self.keys[0])):
            return unchanged(Code.conditionFailed, state)
        found = list(state.entries) if self.keys is None else [key for key in dict.fromkeys(self.keys) if key in state.entries]
        if not found:
            return unchanged(0, state)
        after, changes = changed(state, dict.fromkeys(found))
        return Outcome(len(found), after, changes if self.keys is not None else [("", None)])


@dataclass(frozen=True)
class ChangeMatching(Request):
    """Updates or, with `deletes`, deletes all documents whose keys begin with the prefix."""

    prefix: str
    deletes: bool

    def send(self, client: Client, store: int) -> int:
        selector = json.dumps({"_id": {"$beginsWith": self.prefix}})
        body = wire.encode_change_matching(selector, None if self.deletes else update(self.tag).decode())
        return client.send(Operation.change_matching, body, store)

    def decode(self, body: bytes) -> object:
        changes = wire.decode_document_changes(body)
        return changes.matched, changes.changed, changes.revision

    def touches(self, key: str) -> bool:
        return key.startswith(self.prefix)

    def outcomes(self, state: State, call: Call, least: int) -> Iterator[Outcome]:
        if call.result is Code.conditionFailed:
            # Others changed the documents too often.
            yield unchanged(call.result, state)
        found = {key: entry for key, entry in documents(state).items() if key.startswith(self.prefix)}
        # A document that matches only because of a write in the meantime may be left as it is.
        optional = [key for key, entry in found.items() if entry.since > least]
        counts = [len(found) - call.result[0]] if isinstance(call.result, tuple) else range(len(optional) + 1)
        for count in counts:
            for left in itertools.combinations(optional, count) if count >= 0 else ():
                yield self.change(state, {key: entry for key, entry in found.items() if key not in left})

    def change(self, state: State, found: dict[str, Entry]) -> Outcome:
        if not found:
            return unchanged((0, 0, 0), state)
        after, changes = changed(state, {key: None if self.deletes else updated(entry, self.tag) for key, entry in found.items()})
        return Outcome((len(found), len(found), after.revision), after, changes)


def documents(state: State) -> dict[str, Entry]:
    return {key: entry for key, entry in state.entries.items() if entry.is_document}
