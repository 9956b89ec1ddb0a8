"""Runs many client processes at once and checks the store against a model.

    python3 processes.py --server PATH [--processes 8] [--operations 10000] [--seed N]

Starts this larderd with two workers. Each process owns some keys: it performs random operations on them and compares
every reply with a dictionary that serves as the model. All processes also increment shared counters by conditional
writes. At the end the store must equal the dictionaries combined, and no increment may be lost or applied twice.
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
from server_process import Server

COUNTERS = [f"counter:{number}" for number in range(3)]


def increment_counter(store: Store, key: str) -> None:
    """Increments a counter, retrying until no other process writes in between."""
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
    """Performs one process's operations. Returns the final contents of its keys and the number of increments."""
    rng = random.Random(seed * 1_000 + number)
    own = [f"p{number}:{index:03}" for index in range(300)]
    model: dict[str, bytes] = {}
    increments = 0
    with Client(address, timeout=30) as client:
        store = client.open("shared")
        for _ in range(operations):
            key = rng.choice(own)
            match rng.randrange(20):
                case 0 | 1 | 2 | 3 | 4 | 5 | 6:
                    entry = store.get(key)
                    assert (entry and entry.value) == model.get(key), key
                case 7 | 8 | 9 | 10 | 11 | 12:
                    model[key] = rng.randbytes(rng.choice((0, 1, 10, 100, 1_000)))
                    store.put(key, model[key])
                case 13 | 14:
                    assert store.delete(key) == (model.pop(key, None) is not None), key
                case 15:
                    some = {name: rng.randbytes(20) for name in rng.sample(own, 10)}
                    store.put_many([Write(name, value) for name, value in some.items()])
                    model.update(some)
                case 16:
                    names = rng.sample(own, 10)
                    found = store.get_many(names)
                    assert [entry and entry.value for entry in found] == [model.get(name) for name in names]
                case 17:
                    page = list(store.page(limit=20, prefix=f"p{number}:", cursor=key))
                    expected = sorted(name for name in model if name > key)[:20]
                    assert [(entry.key, entry.value) for entry in page] == [(name, model[name]) for name in expected]
                case 18:
                    assert store.count(f"p{number}:") == len(model)
                case _:
                    increment_counter(store, rng.choice(COUNTERS))
                    increments += 1
    return model, increments


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
            server.wait_until_ready()
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
            server.kill()
    increments = sum(count for _, count in results)
    checks = {
        "the store equals the models": found == expected,
        f"{increments} increments, {counted} counted": increments == counted,
    }
    for name, holds in checks.items():
        if not holds:
            print(f"FAILED {name}")
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
