"""Kills a server repeatedly under load from several client processes and checks its data after each restart.

    python3 crash.py --server PATH [--cycles 50] [--engine log] [--processes 4] [--seed N] [--keep]

Most cycles end with SIGKILL: at a random time, during a compaction, while indexes are built after the previous kill, or
during recovery from it. Some end with SIGTERM, after which the server must exit cleanly. Each process owns some keys
(`crash_owner.py`), one creates and drops stores (`crash_stores.py`), one creates and deletes indexes
(`crash_indexes.py`), two transfer money between the same accounts (`crash_bank.py`), and one writes many documents at
once (`crash_bulk.py`). Acknowledged writes must survive, nothing else may appear, revisions must keep increasing,
indexes must have what the documents have, the sum of all accounts must stay the same, and of a large write all must
be there or nothing: after each start, and when the load pauses before some of the ends.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from crash_bank import Teller
from crash_bulk import BulkWriter
from crash_indexes import IndexMaker
from crash_owner import Owner
from crash_process import Figures, Meeting
from crash_stores import StoreMaker
from server_process import Server


@dataclass
class Totals:
    kills: int = 0
    during_start: int = 0
    during_verification: int = 0
    during_compaction: int = 0
    pauses: int = 0
    clean_exits: int = 0
    acknowledged: int = 0
    survived: int = 0
    stores_changed: int = 0
    indexes_changed: int = 0
    finds_compared: int = 0
    transfers: int = 0
    conflicts: int = 0
    bulk_writes: int = 0
    compactions: int = 0
    slowest_start: float = 0
    violations: list[str] = field(default_factory=list)

    def add(self, cycle: int, all_figures: list[Figures]) -> None:
        for figures in all_figures:
            self.acknowledged += figures.acknowledged
            self.survived += figures.survived
            self.stores_changed += figures.stores_changed
            self.indexes_changed += figures.indexes_changed
            self.finds_compared += figures.finds_compared
            self.transfers += figures.transfers
            self.conflicts += figures.conflicts
            self.bulk_writes += figures.bulk_writes
            self.violations += [f"cycle {cycle}: {violation}" for violation in figures.violations]
        # All processes report the same store.
        self.compactions += max(figures.compactions for figures in all_figures)

    def __str__(self) -> str:
        return (
            f"{self.kills} kills ({self.during_start} during a start, {self.during_verification} directly after it,"
            f" {self.during_compaction} during a compaction) and {self.clean_exits} clean exits,"
            f" {self.acknowledged:,} writes acknowledged and none lost, {self.survived:,} more survived,"
            f" {self.stores_changed:,} changes of other stores, {self.indexes_changed:,} changes of indexes,"
            f" {self.finds_compared:,} finds by indexes compared, {self.transfers:,} transfers and {self.conflicts:,} conflicts,"
            f" {self.bulk_writes:,} large writes,"
            f" {self.pauses} pauses of the load,"
            f" {self.compactions:,} compactions, slowest start {self.slowest_start:.2f} s"
        )


def run_owner(number: int, count: int, address: str, seed: int, pipe: Connection, meeting: Meeting) -> None:
    Owner(number, count, address, seed).serve(pipe, meeting)


def run_store_maker(number: int, address: str, seed: int, pipe: Connection, meeting: Meeting) -> None:
    StoreMaker(number, address, seed).serve(pipe, meeting)


def run_index_maker(number: int, address: str, seed: int, pipe: Connection, meeting: Meeting) -> None:
    IndexMaker(number, address, seed).serve(pipe, meeting)


def run_bulk_writer(number: int, address: str, seed: int, pipe: Connection, meeting: Meeting) -> None:
    BulkWriter(number, address, seed).serve(pipe, meeting)


def run_teller(number: int, address: str, seed: int, pipe: Connection, meeting: Meeting) -> None:
    Teller(number, address, seed).serve(pipe, meeting)


class CrashTest:
    """Starts a server, makes all processes work, and ends the server, once per cycle."""

    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options = options
        self.directory = directory
        self.rng = random.Random(options.seed)
        self.totals = Totals()
        address = f"unix:{directory}/larder.sock"
        context = multiprocessing.get_context("spawn")
        count = options.processes
        others = [run_store_maker, run_index_maker, run_teller, run_teller, run_bulk_writer]
        self.meeting = Meeting(context.Barrier(count + len(others) + 1), context.Event())
        self.pipes: list[Connection] = []
        for number in range(count + len(others)):
            parent_end, child_end = context.Pipe()
            self.pipes.append(parent_end)
            arguments = (number, address, options.seed, child_end, self.meeting)
            if number < count:
                process = context.Process(target=run_owner, args=(number, count, *arguments[1:]), daemon=True)
            else:
                process = context.Process(target=others[number - count], args=arguments, daemon=True)
            process.start()

    def run(self) -> None:
        for cycle in range(self.options.cycles + 1):
            # One more cycle than kills, to check what the last kill left.
            self.cycle(cycle, is_last=cycle == self.options.cycles)
            if sys.stdout.isatty():
                print(f"\r{cycle}/{self.options.cycles} cycles, {self.totals.acknowledged:,} writes acknowledged ", end="", flush=True)
            if self.totals.violations:
                break
        for pipe in self.pipes:
            pipe.send(False)
        if sys.stdout.isatty():
            print("\r\033[K", end="")

    def cycle(self, cycle: int, is_last: bool) -> None:
        options = ["--data", str(self.directory / "data")]
        for name in (Owner.store_name, Teller.store_name, BulkWriter.store_name):
            options += ["--store", f"{name}={self.options.engine}"]
        server = Server(self.options.server.resolve(), self.directory, *options)
        try:
            if not is_last and self.rng.random() < 0.15:
                time.sleep(self.rng.uniform(0, max(0.02, self.totals.slowest_start)))
                self.kill(server)
                self.totals.during_start += 1
                return
            start = time.monotonic()
            try:
                server.wait_until_ready(pause=0.002)
            except SystemExit as error:
                self.totals.violations.append(f"cycle {cycle}: {error}")
                return
            self.totals.slowest_start = max(self.totals.slowest_start, time.monotonic() - start)
            for pipe in self.pipes:
                pipe.send(True)
            self.meeting.wait()
            is_early = not is_last and self.rng.random() < 0.15
            if is_early:
                time.sleep(self.rng.uniform(0, 0.1))
                self.kill(server)
                self.totals.during_verification += 1
            self.meeting.wait()
            if not is_early:
                self.let_work(is_last)
                self.end(cycle, server, is_last)
            if self.meeting.pause.is_set():
                self.meeting.pause.clear()
            else:
                self.meeting.wait()
                self.meeting.wait()
        finally:
            server.kill()
        all_figures = [pipe.recv() for pipe in self.pipes]
        if not is_early and not all(figures.is_verified for figures in all_figures):
            self.totals.violations.append(f"cycle {cycle}: the data could not be verified: {server.log()}")
        self.totals.add(cycle, all_figures)

    def let_work(self, is_last: bool) -> None:
        """Waits while the processes work, and sometimes until they have stopped and verified what they changed."""
        if not is_last and self.rng.random() < 0.3 and self.options.engine.startswith("log"):
            self.wait_for(self.compaction_file)
        else:
            time.sleep(self.rng.uniform(0.02, 0.4))
            if is_last or self.rng.random() < 0.3:
                self.meeting.pause.set()
                self.meeting.wait()
                self.meeting.wait()
                self.totals.pauses += 1

    def end(self, cycle: int, server: Server, is_last: bool) -> None:
        if is_last or self.rng.random() < 0.1:
            return self.terminate(cycle, server)
        self.kill(server)
        self.totals.during_compaction += self.compaction_file.exists()

    @property
    def compaction_file(self) -> Path:
        """The file that a compaction has not finished."""
        return self.directory / "data" / "stores" / Owner.store_name / "files" / "compaction.tmp"

    def kill(self, server: Server) -> None:
        server.kill()
        self.totals.kills += 1

    def wait_for(self, path: Path) -> None:
        """Waits until shortly after the file exists, but at most half a second."""
        deadline = time.monotonic() + 0.5
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.0002)
        time.sleep(self.rng.uniform(0, 0.003))

    def terminate(self, cycle: int, server: Server) -> None:
        server.process.send_signal(signal.SIGTERM)
        try:
            status = server.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            status = "unknown: it was still running after 15 seconds"
        if status != 0:
            self.totals.violations.append(f"cycle {cycle}: after SIGTERM the server's status is {status}")
        self.totals.clean_exits += 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Kills a Larder server repeatedly under load and checks its data.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--engine", default="log", help="the store's engine, log or directory, with its default durability")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="keep the data and print its path")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="larder-crash-"))
    test = CrashTest(options, directory)
    test.run()
    for violation in test.totals.violations[:20]:
        print(f"FAILED {violation}")
    failed = bool(test.totals.violations)
    if not failed:
        print(f"{options.engine}, seed {options.seed}: {test.totals}")
    if failed or options.keep:
        print(f"seed {options.seed}; the data is in {directory}")
    else:
        shutil.rmtree(directory)
    print(f"{0 if failed else 1} passed, {1 if failed else 0} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
