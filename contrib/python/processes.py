"""Many client processes at once, and a model of what they must leave behind.

    python3 processes.py --server PATH [--processes 8] [--operations 10000] [--seed N]

Starts that larderd with two workers. Each process owns some keys, on which it does random operations and keeps a dictionary as the model,
checking every answer against it; and all of them raise shared counters, by writes that want the revision they read. In the end the
store is what the dictionaries say together, and no raise of a counter is lost or done twice.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from pathlib import Path

from larder import Client, LarderError, Store
from larder_wire import Code, Write
from session import Server

COUNTERS = [f"counter:{number}" for number in range(3)]


def raise_counter(store: Store, key: str) -> None:
    """Adds one, again and again until nobody else has written in between."""
    while True:
        entry = store.get(key)
        assert entry is not None
        try:
            store.put(key, b"%d" % (int(entry.value) + 1), if_revision=entry.revision)
            return
        except LarderError as error:
            if error.code != Code.conditionFailed:
                raise


def work(address: str, number: int, operations: int, seed: int) -> tuple[dict[str, bytes], int]:
    """One process's operations: what its keys hold in the end, and how often it raised a counter."""
    choose = random.Random(seed * 1_000 + number)
    own = [f"p{number}:{index:03}" for index in range(300)]
    model: dict[str, bytes] = {}
    raised = 0
    with Client(address, timeout=30) as client:
        store = client.open("shared")
        for _ in range(operations):
            key = choose.choice(own)
            match choose.randrange(20):
                case 0 | 1 | 2 | 3 | 4 | 5 | 6:
                    entry = store.get(key)
                    assert (entry and entry.value) == model.get(key), key
                case 7 | 8 | 9 | 10 | 11 | 12:
                    model[key] = choose.randbytes(choose.choice((0, 1, 10, 100, 1_000)))
                    store.put(key, model[key])
                case 13 | 14:
                    assert store.delete(key) == (model.pop(key, None) is not None), key
                case 15:
                    some = {name: choose.randbytes(20) for name in choose.sample(own, 10)}
                    store.put_many([Write(name, value) for name, value in some.items()])
                    model.update(some)
                case 16:
                    names = choose.sample(own, 10)
                    found = store.get_many(names)
                    assert [entry and entry.value for entry in found] == [model.get(name) for name in names]
                case 17:
                    page = list(store.page(limit=20, prefix=f"p{number}:", cursor=key))
                    expected = sorted(name for name in model if name > key)[:20]
                    assert [(entry.key, entry.value) for entry in page] == [(name, model[name]) for name in expected]
                case 18:
                    assert store.count(f"p{number}:") == len(model)
                case _:
                    raise_counter(store, choose.choice(COUNTERS))
                    raised += 1
    return model, raised


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks a Larder server under many client processes.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="larder-processes-") as directory:
        server = Server(options.server.resolve(), Path(directory), "--workers", "2")
        try:
            server.wait_until_it_accepts()
            with Client(server.address) as client:
                client.create("shared")
                store = client.open("shared")
                store.put_many([Write(key, b"0") for key in COUNTERS])
                jobs = [(server.address, number, options.operations, options.seed) for number in range(options.processes)]
                with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
                    results = pool.starmap(work, jobs)
                expected = {key: value for model, _ in results for key, value in model.items()}
                found = {entry.key: entry.value for entry in store.all()}
                counted = sum(int(found.pop(key)) for key in COUNTERS)
        finally:
            server.end()
    raised = sum(raised for _, raised in results)
    checks = {"the store is what the models say": found == expected, f"{raised} raises, {counted} counted": raised == counted}
    for name, holds in checks.items():
        if not holds:
            print(f"FAILED {name}")
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
