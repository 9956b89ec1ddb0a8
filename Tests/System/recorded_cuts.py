"""Cuts the power of a server at recorded system calls, and checks what a server finds on the disk.

    python3 recorded_cuts.py --server PATH [--engine log] [--images 200] [--seed N] [--sabotage]

strace(1) records how a server under load changes its files. At random calls, images of the disk are made of what was
synced and of some of what was not (`disk_model.py`): sectors are dropped, reordered and torn. A server starts with each
of them, and now and then its power is cut, too. The contents must be explained by what clients had seen before the cut
(`linearizability.py`). With --sabotage, the server's syncs do nothing, which must be noticed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from disk_model import Disk, Folder
from history_recorder import Recorder, Session
from larder import LarderError
from linearizability import Epoch, Undecided, Violation, check
from lying_disk import lying_disk
from server_process import Server
from store_model import Call
from store_reads import Page, Revision
from system_calls import Event, Replay, events, strace, wait_for_report, wait_for_strace

OPERATIONS = 300
IMAGES_PER_HISTORY = 50


class TracedRecorder(Recorder):
    """Records the system calls of its servers, too, and what each of them leaves when it is killed."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.sabotage = list(self.prefix)
        self.reports: list[Path] = []
        self.servers: list[Server] = []
        self.left: list[Path] = []
        # When a watch has shown something is not recorded.
        self.watches = False

    def record(self, operations: int, kills: int) -> None:
        super().record(operations, kills)
        self.keep_files()

    def start(self) -> Server:
        if self.servers:
            self.keep_files()
        self.reports.append(self.directory / f"calls-{len(self.reports)}")
        self.prefix = [*strace(self.reports[-1]), *self.sabotage]
        self.servers.append(super().start())
        wait_for_strace(self.reports[-1])
        return self.servers[-1]

    def keep_files(self) -> None:
        self.left.append(self.directory / f"left-{len(self.left)}" / self.data.name)
        if self.data.exists():
            shutil.copytree(self.data, self.left[-1])

    def runs(self) -> Iterator[tuple[list[Event], Path]]:
        """Returns the calls of each server, and a copy of what it left."""
        for report, server, left in zip(self.reports, self.servers, self.left):
            wait_for_report(report, server)
            yield list(events(report)), left


def cut(epochs: Iterable[Epoch], nanoseconds: int, offsets: list[int]) -> list[Epoch]:
    """Returns the histories as they are if the power is cut at a time of the wall clock, which strace uses.

    The wall clock may have been adjusted, so the time of the monotonic clock, which the histories use, is an interval.
    """
    first, last = nanoseconds - max(offsets), nanoseconds - min(offsets)
    found = []
    for epoch in epochs:
        connections = [[seen_until(call, first) for call in calls if call.invoked < last] for calls in epoch.connections]
        if any(connections):
            found.append(Epoch(connections))
    return found


def clock_offset() -> int:
    """Returns how far the wall clock is ahead of the monotonic clock."""
    return time.time_ns() - time.monotonic_ns()


def seen_until(call: Call, nanoseconds: int) -> Call:
    return call if call.returned < nanoseconds else replace(call, result=None, returned=nanoseconds)


def times(all_events: list[Event]) -> list[int]:
    """Returns for each event the last time at which nothing after it has begun, so far as the report says."""
    # The end of a call that the report has in one line may be any time after its beginning.
    ends = [event.nanoseconds for event in all_events]
    return [following or event.nanoseconds or 0 for event, following in zip(all_events, [*ends[1:], time.time_ns()])]


class Cuts:
    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options, self.directory = options, directory
        self.server = options.server.resolve()
        self.prefix = lying_disk(directory, "nosync") if options.sabotage else []
        self.stores = [f"one={options.engine}", f"two={options.engine}"]
        self.images = self.second_cuts = self.histories = self.operations = 0

    def run(self) -> str | None:
        while self.images < self.options.images:
            seed = self.options.seed + self.histories
            try:
                self.record(seed, random.Random(seed))
            except (Violation, Undecided, LarderError, SystemExit) as error:
                return f"seed {seed}, image {self.images}: {error}"
            self.histories += 1
        return None

    def record(self, seed: int, rng: random.Random) -> None:
        folder = self.directory / f"{seed}"
        folder.mkdir()
        recorder = TracedRecorder(self.server, folder, self.stores, rng, self.prefix)
        offsets = [clock_offset()]
        recorder.record(OPERATIONS, 2)
        offsets.append(clock_offset())
        self.operations += recorder.operations
        runs = list(recorder.runs())
        all_events = [event for run, _ in runs for event in run]
        ends = iter(times(all_events))
        replay = Replay(Disk(folder))
        count = min(IMAGES_PER_HISTORY, self.options.images - self.images)
        chosen = sorted(rng.choices(range(len(all_events)), k=count))
        numbers = itertools.count()
        for run, left in runs:
            for event, number, end in zip(run, numbers, ends):
                replay.step(event)
                for _ in range(chosen.count(number)):
                    histories = {store: cut(epochs, end, offsets) for store, epochs in recorder.histories.items()}
                    self.check(replay.disk.image(rng), histories, rng)
            replay.end_calls(left)
        shutil.rmtree(folder)

    def check(self, image: Folder, histories: dict[str, list[Epoch]], rng: random.Random) -> None:
        """Checks what a server finds on the image and, now and then, what another one finds if its power is cut again."""
        self.images += 1
        folder = self.directory / "image"
        is_cut_again = rng.random() < 0.2
        image.write_to(folder)
        report = self.directory / "calls"
        offsets = [clock_offset()]
        server, found = self.read(folder, strace(report) if is_cut_again else [])
        offsets.append(clock_offset())
        for store, history in histories.items():
            check([*history, found[store]], survives=True)
        shutil.rmtree(folder)
        if not is_cut_again:
            return
        self.second_cuts += 1
        wait_for_report(report, server)
        all_events = list(events(report))
        report.unlink()
        number = rng.randrange(len(all_events))
        replay = Replay(Disk(folder, image))
        for event in all_events[: number + 1]:
            replay.step(event)
        end = times(all_events)[number]
        replay.disk.image(rng).write_to(folder)
        _, again = self.read(folder, [])
        for store, history in histories.items():
            check([*history, *cut([found[store]], end, offsets), again[store]], survives=True)
        shutil.rmtree(folder)

    def read(self, folder: Path, prefix: list[str]) -> tuple[Server, dict[str, Epoch]]:
        """Starts a server on an image, and returns what it has."""
        options = [option for store in self.stores for option in ("--store", store)]
        server = Server(self.server, folder, "--data", str(folder / "data"), *options, prefix=prefix)
        try:
            server.wait_until_ready(pause=0.002)
            session = Session(server.address, [store.split("=")[0] for store in self.stores])
            for store in session.handles:
                for request in (Revision(), Page()):
                    session.send(store, request)
            while session.pending:
                session.receive()
            session.client.close()
        finally:
            server.kill()
        return server, {store: Epoch([calls]) for store, calls in session.calls.items()}

    def __str__(self) -> str:
        return (
            f"{self.images:,} images of {self.histories:,} histories with {self.operations:,} operations,"
            f" {self.second_cuts:,} of them cut again during recovery"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="Cuts the power of a Larder server at recorded system calls.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--engine", choices=("log", "directory"), default="log")
    parser.add_argument("--images", type=int, default=200, help="the number of disks that servers start with")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--sabotage", action="store_true", help="make the server's syncs do nothing, and expect a violation")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="larder-cuts-"))
    test = Cuts(options, directory)
    violation = test.run()
    failed = (violation is None) == options.sabotage
    if failed:
        print(f"FAILED {options.engine}, {violation or 'the sabotage was not noticed'}")
    if violation and not options.sabotage:
        print(f"the data is in {directory}")
    else:
        shutil.rmtree(directory)
    expected = "not all as they must be" if violation else "all as they must be"
    result = "noticed the sabotage" if options.sabotage and not failed else expected
    print(f"{options.engine}, seed {options.seed}: {test}: {result}")
    print(f"{0 if failed else 1} passed, {1 if failed else 0} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
