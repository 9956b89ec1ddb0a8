"""Records what concurrent clients see of a server that is killed repeatedly, and checks that it is linearizable.

    python3 histories.py --server PATH [--histories 20] [--operations 1000] [--kills 2] [--engine log|directory|replicated] [--seed N]
                         [--figures] [--sabotage]
    python3 histories.py --check FILE

Each history has random requests of all kinds from several pipelining connections on three stores, and watches. Every
second one has a slow disk. An acknowledged write, and whatever a reply or a watch has shown, must be there after SIGKILL.
With --figures, that includes the revision in a store's statistics and the number of entries in the list of stores. With
--sabotage, the server's disk keeps writes back that it has acknowledged, which must be noticed. --check explains a
history that was kept.
"""

from __future__ import annotations

import argparse
import pickle
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from history_recorder import Recorder, Requests
from larder import LarderError
from linearizability import Undecided, Violation, check
from lying_disk import lying_disk
from postgres import Postgres
from store_model import Request
from store_reads import EntryCount, Revision

MEMORY = "cache"


class RequestsWithFigures(Requests):
    def __init__(self, rng: random.Random, store: str) -> None:
        super().__init__(rng, expiring=0)
        self.store = store

    def next(self) -> Request:
        return super().next() if self.rng.random() < 0.7 else self.rng.choice((Revision(), EntryCount(self.store)))


class Histories:
    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options, self.directory = options, directory
        # A slow disk has more to lose when the server is killed.
        slow = lying_disk(directory, "slow")
        self.disks = [lying_disk(directory, "late")] if options.sabotage else [slow] if options.figures else [[], slow]
        self.postgres = Postgres() if options.engine == "replicated" else None
        self.recorded = self.operations = self.kills = self.during_start = self.watched = 0

    def run(self) -> str | None:
        """Returns what is wrong with a history, or None if all are linearizable."""
        for number in range(self.options.histories):
            # The seed of the first history is that of the script, so that any other one can be repeated alone.
            violation = self.record(self.options.seed + number)
            if violation:
                return f"seed {self.options.seed + number}, {violation}"
            if sys.stdout.isatty():
                print(f"\r{self.recorded}/{self.options.histories} histories, {self.kills} kills ", end="", flush=True)
        return None

    def record(self, seed: int) -> str | None:
        folder = self.directory / f"{seed}"
        folder.mkdir()
        stores = [f"one={self.options.engine}", f"two={self.options.engine}", f"{MEMORY}=memory"]
        disk = self.disks[seed % len(self.disks)]
        recorder = Recorder(self.options.server.resolve(), folder, stores, random.Random(seed), disk)
        if self.postgres:
            self.postgres.query("DROP SCHEMA IF EXISTS larder CASCADE")
            recorder.database = self.postgres.address
        if self.options.figures:
            recorder.requests = {store: RequestsWithFigures(recorder.rng, store) for store in recorder.requests}
        try:
            recorder.record(self.options.operations, self.options.kills)
        except (LarderError, SystemExit) as error:
            return f"a server does not start: {error}"
        self.recorded += 1
        self.operations += recorder.operations
        self.kills += recorder.kills + recorder.kills_during_start
        self.during_start += recorder.kills_during_start
        for store, epochs in recorder.histories.items():
            self.watched += sum(len(watched.changes) for epoch in epochs for watched in epoch.watched)
            try:
                check(epochs, survives=store != MEMORY)
            except (Violation, Undecided) as error:
                with open(folder / f"{store}.history", "wb") as file:
                    pickle.dump(epochs, file)
                return f"store {store}, in {folder / store}.history: {error}"
        shutil.rmtree(folder)
        return None

    def __str__(self) -> str:
        return (
            f"{self.recorded:,} histories with {self.operations:,} operations, {self.watched:,} watched changes and"
            f" {self.kills:,} kills ({self.during_start:,} during a start)"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks that histories of a Larder server with kills are linearizable.")
    parser.add_argument("--server", metavar="PATH", type=Path, help="the larderd to start")
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--operations", type=int, default=1_000, help="the number of requests in each history")
    parser.add_argument("--kills", type=int, default=2, help="how often the server is killed in each history")
    parser.add_argument("--engine", choices=("log", "directory", "replicated"), default="log")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--figures", action="store_true", help="also request revisions and numbers of entries")
    parser.add_argument("--sabotage", action="store_true", help="break the server's promises, and expect a violation")
    parser.add_argument("--check", metavar="FILE", type=Path, help="check a history that an earlier run has kept")
    options = parser.parse_args()
    if (options.server is None) == (options.check is None) or options.kills < 1:
        parser.error("requires either --server or --check, and at least one kill")
    if options.check:
        with open(options.check, "rb") as file:
            check(pickle.load(file), survives=options.check.stem != MEMORY)
        return 0
    directory = Path(tempfile.mkdtemp(prefix="larder-histories-"))
    test = Histories(options, directory)
    try:
        violation = test.run()
    finally:
        if test.postgres:
            test.postgres.remove()
    failed = (violation is None) == options.sabotage
    if failed:
        print(f"FAILED {options.engine}, {violation or 'the sabotage was not noticed'}")
    if not violation or options.sabotage:
        shutil.rmtree(directory)
    result = "noticed the sabotage" if options.sabotage and not failed else "linearizable" if not violation else "not linearizable"
    print(f"{options.engine}, seed {options.seed}: {test}: {result}")
    print(f"{0 if failed else 1} passed, {1 if failed else 0} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
