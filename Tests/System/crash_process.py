"""A crash test's client process, which reconnects to each restarted server."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from larder import Client, LarderError
from larder_wire import Code


@dataclass
class Figures:
    """The work of one process in one cycle, and the violations that it found."""

    acknowledged: int = 0
    survived: int = 0
    stores_changed: int = 0
    compactions: int = 0
    violations: list[str] = field(default_factory=list)


class ClientProcess:
    """Calls `work` until the server ends; `verify` compares the next server's data with the acknowledged writes."""

    def __init__(self, number: int, address: str, seed: int) -> None:
        self.address = address
        self.rng = random.Random(seed * 1_000 + number)

    def serve(self, pipe: Connection) -> None:
        """Runs one cycle for each true value from the pipe and sends its figures back."""
        while pipe.recv():
            pipe.send(self.run())

    def run(self) -> Figures:
        figures = Figures()
        try:
            with self.connect() as client:
                self.verify(client, figures)
                while not figures.violations:
                    self.work(client, figures)
        except LarderError as error:
            if error.code not in (None, Code.shuttingDown):
                figures.violations.append(f"a request was refused: {error}")
        return figures

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
