"""Ends a server again and again under the load of several client processes, and checks what it still knows when it is back.

    python3 crash.py --server PATH [--cycles 50] [--engine log] [--processes 4] [--seed N] [--keep]

Most ends are a SIGKILL: at a random moment, in the middle of a compaction, or in the recovery from the one before; some are a SIGTERM,
which the server must heed. Each process owns some keys (`crash_owner.py`), and one makes and drops stores (`crash_stores.py`). What was
acknowledged must be there, nothing may be there that nobody wrote, and revisions go on in order.
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

from crash_owner import Owner
from crash_process import Figures
from crash_stores import StoreMaker
from session import Server


@dataclass
class Totals:
    kills: int = 0
    in_start: int = 0
    in_compaction: int = 0
    clean_ends: int = 0
    acknowledged: int = 0
    survived: int = 0
    stores_changed: int = 0
    compactions: int = 0
    longest_start: float = 0
    violations: list[str] = field(default_factory=list)

    def add(self, cycle: int, of_all: list[Figures]) -> None:
        for figures in of_all:
            self.acknowledged += figures.acknowledged
            self.survived += figures.survived
            self.stores_changed += figures.stores_changed
            self.violations += [f"cycle {cycle}: {violation}" for violation in figures.violations]
        # All have asked the same store.
        self.compactions += max(figures.compactions for figures in of_all)

    def __str__(self) -> str:
        return (
            f"{self.kills} kills ({self.in_start} in a start, {self.in_compaction} in a compaction) and {self.clean_ends} clean ends,"
            f" {self.acknowledged:,} writes acknowledged and none lost, {self.survived:,} more survived,"
            f" {self.stores_changed:,} steps with other stores, {self.compactions:,} compactions, longest start {self.longest_start:.2f} s"
        )


def own(number: int, count: int, address: str, seed: int, pipe: Connection) -> None:
    Owner(number, count, address, seed).serve(pipe)


def make_stores(number: int, address: str, seed: int, pipe: Connection) -> None:
    StoreMaker(number, address, seed).serve(pipe)


class CrashTest:
    """The server's side: starts it, has all processes work, and ends it."""

    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options = options
        self.directory = directory
        self.choose = random.Random(options.seed)
        self.totals = Totals()
        address = f"unix:{directory}/larder.sock"
        context = multiprocessing.get_context("spawn")
        self.pipes: list[Connection] = []
        for number in range(options.processes + 1):
            own_end, other = context.Pipe()
            self.pipes.append(own_end)
            if number < options.processes:
                process = context.Process(target=own, args=(number, options.processes, address, options.seed, other), daemon=True)
            else:
                process = context.Process(target=make_stores, args=(number, address, options.seed, other), daemon=True)
            process.start()

    def run(self) -> None:
        for cycle in range(self.options.cycles + 1):
            # One start more than kills, to look at what the last one has left.
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
        data = self.directory / "data"
        server = Server(
            self.options.server.resolve(), self.directory, "--data", str(data), "--store", f"{Owner.store_name}={self.options.engine}"
        )
        try:
            if not is_last and self.choose.random() < 0.15:
                time.sleep(self.choose.uniform(0, max(0.02, self.totals.longest_start)))
                self.kill(server)
                self.totals.in_start += 1
                return
            start = time.monotonic()
            try:
                server.wait_until_it_accepts(pause=0.002)
            except SystemExit as error:
                self.totals.violations.append(f"cycle {cycle}: {error}")
                return
            self.totals.longest_start = max(self.totals.longest_start, time.monotonic() - start)
            for pipe in self.pipes:
                pipe.send(True)
            how = self.choose.random()
            if is_last or how < 0.1:
                time.sleep(self.choose.uniform(0.02, 0.4))
                self.end_in_order(cycle, server)
            else:
                unfinished = data / "stores" / Owner.store_name / "files" / "compaction.tmp"
                if how < 0.4 and self.options.engine.startswith("log"):
                    self.wait_for(unfinished)
                else:
                    time.sleep(self.choose.uniform(0.02, 0.4))
                self.kill(server)
                self.totals.in_compaction += unfinished.exists()
        finally:
            server.end()
        self.totals.add(cycle, [pipe.recv() for pipe in self.pipes])

    def kill(self, server: Server) -> None:
        server.end()
        self.totals.kills += 1

    def wait_for(self, path: Path) -> None:
        """Until a little after there is such a file, and half a second at most."""
        deadline = time.monotonic() + 0.5
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.0002)
        time.sleep(self.choose.uniform(0, 0.003))

    def end_in_order(self, cycle: int, server: Server) -> None:
        server.process.send_signal(signal.SIGTERM)
        try:
            status = server.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            status = "none after 15 seconds"
        if status != 0:
            self.totals.violations.append(f"cycle {cycle}: SIGTERM ended the server with status {status}")
        self.totals.clean_ends += 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Ends a Larder server again and again under load and checks what it still knows.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--engine", default="log", help="the store's engine: log or directory, with the durability that it has by default")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="leave the data where it is, and say where")
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
