"""Checks the model of a disk and the replay of recorded system calls on it.

    python3 disk_model_test.py [--seed N]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import unittest
from pathlib import Path

import brief_case
from disk_model import Disk, File
from system_calls import Replay, events

# A file that is larger than a sector.
OLD, NEW = b"a" * 1_000, b"b" * 1_000
FILE = "/disk/data/file"


def literal(data: bytes) -> str:
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


def path(text: str) -> str:
    return literal(text.encode())


def descriptor(text: str) -> str:
    return f"3<{path(text)[1:-1]}>"


def write(data: bytes) -> str:
    return f"pwrite64({descriptor(FILE)}, {literal(data)}, {len(data)}, 0)"


def move(old: str, new: str) -> str:
    return f"renameat(AT_FDCWD, {path(f'/disk/data/{old}')}, AT_FDCWD, {path(f'/disk/data/{new}')})"


SYNC, SYNC_FOLDER = f"fdatasync({descriptor(FILE)})", f"fsync({descriptor('/disk/data')})"
# Makes a file with the old contents, all of which is on the disk.
BEGINNING = [
    f"mkdirat(AT_FDCWD, {path('/disk/data')}, 0777) = 0",
    f"openat(AT_FDCWD, {path(FILE)}, O_RDWR|O_CREAT, 0666) = 3",
    f"{write(OLD)} = 1000",
    f"{SYNC} = 0",
    f"{SYNC_FOLDER} = 0",
    f"fsync({descriptor('/disk')}) = 0",
]


class ReplayTests(brief_case.BriefCase):
    """A call in which the process is killed has the result "?". It may have been carried out, in part, or not at all."""

    seed = 0

    def replay(self, *calls: str, left: dict[str, bytes]) -> Replay:
        """Replays calls of a process that was killed and left these files."""
        replay = Replay(Disk(Path("/disk")))
        self.step(replay, *BEGINNING, *calls)
        self.end(replay, left)
        return replay

    def step(self, replay: Replay, *calls: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "calls"
            report.write_text("".join(f"7  100.00000{number % 10} {call}\n" for number, call in enumerate(calls)))
            for event in events(report):
                replay.step(event)

    def end(self, replay: Replay, left: dict[str, bytes]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            data.mkdir()
            for name, contents in left.items():
                (data / name).write_bytes(contents)
            replay.end_calls(data)

    def images(self, replay: Replay) -> set[tuple[tuple[str, bytes], ...]]:
        """Returns the files that power cuts leave."""
        rng, found = random.Random(self.seed), set()
        for _ in range(200):
            with tempfile.TemporaryDirectory() as folder:
                replay.disk.image(rng).write_to(Path(folder))
                files = sorted(Path(folder, "data").iterdir())
                found.add(tuple((file.name, file.read_bytes()) for file in files))
        return found

    def test_a_write_that_was_not_carried_out_is_on_no_disk(self) -> None:
        for text in (f"{write(NEW)} = ?", f"{write(NEW)} <unfinished ...>\n7  100.1 <... pwrite64 resumed>) = ?"):
            self.assertEqual(self.images(self.replay(text, left={"file": OLD})), {(("file", OLD),)})

    def test_a_write_that_was_carried_out_is_kept_by_the_next_sync_only(self) -> None:
        replay = self.replay(f"{write(NEW)} = ?", left={"file": NEW})
        found = self.images(replay)
        self.assertIn((("file", OLD),), found)
        self.assertIn((("file", NEW),), found)
        self.step(replay, f"{SYNC} = 0")
        self.assertEqual(self.images(replay), {(("file", NEW),)})

    def test_a_write_that_was_carried_out_in_part_is_on_the_disk_in_part(self) -> None:
        torn = NEW[:512] + OLD[512:]
        replay = self.replay(f"{write(NEW)} = ?", left={"file": torn})
        self.assertEqual(self.images(replay), {(("file", OLD),), (("file", torn),)})

    def test_a_file_that_was_not_made_longer_is_not_longer(self) -> None:
        replay = self.replay(f"ftruncate({descriptor(FILE)}, 2000) = ?", left={"file": OLD})
        self.assertEqual(self.images(replay), {(("file", OLD),)})

    def test_a_renaming_that_was_not_carried_out_is_on_no_disk(self) -> None:
        replay = self.replay(f"{move('file', 'other')} = ?", left={"file": OLD})
        self.assertEqual(self.images(replay), {(("file", OLD),)})

    def test_a_renaming_that_was_carried_out_is_kept_by_the_next_sync_only(self) -> None:
        replay = self.replay(f"{move('file', 'other')} = ?", left={"other": OLD})
        self.assertEqual(self.images(replay), {(("file", OLD),), (("other", OLD),)})
        self.step(replay, f"{SYNC_FOLDER} = 0")
        self.assertEqual(self.images(replay), {(("other", OLD),)})

    def test_a_removal_that_was_not_carried_out_is_on_no_disk(self) -> None:
        replay = self.replay(f"unlinkat(AT_FDCWD, {path(FILE)}, 0) = ?", left={"file": OLD})
        self.assertEqual(self.images(replay), {(("file", OLD),)})

    def test_a_sync_that_has_not_ended_keeps_nothing(self) -> None:
        replay = self.replay(f"{write(NEW)} = 1000", f"{SYNC} = ?", left={"file": NEW})
        self.assertIn((("file", OLD),), self.images(replay))

    def test_a_call_that_failed_changes_nothing(self) -> None:
        replay = self.replay(f"{write(NEW)} = -1 EIO (Input/output error)", left={"file": OLD})
        self.assertEqual(self.images(replay), {(("file", OLD),)})

    def test_a_model_that_differs_from_the_disk_is_noticed(self) -> None:
        for left in ({"file": NEW}, {"file": OLD[:-1]}, {}, {"file": OLD, "other": b""}):
            self.assertRaises(ValueError, self.replay, left=left)
            self.assertRaises(ValueError, self.replay, f"{write(OLD)} = 1000", left=left)


class FileTests(brief_case.BriefCase):
    def test_a_sync_keeps_what_was_written_before_it(self) -> None:
        file = File()
        first, second = file.write(0, OLD), file.write(100, NEW)
        file.sync([second])
        kept = file.after_power_cut(random.Random(0), share=0, tears=True)
        self.assertEqual((kept.size, kept.sectors[0]), (1_100, (OLD[:100] + NEW)[:512]))
        self.assertEqual(file.pending, [first])


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the model of a disk.")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    ReplayTests.seed = parser.parse_args().seed
    loader = unittest.defaultTestLoader
    passed, failed = brief_case.run(*(loader.loadTestsFromTestCase(case) for case in (ReplayTests, FileTests)))
    print(f"seed {ReplayTests.seed}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
