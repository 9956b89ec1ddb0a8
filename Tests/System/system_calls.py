"""The system calls by which a process changes files, recorded by strace(1)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from disk_model import Disk, File, Folder
from server_process import Server

CALLS = (
    "openat", "pwrite64", "pwritev2", "fdatasync", "fsync", "renameat", "renameat2", "unlinkat", "mkdirat", "ftruncate", "fallocate",
    "write", "writev", "pwritev", "linkat", "symlinkat", "sync_file_range", "copy_file_range",
)
LINE = re.compile(r"(\d+) +(\d+)\.(\d+) (.*)", re.DOTALL)
# The thread was killed in the call.
KILLED = re.compile(r"\) += \?$")
FAILED = re.compile(r"\) += -1 ")
RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)", re.DOTALL)


def strace(report: Path) -> list[str]:
    """Returns what a command has to begin with to be traced by a process of its own, which ends with the command."""
    options = ["-D", "-f", "-y", "-ttt", "-xx", "-s", str(1 << 25), "--seccomp-bpf", "-e", f"trace={','.join(CALLS)}"]
    return ["strace", *options, "-o", str(report)]


def wait_for_strace(report: Path) -> None:
    """Waits until the first call of a server is recorded."""
    deadline = time.monotonic() + 10
    while not report.exists() or report.stat().st_size == 0:
        if time.monotonic() > deadline:
            raise SystemExit("strace does not start")
        time.sleep(0.001)


def wait_for_report(report: Path, server: Server) -> None:
    """Waits until strace has written the end of a server that was killed."""
    last = re.compile(rf"^{server.process.pid} .*\+\+\+ ", re.MULTILINE)
    deadline = time.monotonic() + 10
    while not (report.exists() and last.search(report.read_text()[-2_000:])):
        if time.monotonic() > deadline:
            raise SystemExit(f"strace has not finished {report}")
        time.sleep(0.005)


@dataclass
class Event:
    """The beginning or the end of a call. `nanoseconds` is when, since 1970, or None if the report doesn't say.

    A call in which the process was killed has no end. Nobody knows whether it took place.
    """

    nanoseconds: int | None
    text: str
    thread: int
    begins: bool


def events(report: Path) -> Iterator[Event]:
    unfinished: dict[int, str] = {}
    for line in report.read_text().splitlines():
        match = LINE.fullmatch(line)
        thread, at, text = int(match[1]), int(match[2]) * 10**9 + int(match[3]) * 1_000, match[4]
        if text.startswith(("+++", "---")):
            continue
        if resumed := RESUMED.match(text):
            beginning = unfinished.pop(thread)
            if not KILLED.search(text[-20:]):
                yield Event(at, beginning + resumed[1], thread, begins=False)
        elif text.endswith("<unfinished ...>"):
            unfinished[thread] = text.removesuffix("<unfinished ...>").rstrip()
            yield Event(at, unfinished[thread], thread, begins=True)
        else:
            yield Event(at, text, thread, begins=True)
            if not KILLED.search(text[-20:]):
                yield Event(None, text, thread, begins=False)


class Replay:
    """Repeats recorded calls on a disk."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._ends: dict[int, Callable[[], None]] = {}

    def step(self, event: Event) -> None:
        if event.begins:
            self._ends[event.thread] = self.begin(event.text) if not FAILED.search(event.text[-120:]) else lambda: None
        else:
            self._ends.pop(event.thread)()

    def end_calls(self, left: Path) -> None:
        """Ends the calls of a process that was killed, and checks the disk (`Disk.end_calls`)."""
        self._ends.clear()
        self.disk.end_calls(left)

    def begin(self, text: str) -> Callable[[], None]:
        name, _, arguments = text.partition("(")
        match name:
            case "openat":
                if "O_TRUNC" in arguments:
                    raise ValueError("openat with O_TRUNC is not known here")
                if "O_CREAT" not in arguments:
                    return lambda: None
                return self.disk.create(quoted(arguments)[0].decode(), File())
            case "mkdirat":
                return self.disk.create(quoted(arguments)[0].decode(), Folder())
            case "renameat" | "renameat2":
                old, new = quoted(arguments)
                return self.disk.rename(old.decode(), new.decode())
            case "unlinkat":
                return self.disk.remove(quoted(arguments)[0].decode())
            case "fsync" | "fdatasync":
                return self.disk.sync(file_of(arguments))
            case "ftruncate":
                return self.disk.resize(file_of(arguments), int(re.search(r">, (\d+)", arguments)[1]))
            case "fallocate":
                mode, offset, size = re.search(r">, ([^,]+), (\d+), (\d+)", arguments).groups()
                return self.allocate(file_of(arguments), mode, int(offset), int(size))
            case "pwrite64":
                offset = int(re.search(r'", \d+, (\d+)', arguments)[1])
                return self.disk.write(file_of(arguments), offset, quoted(arguments)[0], is_synced=False)
            case "pwritev2":
                offset, flags = re.search(r"\], \d+, (\d+), (\w+)", arguments).groups()
                return self.disk.write(file_of(arguments), int(offset), b"".join(quoted(arguments)), is_synced="SYNC" in flags)
        if self.disk.find(file_of(arguments)):
            raise ValueError(f"{name} is not known here")
        return lambda: None

    def allocate(self, path: str, mode: str, offset: int, size: int) -> Callable[[], None]:
        if mode == "0":
            return self.disk.extend(path, offset + size)
        if "PUNCH_HOLE" in mode:
            return self.disk.write(path, offset, bytes(size), is_synced=False)
        if mode != "FALLOC_FL_KEEP_SIZE":
            raise ValueError(f"fallocate with {mode} is not known here")
        return lambda: None


def file_of(arguments: str) -> str:
    """Returns the path of the descriptor that is the first argument."""
    match = re.match(r"\d+<([^>]*)>", arguments)
    return decode(match[1]).decode(errors="replace") if match else ""


def quoted(arguments: str) -> list[bytes]:
    return [decode(text) for text in re.findall(r'"([^"]*)"', arguments)]


def decode(text: str) -> bytes:
    """Returns the bytes of a string in which strace writes every byte as \\x and two digits."""
    return bytes.fromhex(text.replace("\\x", ""))
