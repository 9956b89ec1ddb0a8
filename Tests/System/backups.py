"""Makes backups of a store while clients write to it, restores them, and checks that each is the store at one moment.

    python3 backups.py --server PATH --larder PATH [--histories 5] [--engine log] [--seed N] [--sabotage]

The histories are those of `histories.py`, with a kill in the middle and enough data that a backup is many frames. With
--sabotage, each backup is made of halves of two, which must be noticed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from history_recorder import Recorder, Requests, Session, Watcher
from larder import Client, LarderError
from linearizability import Undecided, Violation, check
from server_process import Server
from store_model import Call, Outcome, Request, State, content, unchanged

OPERATIONS = 600
KEYS = tuple(f"{prefix}{number:02}" for prefix in "ab" for number in range(80))


@dataclass(frozen=True)
class Backup(Request):
    """Reads the contents of all entries, in the way of `larder backup`; a restored entry has another revision."""

    file: Path

    def execute(self, state: State, call: Call) -> Outcome:
        return unchanged({key: entry.content for key, entry in state.entries.items()}, state)


class BackupMaker(threading.Thread):
    """Makes one backup after the other until the server ends."""

    def __init__(self, program: Path, address: str, store: str, folder: Path) -> None:
        super().__init__(daemon=True)
        self.command = [program, "--server", address, "backup", store]
        self.store, self.folder, self.watched = store, folder, None
        self.calls: list[Call] = []
        self.start()

    def run(self) -> None:
        while True:
            file = self.folder / f"{time.monotonic_ns()}.backup"
            call = Call(Backup(file), time.monotonic_ns())
            status = subprocess.run([*self.command, file], capture_output=True, check=False).returncode
            if status != 0:
                # The server has ended.
                return
            call.returned = time.monotonic_ns()
            self.calls.append(call)


class BackupRecorder(Recorder):
    """Records backups of the first store, too."""

    def __init__(self, larder: Path, *arguments: object) -> None:
        super().__init__(*arguments)
        self.larder = larder
        self.makers: list[BackupMaker] = []
        for store in self.requests:
            self.requests[store] = Requests(self.rng, expiring=0, keys=KEYS)

    def work(self, server: Server, sessions: list[Session], operations: int) -> list[Watcher]:
        self.makers.append(BackupMaker(self.larder, server.address, next(iter(self.requests)), self.directory))
        return [*super().work(server, sessions, operations), self.makers[-1]]

    def restore(self) -> None:
        """Reads the backups by restoring them into stores of another server."""
        folder = self.directory / "restored"
        folder.mkdir()
        server = Server(self.program, folder)
        try:
            server.wait_until_ready(pause=0.002)
            with Client(server.address, timeout=30) as client:
                for call in [call for maker in self.makers for call in maker.calls]:
                    store = f"restored-{call.invoked}"
                    command = [self.larder, "--server", server.address, "restore", store, call.request.file, "--engine", "memory"]
                    subprocess.run(command, check=True, capture_output=True)
                    call.result = {entry.key: content(entry.value) for entry in client.open(store).all()}
                    client.drop(store)
        finally:
            server.kill()


def mix(calls: list[Call]) -> None:
    """Gives each backup the last keys of the one after it."""
    for call, following in zip(calls, calls[1:]):
        middle = KEYS[len(KEYS) // 2]
        first = {key: value for key, value in call.result.items() if key < middle}
        call.result = first | {key: value for key, value in following.result.items() if key >= middle}


class Backups:
    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options, self.directory = options, directory
        self.backups = self.entries = self.operations = 0

    def run(self) -> str | None:
        for number in range(self.options.histories):
            seed = self.options.seed + number
            try:
                self.record(seed)
            except (Violation, Undecided, LarderError, SystemExit) as error:
                return f"seed {seed}: {error}"
            except subprocess.CalledProcessError as error:
                return f"seed {seed}: {error}: {error.stderr.decode()}"
        return None if self.backups else "no backup was made"

    def record(self, seed: int) -> None:
        folder = self.directory / f"{seed}"
        folder.mkdir()
        program, larder = self.options.server.resolve(), self.options.larder.resolve()
        recorder = BackupRecorder(larder, program, folder, [f"one={self.options.engine}"], random.Random(seed))
        recorder.record(OPERATIONS, 2)
        recorder.restore()
        for epoch, maker in zip(recorder.histories["one"], recorder.makers):
            if self.options.sabotage:
                mix(maker.calls)
            # Each is a connection of its own, because the next one may begin before the order of this one is known.
            epoch.connections += [[call] for call in maker.calls]
            self.backups += len(maker.calls)
            self.entries += sum(len(call.result) for call in maker.calls)
        self.operations += recorder.operations
        check(recorder.histories["one"], survives=True)
        shutil.rmtree(folder)

    def __str__(self) -> str:
        return f"{self.backups:,} backups with {self.entries:,} entries during {self.operations:,} operations"


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks that backups of a Larder store under load are snapshots.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--larder", metavar="PATH", type=Path, required=True, help="the larder to run")
    parser.add_argument("--histories", type=int, default=5)
    parser.add_argument("--engine", choices=("log", "directory"), default="log")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--sabotage", action="store_true", help="make backups of halves of two, and expect a violation")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="larder-backups-") as name:
        test = Backups(options, Path(name))
        violation = test.run()
    failed = (violation is None) == options.sabotage
    if failed:
        print(f"FAILED {options.engine}, {violation or 'the sabotage was not noticed'}")
    result = "noticed the sabotage" if options.sabotage and not failed else "not all snapshots" if violation else "all snapshots"
    print(f"{options.engine}, seed {options.seed}: {test}: {result}")
    print(f"{0 if failed else 1} passed, {1 if failed else 0} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
