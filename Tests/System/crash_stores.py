"""A crash test's client process that creates and drops stores."""

from __future__ import annotations

from crash_process import ClientProcess, Figures
from larder import Client


class StoreMaker(ClientProcess):
    """Takes one step at a time: at most one is unfinished when the server ends, and that one is done or not."""

    key = "key"

    def __init__(self, number: int, address: str, seed: int) -> None:
        super().__init__(number, address, seed)
        self.names = [f"extra-{index}" for index in range(6)]
        # The engine and the value of the only key, if any, by store name.
        self.stores: dict[str, tuple[str, bytes | None]] = {}
        # The store that the unfinished step changes, and its state after that step: None if the step drops it.
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
            figures.violations.append(f"the stores are {summary(found)} instead of {summary(expected)}; unfinished: {self.pending and self.pending[0]}")
        self.stores, self.pending = found, None

    def work(self, client: Client, figures: Figures) -> None:
        name = self.rng.choice(self.names)
        if name not in self.stores:
            engine = self.rng.choice(("log", "directory"))
            self.pending = name, (engine, None)
            client.create(name, engine)
            self.finish(figures)
            if client.open(name).count() != 0:
                figures.violations.append(f"{name} is new and has entries")
        elif self.rng.random() < 0.5:
            self.pending = name, None
            client.drop(name)
            self.finish(figures)
        else:
            value = self.rng.randbytes(self.rng.choice((1, 100, 40_000)))
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
