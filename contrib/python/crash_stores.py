"""A client that makes and drops stores."""

from __future__ import annotations

from crash_process import ClientProcess, Figures
from larder import Client


class StoreMaker(ClientProcess):
    """One step at a time: at most one may be unfinished when the server ends, and that one is either done or not."""

    key = "key"

    def __init__(self, number: int, address: str, seed: int) -> None:
        super().__init__(number, address, seed)
        self.names = [f"extra-{index}" for index in range(6)]
        # By name: the engine, and what the one key has, if anything.
        self.stores: dict[str, tuple[str, bytes | None]] = {}
        # A name, and what it would stand for after the unfinished step: None for a store that is dropped.
        self.pending: tuple[str, tuple[str, bytes | None] | None] | None = None

    def verify(self, client: Client, figures: Figures) -> None:
        found = {}
        for description in client.stores():
            if description.name.startswith("extra-"):
                store = client.open(description.name)
                entry = store.get(self.key)
                if store.count() != (1 if entry else 0):
                    figures.violations.append(f"{description.name} has {store.count()} entries")
                engine = description.specification.partition("?")[0]
                found[description.name] = engine, entry.value if entry else None
                store.close()
        expected = dict(self.stores)
        if self.pending and found != expected:
            name, outcome = self.pending
            if outcome:
                expected[name] = outcome
            else:
                expected.pop(name)
        if found != expected:
            figures.violations.append(f"the stores are {summary(found)} and not {summary(expected)}; unfinished: {self.pending and self.pending[0]}")
        self.stores, self.pending = found, None

    def work(self, client: Client, figures: Figures) -> None:
        name = self.choose.choice(self.names)
        if name not in self.stores:
            engine = self.choose.choice(("log", "directory"))
            self.pending = name, (engine, None)
            client.create(name, engine)
            self.finish(figures)
            if client.open(name).count() != 0:
                figures.violations.append(f"{name} is new and has entries")
        elif self.choose.random() < 0.5:
            self.pending = name, None
            client.drop(name)
            self.finish(figures)
        else:
            value = self.choose.randbytes(self.choose.choice((1, 100, 40_000)))
            self.pending = name, (self.stores[name][0], value)
            store = client.open(name)
            store.put(self.key, value)
            self.finish(figures)
            store.close()

    def finish(self, figures: Figures) -> None:
        name, outcome = self.pending
        if outcome:
            self.stores[name] = outcome
        else:
            del self.stores[name]
        self.pending = None
        figures.stores_changed += 1


def summary(stores: dict[str, tuple[str, bytes | None]]) -> str:
    return ", ".join(f"{name} ({engine}, {'nothing' if value is None else f'{len(value)} bytes'})" for name, (engine, value) in sorted(stores.items()))
