"""A crash test's client process whose writes are so large that the server makes them in slices."""

from __future__ import annotations

import json

from crash_process import ClientProcess, Figures
from larder import Client, Store
from larder_wire import Update, Write


class BulkWriter(ClientProcess):
    """Gives all documents of a store the next generation, or deletes all of them, in one request.

    After every restart, all documents have the same generation: that of the last acknowledged write or of the one after
    it. The index of the generation says the same.
    """

    store_name = "bulk"
    keys = [f"document{number:05}" for number in range(1_500)]
    index = "by generation"

    def __init__(self, number: int, address: str, seed: int) -> None:
        super().__init__(number, address, seed)
        # The last generation that was sent, and what the documents may have: 0 if they are absent.
        self.generation = 0
        self.acknowledged = 0
        self.sent = 0
        self.store: Store | None = None

    # Verification

    def verify(self, client: Client, figures: Figures) -> None:
        self.store = client.open(self.store_name)
        self.store.ensure_index(["generation"], name=self.index)
        entries = self.store.get_many(self.keys)
        generations = {json.loads(entry.value)["generation"] if entry else 0 for entry in entries}
        found = generations.pop()
        if generations or found not in (self.acknowledged, self.sent):
            figures.violations.append(
                f"the documents have the generations {[found, *generations]} instead of {self.acknowledged} or {self.sent}"
            )
        figures.survived += found != self.acknowledged
        self.acknowledged = self.sent = found
        self.store.wait_for_index(self.index)
        count = self.store.count_documents({"generation": found}, index=self.index)
        if count != (len(self.keys) if found else 0):
            figures.violations.append(f"the index has {count} documents of generation {found}")

    def verify_again(self, client: Client, figures: Figures) -> None:
        self.verify(client, figures)

    # Load

    def work(self, client: Client, figures: Figures) -> None:
        self.generation += 1
        change = {"$set": {"generation": self.generation}}
        write = self.rng.choice(("put", "apply", "update", "delete") if self.acknowledged else ("put", "apply"))
        self.sent = 0 if write == "delete" else self.generation
        if write == "put":
            tags = self.rng.sample(range(100), 3)
            document = json.dumps({"generation": self.generation, "tags": tags}).encode()
            self.store.put_many(Write(key, document) for key in self.keys)
        elif write == "apply":
            self.store.apply([Update(key, json.dumps(change).encode(), create=True) for key in self.keys])
        elif write == "update":
            self.store.update_matching({"generation": self.acknowledged}, change)
        else:
            self.store.delete_many(self.keys)
        self.acknowledged = self.sent
        figures.bulk_writes += 1
