"""A crash test's client process that writes its own keys of one store and reads the counters of the others."""

from __future__ import annotations

import json

import larder_wire as wire
from crash_documents import Document, decode, encode, matching, random_document
from crash_process import ClientProcess, Figures
from larder import Client, LarderError, Store
from larder_wire import Entry, Operation, Write

# The result of an operation: new values by key, or None for deleted keys.
Effect = dict[str, bytes | None]
# The contents of a store: values and their revisions by key.
Contents = dict[str, tuple[bytes, int]]


class Owner(ClientProcess):
    """Sends pipelined batches of writes, most of them of documents, and records which were acknowledged.

    After a restart its keys must show all acknowledged writes followed by a prefix of the unacknowledged ones, in order
    and with each multi-key write whole. No counter may be lower than any process has seen it.
    """

    store_name = "crash"

    def __init__(self, number: int, count: int, address: str, seed: int) -> None:
        super().__init__(number, address, seed)
        self.prefix = f"p{number}:"
        self.keys = [f"{self.prefix}{index:03}" for index in range(200)]
        self.large_keys = [f"{self.prefix}large{index}" for index in range(2)]
        self.counter = f"{self.prefix}counter"
        self.counters = [f"p{other}:counter" for other in range(count)]
        self.prefixes = tuple(f"p{other}:" for other in range(count))
        self.model: Contents = {}
        self.pending: list[Effect] = []
        self.seen: dict[str, int] = {}
        self.last_revision = 0
        self.counted = 0
        self.store: Store | None = None

    # Verification

    def verify(self, client: Client, figures: Figures) -> None:
        self.store = client.open(self.store_name)
        found = {entry.key: (entry.value, entry.revision) for entry in self.store.all(self.prefix) if entry}
        survived = next((n for n in range(len(self.pending) + 1) if self.explains(found, self.pending[:n])), None)
        if survived is None:
            figures.violations.append(describe(found, self.model, self.pending, self.last_revision))
            return
        figures.survived += survived
        self.model, self.pending = found, []
        self.last_revision = max([self.last_revision, *(revision for _, revision in found.values())])
        unknown = [entry.key for entry in self.store.all(keys_only=True) if entry and not entry.key.startswith(self.prefixes)]
        if unknown:
            figures.violations.append(f"unknown keys: {unknown[:5]}")
        for name, entry in zip(self.counters, self.store.get_many(self.counters)):
            self.check_counter(name, entry, figures)

    def explains(self, found: Contents, survivors: list[Effect]) -> bool:
        """Returns whether `found` is the acknowledged writes followed by the survivors, with increasing revisions."""
        expected: dict[str, tuple[bytes, int | None]] = dict(self.model)
        for number, effect in enumerate(survivors):
            for key, value in effect.items():
                expected.pop(key, None)
                if value is not None:
                    expected[key] = value, -1 - number
        if found.keys() != expected.keys():
            return False
        revisions: dict[int, int] = {}
        for key, (value, revision) in expected.items():
            if found[key][0] != value:
                return False
            if revision >= 0 and found[key][1] != revision:
                return False
            if revision < 0 and revisions.setdefault(-revision, found[key][1]) != found[key][1]:
                return False
        ordered = [self.last_revision, *(revision for _, revision in sorted(revisions.items()))]
        return all(first < second for first, second in zip(ordered, ordered[1:]))

    def check_counter(self, name: str, entry: Entry | None, figures: Figures) -> None:
        value = int(entry.value) if entry else 0
        if value < self.seen.get(name, 0):
            figures.violations.append(f"{name} was seen at {self.seen[name]} and is {value}")
        self.seen[name] = value

    # Load

    def work(self, client: Client, figures: Figures) -> None:
        """Sends a batch of writes, then waits for the replies."""
        if self.rng.random() < 0.1:
            return self.change_matching(client, figures)
        if self.rng.random() < 0.2:
            # Overwrite a few keys, so that most of the log is soon garbage and compaction starts.
            sent = [self.send_large(client) for _ in range(16)]
        else:
            sent = [self.send_write(client) for _ in range(self.rng.choice((1, 2, 8, 32)))]
        reads = [client.send(Operation.get, wire.encode_key(name), self.store.handle) for name in self.counters]
        stats = client.send(Operation.stats, b"", self.store.handle)
        for id, returns_revision in sent:
            number = wire.decode_integer(client.receive(id).body)
            if returns_revision:
                self.check_revision(number, figures)
            apply(self.pending.pop(0), self.model, number)
            figures.acknowledged += 1
        for name, id in zip(self.counters, reads):
            try:
                (entry,) = wire.decode_records(client.receive(id).body)
            except LarderError as error:
                if error.code != wire.Code.notFound:
                    raise
                entry = None
            self.check_counter(name, entry, figures)
        figures.compactions = wire.decode_stats(client.receive(stats).body).get("log_compactions_total", 0)

    def change_matching(self, client: Client, figures: Figures) -> None:
        """Updates or deletes all its documents of some ages in one request."""
        age = self.rng.randrange(100)
        selector = {"_id": {"$beginsWith": self.prefix}, "age": {"$gte": age, "$lt": age + 5}}
        update = {"$set": {"age": self.rng.randrange(100)}} if self.rng.random() < 0.8 else None
        documents = [decode(key, value, revision) for key, (value, revision) in self.model.items()]
        matches = matching(selector, [document for document in documents if document])
        changed = {document["_id"]: updated(document, update) for document in matches}
        effect: Effect = {key: value for key, value in changed.items() if value != self.model[key][0]}
        self.pending.append(effect)
        body = wire.encode_change_matching(json.dumps(selector), update and json.dumps(update))
        id = client.send(Operation.change_matching, body, self.store.handle)
        changes = wire.decode_document_changes(client.receive(id).body)
        if (changes.matched, changes.changed) != (len(matches), len(effect)):
            figures.violations.append(f"{changes} instead of {len(matches)} matches and {len(effect)} changes by {selector} {update}")
        if effect:
            self.check_revision(changes.revision, figures)
        apply(self.pending.pop(0), self.model, changes.revision)
        figures.acknowledged += 1

    def check_revision(self, revision: int, figures: Figures) -> None:
        if revision <= self.last_revision:
            figures.violations.append(f"revision {revision} follows {self.last_revision}")
        self.last_revision = revision

    def send_write(self, client: Client) -> tuple[int, bool]:
        """Sends one write. Returns its id and whether the reply contains a revision."""
        kind = self.rng.random()
        if kind < 0.1:
            key = self.rng.choice(self.keys)
            self.pending.append({key: None})
            return client.send(Operation.delete, wire.encode_delete(key), self.store.handle), False
        if kind < 0.2:
            effect: Effect = {key: self.value() for key in self.rng.sample(self.keys, 8)}
            writes = [Write(key, value) for key, value in effect.items()]
            self.pending.append(effect)
            return client.send(Operation.put_many, wire.encode_writes(writes), self.store.handle), True
        if kind < 0.4:
            self.counted += 1
            return self.send_put(client, self.counter, b"%d" % self.counted)
        return self.send_put(client, self.rng.choice(self.keys), self.value())

    def send_large(self, client: Client) -> tuple[int, bool]:
        return self.send_put(client, self.rng.choice(self.large_keys), self.value_of(self.rng.randrange(4_000, 50_000)))

    def send_put(self, client: Client, key: str, value: bytes) -> tuple[int, bool]:
        self.pending.append({key: value})
        return client.send(Operation.put, wire.encode_write(Write(key, value)), self.store.handle), True

    def value(self) -> bytes:
        size = self.rng.choices((0, 10, 100, 2_000, 40_000), weights=(1, 5, 20, 5, 0.3))[0]
        return self.value_of(size)

    def value_of(self, size: int) -> bytes:
        """Returns a document or, sometimes, something else."""
        return encode(random_document(self.rng, size)) if self.rng.random() < 0.8 else self.rng.randbytes(size)


def updated(document: Document, update: dict[str, Document] | None) -> bytes | None:
    """Returns the new text of a document, or None if it is deleted."""
    if update is None:
        return None
    return encode({name: value for name, value in (document | update["$set"]).items() if name not in ("_id", "_rev")})


def apply(effect: Effect, model: Contents, revision: int) -> None:
    for key, value in effect.items():
        if value is None:
            model.pop(key, None)
        else:
            model[key] = value, revision


def describe(found: Contents, model: Contents, pending: list[Effect], last_revision: int) -> str:
    """Describes the closest match: the number of unacknowledged writes, and the remaining differences."""
    expected, best = {key: value for key, (value, _) in model.items()}, ""
    values = {key: value for key, (value, _) in found.items()}
    fewest = len(found) + len(model) + 1
    for count in range(len(pending) + 1):
        for key, value in pending[count - 1].items() if count else ():
            expected[key] = value
        wrong = sorted(key for key in values.keys() | expected.keys() if values.get(key) != expected.get(key))
        if len(wrong) < fewest:
            fewest = len(wrong)
            parts = [f"{key} {origin(key, values.get(key), model, pending)} instead of {origin(key, expected.get(key), model, pending)}" for key in wrong]
            best = f"closest to {count} of {len(pending)} unacknowledged writes, except " + "; ".join(parts[:5])
    if fewest == 0:
        return f"the values are right but their revisions are not; the last acknowledged revision is {last_revision}"
    return best


def origin(key: str, value: bytes | None, model: Contents, pending: list[Effect]) -> str:
    """Describes which write produced the value."""
    writes = [str(index) for index, effect in enumerate(pending) if key in effect and effect[key] == value]
    if key in model and model[key][0] == value:
        writes.insert(0, "acknowledged")
    size = "nothing" if value is None else f"{len(value)} bytes"
    return f"({size} of write {' or '.join(writes) or 'unknown'})"
