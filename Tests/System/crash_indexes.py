"""A crash test's client process that creates and deletes indexes of the owners' store and finds documents by them."""

from __future__ import annotations

import json

import larder_wire as wire
from crash_documents import INDEXES, Document, Selector, decode_all, matching
from crash_owner import Owner
from crash_process import ClientProcess, Figures
from larder import Client, FoundDocuments, Store
from larder_wire import Operation


class IndexMaker(ClientProcess):
    """Takes one step at a time: at most one is unfinished when the server ends, and that one is done or not.

    An index has what the store's documents have, whatever was written, and whenever the server was killed.
    """

    def __init__(self, number: int, address: str, seed: int) -> None:
        super().__init__(number, address, seed)
        self.names: set[str] = set()
        # The index that the unfinished step creates or deletes.
        self.pending: str | None = None
        # The indexes that this cycle creates and deletes; the others stay as they are while documents are written.
        self.changing: list[str] = []
        self.store: Store | None = None

    # Verification

    def verify(self, client: Client, figures: Figures) -> None:
        self.store = client.open(Owner.store_name)
        indexes = {index["name"]: index for index in self.store.indexes()}
        expected = set(self.names)
        if self.pending and indexes.keys() != expected:
            expected ^= {self.pending}
        if indexes.keys() != expected:
            figures.violations.append(f"the indexes are {sorted(indexes)} instead of {sorted(expected)}; unfinished: {self.pending}")
            return
        self.names, self.pending = expected, None
        self.changing = self.rng.sample(list(INDEXES), 4)
        self.verify_again(client, figures)

    def verify_again(self, client: Client, figures: Figures) -> None:
        """Compares finds by each index with all documents. Nobody writes meanwhile."""
        documents = decode_all(self.store.all())
        for name in sorted(self.names):
            index = self.store.wait_for_index(name)
            definition = INDEXES[name].definition(name)
            if {member: index.get(member) for member in definition} != definition:
                figures.violations.append(f"the index {name} is {index} instead of {definition}")
            count = len(matching(INDEXES[name].where or {}, documents))
            if index["documents"] != count:
                figures.violations.append(f"the index {name} has {index['documents']} documents instead of {count}")
            self.compare(name, documents, figures)

    def compare(self, name: str, documents: list[Document], figures: Figures) -> None:
        selectors = INDEXES[name].selectors(self.rng)
        finds = [(selector, self.send_find(selector, name), self.send_find(selector, name, count_only=True)) for selector in selectors]
        for selector, find, count in finds:
            found, expected = [entry.key for entry in find], [document["_id"] for document in matching(selector, documents)]
            list(count)
            if found != expected:
                lost, wrong = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
                figures.violations.append(f"by the index {name}, {selector} finds {len(found)} keys: {wrong[:5]} are wrong, {lost[:5]} are missing")
            if count.result.found != len(expected):
                figures.violations.append(f"by the index {name}, {selector} counts {count.result.found} instead of {len(expected)} documents")
            figures.finds_compared += 1

    def send_find(self, selector: Selector, index: str, count_only: bool = False) -> FoundDocuments:
        body = wire.encode_find(json.dumps(selector), fields='["_id"]', count_only=count_only, index=index)
        return FoundDocuments(self.store.client, self.store.client.send(Operation.find, body, self.store.handle))

    # Load

    def work(self, client: Client, figures: Figures) -> None:
        name = self.rng.choice(self.changing)
        if name not in self.names:
            self.pending = name
            self.store.ensure_index(INDEXES[name].fields, INDEXES[name].where, name)
            self.finish(figures)
            if self.rng.random() < 0.5:
                self.store.wait_for_index(name)
        elif self.rng.random() < 0.5:
            self.pending = name
            self.store.delete_index(name)
            self.finish(figures)
        else:
            self.store.wait_for_index(name)

    def finish(self, figures: Figures) -> None:
        self.names ^= {self.pending}
        self.pending = None
        figures.indexes_changed += 1
