"""A fixed sequence of writes, and the contents that a store may have after an interruption."""

from __future__ import annotations

import random
import time
from pathlib import Path

from larder import Client, LarderError, Store, Write
from larder_wire import Code

Contents = dict[str, bytes]


class Trace:
    """Sends one write at a time, continues after a refusal, and stops when the server ends.

    `model` holds the acknowledged contents. `maybe` holds the further contents that are possible after a write without a
    reply, or with a reply that leaves its outcome unknown.
    """

    store_name = "faults"
    extra_name = "extra"

    def __init__(self, address: str, engine: str, data: Path) -> None:
        self.address = address
        self.engine = engine
        self.server_options = ["--data", str(data), "--store", f"{self.store_name}={engine}"]
        self.random = random.Random(7)
        self.model: Contents = {}
        self.maybe: list[Contents] = []
        self.may_have_extra = {False}
        self.lost_connection = False
        self.is_read_only = False
        self.is_full = False
        self.violations: list[str] = []

    def run(self) -> None:
        try:
            with Client(self.address, timeout=20) as client:
                store = client.open(self.store_name)
                self.change_stores(client)
                for step in range(40):
                    self.step(store, step)
        except LarderError as error:
            if error.code is not None:
                self.violations.append(f"a request was refused: {error}")
            self.lost_connection = True

    def change_stores(self, client: Client) -> None:
        for change, outcome in (lambda: client.create(self.extra_name, self.engine), True), (lambda: client.drop(self.extra_name), False):
            self.may_have_extra.add(outcome)
            try:
                change()
                self.may_have_extra = {outcome}
            except LarderError as error:
                if error.code is None:
                    raise

    def step(self, store: Store, step: int) -> None:
        effect: dict[str, bytes | None]
        if step % 8 == 7:
            effect = {f"large{step % 3}": None}
            self.write(effect, lambda: store.delete(f"large{step % 3}"))
        elif step % 8 == 3:
            values = {f"small{step % 5}": b"%d" % step, f"other{step}": b"%d" % step}
            self.write(dict(values), lambda: store.put_many([Write(*item) for item in values.items()]))
        else:
            # The first segments are 1 MiB: this seals some, and soon triggers their compaction.
            key, value = f"large{step % 3}", self.random.randbytes(30_000 if step % 2 else 150_000)
            self.write({key: value}, lambda: store.put(key, value))

    def write(self, effect: dict[str, bytes | None], send: object) -> None:
        after = {key: value for key, value in {**self.model, **effect}.items() if value is not None}
        try:
            send()
        except LarderError as error:
            if error.code is None:
                self.maybe.append(after)
                raise
            self.note_refusal(error, after)
        else:
            # Deleting a missing entry writes nothing.
            if self.is_read_only and after != self.model:
                self.violations.append("a write was acknowledged after a failure")
            self.model = after

    def note_refusal(self, error: LarderError, after: Contents) -> None:
        if error.code == Code.failed and not self.is_read_only:
            # This write was in flight and may have reached the disk.
            self.maybe.append(after)
            self.is_read_only = True
        elif error.code == Code.failed and after in (self.model, *self.maybe):
            # There is nothing to delete if the earlier, uncertain write took effect.
            pass
        elif error.code == Code.storeReadOnly:
            self.is_read_only = True
        elif error.code == Code.storeFull:
            self.is_full = True
        else:
            self.violations.append(f"a write was refused: {error}")

    # Checks

    def check_reads(self) -> None:
        """Checks that untouched entries can be read. Reads of entries with an uncertain write may fail."""
        with Client(self.address, timeout=10) as client:
            store = client.open(self.store_name)
            for key in sorted(self.model.keys() | {key for maybe in self.maybe for key in maybe}):
                try:
                    entry = store.get(key)
                except LarderError as error:
                    if error.code != Code.failed or all(maybe.get(key) == self.model.get(key) for maybe in self.maybe):
                        self.violations.append(f"{key} can't be read: {error}")
                else:
                    if (entry.value if entry else None) != self.model.get(key):
                        self.violations.append(f"{key} differs from what was acknowledged")
            if store.stats().get("read_only", 0) != int(self.is_read_only):
                self.violations.append(f"stats don't say that the store is {'' if self.is_read_only else 'not '}read-only")

    def check_writes_resume(self) -> None:
        """Checks that writes succeed without a restart once there is space again."""
        deadline = time.monotonic() + 5
        with Client(self.address, timeout=10) as client:
            store = client.open(self.store_name)
            while True:
                try:
                    store.put("after", b"after")
                    self.model = {**self.model, "after": b"after"}
                    return
                except LarderError as error:
                    if error.code != Code.storeFull or time.monotonic() > deadline:
                        return self.violations.append(f"writes don't resume: {error}")
                time.sleep(0.05)

    def check_restart(self) -> None:
        with Client(self.address, timeout=10) as client:
            has_extra = self.extra_name in {description.name for description in client.stores()}
            if has_extra not in self.may_have_extra:
                self.violations.append(f"the store {self.extra_name} {'exists' if has_extra else 'does not exist'}")
            store = client.open(self.store_name)
            found = {entry.key: entry.value for entry in store.all() if entry}
            if found != self.model and found not in self.maybe:
                wrong = sorted(key for key in found.keys() | self.model.keys() if found.get(key) != self.model.get(key))
                self.violations.append(f"after the restart these differ from what was acknowledged: {', '.join(wrong)}")
            store.put("again", b"again")
