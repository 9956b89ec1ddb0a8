"""A crash test's client process, which reconnects to each restarted server."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier, Event

from larder import Client, LarderError
from larder_wire import Code, Outcome


@dataclass
class Figures:
    """The work of one process in one cycle, and the violations that it found."""

    is_verified: bool = False
    acknowledged: int = 0
    survived: int = 0
    stores_changed: int = 0
    indexes_changed: int = 0
    finds_compared: int = 0
    transfers: int = 0
    conflicts: int = 0
    bulk_writes: int = 0
    compactions: int = 0
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Meeting:
    """Where the processes of a crash test wait for each other and for the test, four times a cycle: when all are connected,
    when none verifies any more, when all have stopped working, and when none verifies again.
    """

    barrier: Barrier
    # Set if the server still runs when the processes have to stop working.
    pause: Event

    def wait(self) -> None:
        self.barrier.wait(60)


class ClientProcess:
    """Calls `work` until the server ends or the test pauses; `verify` compares the next server's data with the acknowledged
    writes, and `verify_again` what was changed since.
    """

    def __init__(self, number: int, address: str, seed: int) -> None:
        self.address = address
        self.rng = random.Random(seed * 1_000 + number)

    def serve(self, pipe: Connection, meeting: Meeting) -> None:
        """Runs one cycle for each true value from the pipe and sends its figures back."""
        while pipe.recv():
            pipe.send(self.run(meeting))

    def run(self, meeting: Meeting) -> Figures:
        figures = Figures()
        with self.connect() as client:
            meeting.wait()
            figures.is_verified = self.call(self.verify, client, figures)
            meeting.wait()
            is_running = figures.is_verified
            while is_running and not figures.violations and not meeting.pause.is_set():
                is_running = self.call(self.work, client, figures)
            meeting.wait()
            if meeting.pause.is_set():
                figures.is_verified = is_running and self.call(self.verify_again, client, figures)
            meeting.wait()
        return figures

    def call(self, step: Callable[[Client, Figures], None], client: Client, figures: Figures) -> bool:
        """Returns whether the server still runs after a step."""
        try:
            step(client, figures)
        except LarderError as error:
            if error.code not in (None, Code.shuttingDown) or error.outcome == Outcome.rejected:
                figures.violations.append(f"a request was refused: {error}")
            return False
        return True

    def connect(self) -> Client:
        deadline = time.monotonic() + 20
        while True:
            try:
                return Client(self.address, timeout=20)
            except LarderError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.002)

    def verify(self, client: Client, figures: Figures) -> None:
        raise NotImplementedError

    def work(self, client: Client, figures: Figures) -> None:
        raise NotImplementedError

    def verify_again(self, client: Client, figures: Figures) -> None:
        pass
