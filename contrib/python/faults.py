"""Has the n-th call of a kind kill the server, or fail in it, for every n, and checks what it says, and what it still knows afterwards.

    python3 faults.py --server PATH [--engine log] [--every 1] [--fault kill|EIO|ENOSPC] [--keep]

A short trace of writes, each sent when the one before is answered, runs against a larderd under strace(1), which begins with the server
(`start`) or is attached when it accepts (`run`). strace counts each thread's calls by itself, and a store's journal has a thread of its own.
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
from session import Server

CHANGES = ("pwrite64", "fdatasync", "fsync", "renameat", "ftruncate", "fallocate", "unlinkat", "mkdirat")
CALLS = {"kill": CHANGES, "EIO": ("pwrite64", "fdatasync", "fsync"), "ENOSPC": ("pwrite64", "fallocate")}
# A failure that lasts is how a full disk is; one that doesn't shows who tries again what must not be tried again.
INJECTIONS = {"kill": "signal=SIGKILL:when={n}", "EIO": "error=EIO:when={n}", "ENOSPC": "error=ENOSPC:when={n}+"}


class Strace:
    """Follows a server, counts one kind of call, and interferes from the n-th on."""

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

    def detach(self) -> None:
        """The calls go through from now on."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=5)

    def end(self) -> None:
        """However it is: with a server that was killed, strace may wait for ever for one of its threads."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stderr.close()

    def lines(self) -> list[str]:
        return self.report.read_text(errors="replace").splitlines() if self.report.exists() else []

    def injected(self) -> list[str]:
        return [line for line in self.lines() if "(INJECTED)" in line]


class Point:
    """One run of the trace: which call, of what number, and what becomes of it."""

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
        # The server is strace's child then, so that it is strace that this process starts and ends.
        return Server(program, self.directory, *self.trace.server_options, prefix=self.strace.command)

    def run(self) -> None:
        server = self.start(traced=self.phase == "start")
        try:
            try:
                server.wait_until_it_accepts(pause=0.002)
            except SystemExit as error:
                self.look_at_refusal(server, str(error))
            else:
                if self.phase == "run":
                    self.strace.attach(server)
                self.trace.run()
                self.look_at_run(server)
        finally:
            self.end(server)
        self.look_at_restart()

    def look_at_refusal(self, server: Server, message: str) -> None:
        """A start that fails must say why."""
        self.was_hit = True
        expected = {"kill": "", "EIO": "Input/output error", "ENOSPC": "No space left on device"}[self.fault]
        if expected not in message:
            self.violations.append(f"the server didn't start, and doesn't say why: {message}")

    def look_at_run(self, server: Server) -> None:
        trace = self.trace
        if self.fault == "kill":
            self.was_hit = trace.lost_connection
            return
        self.was_hit = bool(self.strace.injected())
        if trace.lost_connection:
            self.violations.append(f"the server has ended: {server.log()}")
            return
        if self.was_hit:
            trace.check_reads()
            self.check_no_second_try()
        if self.fault == "ENOSPC" and self.was_hit:
            if self.call == "fallocate" and trace.is_read_only:
                self.violations.append("a full disk has ended writing")
            if self.phase == "run":
                self.strace.detach()
                if not trace.is_read_only:
                    trace.check_writes_go_on()
        self.violations += trace.violations

    def check_no_second_try(self) -> None:
        """What has failed in a file of the store is final there; but a full disk isn't, while only space is asked for."""
        lines = self.strace.lines()
        first = next(index for index, line in enumerate(lines) if "(INJECTED)" in line)
        path = re.search(r"<(/[^>]*)>", lines[first])
        if self.fault != "EIO" or not path or f"/stores/{self.trace.store_name}/" not in path[1]:
            return
        again = [line for line in lines[first + 1 :] if f"<{path[1]}>" in line and self.call in line]
        if again:
            self.violations.append(f"after {lines[first]} came {again[0]}")
        if not self.trace.is_read_only:
            self.violations.append(f"{lines[first]} has had no consequence")

    def look_at_restart(self) -> None:
        """Without strace."""
        server = self.start(traced=False)
        try:
            server.wait_until_it_accepts(pause=0.002)
            self.trace.check_restart()
            self.violations += self.trace.violations
        except (SystemExit, LarderError) as error:
            self.violations.append(f"after the restart: {error}")
        finally:
            server.end()

    def end(self, server: Server) -> None:
        self.strace.end()
        if self.phase == "start":
            # What was started is strace, and without it the server would live on.
            with suppress(OSError):
                for child in Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split():
                    ending = os.pidfd_open(int(child))
                    signal.pidfd_send_signal(ending, signal.SIGKILL)
                    select.select([ending], [], [], 10)
                    os.close(ending)
        server.end()


def main() -> int:
    parser = argparse.ArgumentParser(description="Has every call that changes files kill a Larder server or fail in it.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--engine", choices=("log", "directory"), default="log")
    parser.add_argument("--fault", choices=tuple(CALLS), action="append", help="what happens; all of them unless said otherwise")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="try only every N-th call")
    parser.add_argument("--keep", action="store_true", help="leave the data of what fails")
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
