"""A disk that remembers what was synced, and makes images of what a power cut can leave.

It promises no more than POSIX: without a sync, any of the 512-byte sectors of any write may be on the disk, in any
order, and any of the names that were created, renamed or removed. A rename is one step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512


@dataclass(eq=False)
class Write:
    """Sectors as they were after a write, and the size of the file then. `cuts` means that the file ends there."""

    sectors: dict[int, bytes]
    size: int
    cuts: bool = False
    is_done: bool = False


@dataclass(eq=False)
class File:
    # What is on the disk, and what a process sees.
    sectors: dict[int, bytes] = field(default_factory=dict)
    size: int = 0
    current: dict[int, bytes] = field(default_factory=dict)
    current_size: int = 0
    pending: list[Write] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> Write:
        sectors = {}
        for number in range(offset // SECTOR, -(-(offset + len(data)) // SECTOR)):
            start = number * SECTOR
            sector = bytearray(self.current.get(number, bytes(SECTOR)))
            part = data[max(start - offset, 0) : start + SECTOR - offset]
            at = max(offset - start, 0)
            sector[at : at + len(part)] = part
            sectors[number] = bytes(sector)
        return self.add(Write(sectors, max(self.current_size, offset + len(data))))

    def resize(self, size: int) -> Write:
        """Cuts the file off, or makes it longer by zeros."""
        last = size // SECTOR
        sectors = {last: self.current[last][: size % SECTOR].ljust(SECTOR, b"\0")} if last in self.current else {}
        return self.add(Write(sectors, size, cuts=True))

    def add(self, write: Write) -> Write:
        apply(write, self.current)
        self.current_size = write.size
        self.pending.append(write)
        return write

    def sync(self, writes: Iterable[Write]) -> None:
        for write in writes:
            if write in self.pending:
                for older in self.pending[: self.pending.index(write)]:
                    # The sectors of this write have the older ones, too.
                    for number in write.sectors:
                        older.sectors.pop(number, None)
                self.pending.remove(write)
                apply(write, self.sectors)
                self.size = write.size if write.cuts else max(self.size, write.size)

    def end_calls(self, left: Path) -> None:
        """Replaces what unfinished writes would have done with what they did, which the real file shows."""
        for write in self.pending:
            if not write.is_done:
                data = left.read_bytes()
                write.size, write.is_done = len(data), True
                write.sectors = {number: sector_of(data, number) for number in write.sectors if number * SECTOR < len(data)}
        self.current, self.current_size = dict(self.sectors), self.size
        for write in self.pending:
            apply(write, self.current)
            self.current_size = write.size if write.cuts else max(self.current_size, write.size)

    def check(self, real: Path) -> None:
        """Checks that a process sees what is in the real file."""
        data = real.read_bytes()
        if len(data) != self.current_size:
            raise ValueError(f"{real} has {len(data)} bytes, not {self.current_size}")
        for number in range(-(-len(data) // SECTOR)):
            if sector_of(data, number) != self.current.get(number, bytes(SECTOR)):
                raise ValueError(f"{real} differs in sector {number}")

    def after_power_cut(self, rng: random.Random, share: float, tears: bool) -> File:
        sectors, size = dict(self.sectors), self.size
        for write in self.pending:
            if write.cuts:
                survives = rng.random() < share
                if survives:
                    apply(write, sectors)
                    size = write.size
                continue
            whole = rng.random() < share
            kept = {number: data for number, data in write.sectors.items() if (rng.random() < share if tears else whole)}
            sectors |= kept
            if kept or rng.random() < share:
                size = max(size, write.size)
        return File(sectors, size, dict(sectors), size)

    def write_to(self, path: Path) -> None:
        with open(path, "wb") as file:
            for number, data in sorted(self.sectors.items()):
                if number * SECTOR < self.size:
                    file.seek(number * SECTOR)
                    file.write(data)
            file.truncate(self.size)


def sector_of(data: bytes, number: int) -> bytes:
    return data[number * SECTOR : (number + 1) * SECTOR].ljust(SECTOR, b"\0")


def apply(write: Write, sectors: dict[int, bytes]) -> None:
    if write.cuts:
        for number in [number for number in sectors if number * SECTOR >= write.size]:
            del sectors[number]
    sectors |= write.sectors


@dataclass(eq=False)
class Step:
    """Names that changed together, with what they stand for now."""

    names: dict[str, File | Folder | None]
    is_done: bool = False


@dataclass(eq=False)
class Folder:
    names: dict[str, File | Folder] = field(default_factory=dict)
    current: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[Step] = field(default_factory=list)

    def change(self, names: dict[str, File | Folder | None]) -> Step:
        step = Step(names)
        rename(step, self.current)
        self.pending.append(step)
        return step

    def sync(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if step in self.pending:
                self.pending.remove(step)
                rename(step, self.names)

    def end_calls(self, left: Path) -> None:
        """Forgets unfinished changes of names that did not take place, as the real folder shows."""
        for step in [step for step in self.pending if not step.is_done]:
            step.is_done = all((left / name).exists() == (node is not None) for name, node in step.names.items())
            if not step.is_done:
                self.pending.remove(step)
        self.current = dict(self.names)
        for step in self.pending:
            rename(step, self.current)
        for name, node in self.current.items():
            node.end_calls(left / name)

    def check(self, real: Path) -> None:
        """Checks that a process sees what is in the real folder."""
        if (names := {path.name for path in real.iterdir()}) != set(self.current):
            raise ValueError(f"{real} has {sorted(names)}, not {sorted(self.current)}")
        for name, node in self.current.items():
            node.check(real / name)

    def after_power_cut(self, rng: random.Random, share: float, tears: bool) -> Folder:
        names = dict(self.names)
        for step in self.pending:
            if rng.random() < share:
                rename(step, names)
        kept = {name: node.after_power_cut(rng, share, tears) for name, node in names.items()}
        return Folder(kept, dict(kept))

    def write_to(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        for name, node in self.names.items():
            node.write_to(path / name)


def rename(step: Step, names: dict[str, File | Folder]) -> None:
    for name, node in step.names.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Disk:
    """The folder `root`, which system calls change. Every call has a beginning, and an end that may never come."""

    def __init__(self, root: Path, folder: Folder | None = None) -> None:
        self.root = root
        self.folder = folder or Folder()

    def image(self, rng: random.Random) -> Folder:
        """Returns a disk that a power cut leaves now."""
        return self.folder.after_power_cut(rng, rng.choice((0, 0.2, 0.5, 0.8, 1)), rng.random() < 0.7)

    def end_calls(self, left: Path) -> None:
        """Ends the calls of processes that were killed: each was carried out, in part, or not at all.

        Which of these shows in a copy of a folder in the root from that time. Everything in it is checked.
        """
        self.folder.end_calls(left.parent)
        if folder := self.folder.current.get(left.name):
            folder.check(left)

    def find(self, path: str) -> File | Folder | None:
        """Returns what a path stands for, or None if it is outside the root or was removed."""
        if not Path(path).is_relative_to(self.root):
            return None
        node: File | Folder | None = self.folder
        for name in Path(path).relative_to(self.root).parts:
            node = node.current.get(name) if isinstance(node, Folder) else None
        return node

    def parent(self, path: str) -> tuple[Folder | None, str]:
        folder = self.find(str(Path(path).parent))
        return (folder if isinstance(folder, Folder) else None), Path(path).name

    # System calls. Each returns what to do at its end.

    def create(self, path: str, node: File | Folder) -> Callable[[], None]:
        folder, name = self.parent(path)
        if folder is None or name in folder.current:
            return nothing
        return done(folder.change({name: node}))

    def rename(self, old: str, new: str) -> Callable[[], None]:
        (folder, first), (other, last) = self.parent(old), self.parent(new)
        if folder is None:
            return nothing
        if folder is not other:
            raise ValueError(f"{old} is renamed to another folder, {new}")
        return done(folder.change({first: None, last: folder.current[first]}))

    def remove(self, path: str) -> Callable[[], None]:
        folder, name = self.parent(path)
        return done(folder.change({name: None})) if folder else nothing

    def write(self, path: str, offset: int, data: bytes, is_synced: bool) -> Callable[[], None]:
        file = self.find(path)
        if not isinstance(file, File):
            return nothing
        write = file.write(offset, data)
        return (lambda: file.sync([write])) if is_synced else done(write)

    def resize(self, path: str, size: int) -> Callable[[], None]:
        file = self.find(path)
        return done(file.resize(size)) if isinstance(file, File) else nothing

    def extend(self, path: str, size: int) -> Callable[[], None]:
        file = self.find(path)
        return done(file.resize(size)) if isinstance(file, File) and size > file.current_size else nothing

    def sync(self, path: str) -> Callable[[], None]:
        """Only what was done before a sync begins is certainly on the disk when it ends."""
        node = self.find(path)
        if node is None:
            return nothing
        covered = [change for change in node.pending if change.is_done]
        return lambda: node.sync(covered)


def nothing() -> None:
    pass


def done(change: Write | Step) -> Callable[[], None]:
    def end() -> None:
        change.is_done = True

    return end
