"""Injects a failure or a kill at the n-th system call of a kind, for every n, and checks the server's errors and data.

    python3 faults.py --server PATH [--engine log] [--every 1] [--fault kill|EIO|ENOSPC] [--keep]

A short sequence of writes, one at a time, runs against a larderd under strace(1), which either starts the server (`start`) or is
attached once the server is ready (`run`). strace counts calls per thread, and each store's commit writer has its own thread.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from fault_trace import Trace
from larder import LarderError
from server_process import Server

CHANGES = (
    "pwrite64", "pwritev2", "fdatasync", "fsync", "renameat", "ftruncate", "fallocate", "unlinkat", "mkdirat",
)
CALLS = {
    "kill": CHANGES,
    "EIO": ("pwrite64", "pwritev2", "fdatasync", "fsync"),
    "ENOSPC": ("pwrite64", "pwritev2", "fallocate"),
}
# ENOSPC persists, as on a full disk. EIO happens once, which exposes retries that must not happen.
INJECTIONS = {"kill": "signal=SIGKILL:when={n}", "EIO": "error=EIO:when={n}", "ENOSPC": "error=ENOSPC:when={n}+"}


class Strace:
    """Traces a server, counts one kind of call, and injects a fault at the n-th."""

    def __init__(self, fault: str, call: str, number: int, directory: Path) -> None:
        self.report = directory / "calls"
        inject = f"inject={call}:{INJECTIONS[fault].format(n=number)}"
        self.command = ["strace", "-f", "-qq", "-y", "-o", str(self.report), "-e", f"trace={','.join(CHANGES)}", "-e", inject]
        self.process: subprocess.Popen | None = None

    def attach(self, server: Server) -> None:
        self.process = subprocess.Popen([*self.command, "-p", str(server.process.pid)], stderr=subprocess.PIPE)
        tracer = Path(f"/proc/{server.process.pid}/task")
        deadline = time.monotonic() + 10
        while not all("TracerPid:\t0\n" not in (task / "status").read_text() for task in tracer.iterdir()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"strace can't be attached: {self.process.stderr.read().decode()}")
            time.sleep(0.005)

    def detach(self, server: Server) -> None:
        """Stops injecting faults.

        The server is stopped meanwhile: a call that strace has begun to make fail would fail with ENOSYS without it.
        """
        server.process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{server.process.pid}/task")
        deadline, since = time.monotonic() + 10, time.monotonic()
        # A thread also stops for a moment when strace makes its call fail.
        while time.monotonic() < since + 0.02:
            if not all((task / "stat").read_text().rpartition(")")[2].split()[0] in "tT" for task in tasks.iterdir()):
                since = time.monotonic()
            if time.monotonic() > deadline:
                raise SystemExit("the server does not stop")
            time.sleep(0.002)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=5)
        server.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kills strace, which may wait forever for a thread of a server that was killed."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stderr.close()

    def lines(self) -> list[str]:
        return self.report.read_text(errors="replace").splitlines() if self.report.exists() else []

    def injected(self) -> list[str]:
        return [line for line in self.lines() if "(INJECTED)" in line]


class Point:
    """One run of the trace, with a fault at one numbered call, and its result."""

    def __init__(self, options: argparse.Namespace, fault: str, phase: str, call: str, number: int) -> None:
        self.options, self.fault, self.phase, self.call, self.number = options, fault, phase, call, number
        self.directory = Path(tempfile.mkdtemp(prefix="larder-faults-"))
        self.trace = Trace(f"unix:{self.directory}/larder.sock", options.engine, self.directory / "data")
        self.strace = Strace(fault, call, number, self.directory)
        self.violations: list[str] = []
        self.was_hit = False

    def __str__(self) -> str:
        return f"{self.options.engine}, {self.fault} at {self.call} {self.number} of the {self.phase}"

    def start(self, *, traced: bool) -> Server:
        program = self.options.server.resolve()
        if not traced:
            return Server(program, self.directory, *self.trace.server_options)
        # The server is then a child of strace, which is the process that this script starts and kills.
        return Server(program, self.directory, *self.trace.server_options, prefix=self.strace.command)

    def run(self) -> None:
        server = self.start(traced=self.phase == "start")
        try:
            try:
                server.wait_until_ready(pause=0.002)
            except SystemExit as error:
                self.check_failed_start(server, str(error))
            else:
                if self.phase == "run":
                    self.strace.attach(server)
                self.trace.run()
                self.check_run(server)
        finally:
            self.kill_server(server)
        self.check_restart()

    def check_failed_start(self, server: Server, message: str) -> None:
        """Checks that a failed start reports why."""
        self.was_hit = True
        expected = {"kill": "", "EIO": "Input/output error", "ENOSPC": "No space left on device"}[self.fault]
        if expected not in message:
            self.violations.append(f"the server didn't start and doesn't report why: {message}")

    def check_run(self, server: Server) -> None:
        trace = self.trace
        if self.fault == "kill":
            self.was_hit = trace.lost_connection
            return
        self.was_hit = bool(self.strace.injected())
        if trace.lost_connection:
            self.violations.append(f"the server has exited: {server.log()}")
            return
        if self.was_hit:
            trace.check_reads()
            self.check_no_retry()
        if self.fault == "ENOSPC" and self.was_hit:
            if self.call == "fallocate" and trace.is_read_only:
                self.violations.append("a full disk has made the store read-only")
            if self.phase == "run":
                self.strace.detach(server)
                if not trace.is_read_only:
                    trace.check_writes_resume()
        self.violations += trace.violations

    def check_no_retry(self) -> None:
        """Checks that the server never retries a failed call on a file of the store, except to allocate space."""
        lines = self.strace.lines()
        first = next(index for index, line in enumerate(lines) if "(INJECTED)" in line)
        path = re.search(r"<(/[^>]*)>", lines[first])
        if self.fault != "EIO" or not path or f"/stores/{self.trace.store_name}/" not in path[1]:
            return
        # What was synced is noted there without a sync. The next note includes what a failed one had.
        if self.call == "pwrite64" and Path(path[1]).name in ("manifest", ".journal"):
            return
        again = [line for line in lines[first + 1 :] if f"<{path[1]}>" in line and self.call in line]
        if again:
            self.violations.append(f"{lines[first]} was followed by {again[0]}")
        if not self.trace.is_read_only:
            self.violations.append(f"{lines[first]} had no consequence")

    def check_restart(self) -> None:
        """Restarts the server without strace and checks its data."""
        server = self.start(traced=False)
        try:
            server.wait_until_ready(pause=0.002)
            self.trace.check_restart()
            self.violations += self.trace.violations
        except (SystemExit, LarderError) as error:
            self.violations.append(f"after the restart: {error}")
        finally:
            server.kill()

    def kill_server(self, server: Server) -> None:
        self.strace.kill()
        if self.phase == "start":
            # This script started strace, without which the server would keep running.
            with suppress(OSError):
                for child in Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split():
                    descriptor = os.pidfd_open(int(child))
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    select.select([descriptor], [], [], 10)
                    os.close(descriptor)
        server.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes every system call that changes files fail in a Larder server, or kill it.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--engine", choices=("log", "directory"), default="log")
    parser.add_argument("--fault", choices=tuple(CALLS), action="append", help="the fault to inject (default: all of them)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="try only every N-th call")
    parser.add_argument("--keep", action="store_true", help="keep the data of failed runs")
    options = parser.parse_args()
    points, violations = 0, []
    start = time.monotonic()
    for fault in options.fault or CALLS:
        for phase in ("start", "run"):
            for call in CALLS[fault]:
                number = 1
                while True:
                    point = Point(options, fault, phase, call, number)
                    point.run()
                    points += point.was_hit
                    violations += [f"{point}: {violation}" for violation in dict.fromkeys(point.violations)]
                    if point.violations and options.keep:
                        print(f"{point}: the data is in {point.directory}")
                    else:
                        shutil.rmtree(point.directory)
                    if sys.stdout.isatty():
                        print(f"\r\033[K{point}", end="", flush=True)
                    if not point.was_hit:
                        break
                    number += options.every
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    for violation in violations:
        print(f"FAILED {violation}")
    print(f"{options.engine}: {points} calls failed or killed the server, in {time.monotonic() - start:.0f} s")
    print(f"{0 if violations else 1} passed, {1 if violations else 0} failed")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
