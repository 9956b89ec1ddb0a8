"""A client of the crash test, in a process of its own, that goes on with each server that takes the place of one that was ended."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from larder import Client, LarderError
from larder_wire import Code


@dataclass
class Figures:
    """What one process did in one cycle, and what it found wrong."""

    acknowledged: int = 0
    survived: int = 0
    stores_changed: int = 0
    compactions: int = 0
    violations: list[str] = field(default_factory=list)


class ClientProcess:
    """`work` goes on until the server ends, and `verify` compares what the next one has with what was acknowledged until then."""

    def __init__(self, number: int, address: str, seed: int) -> None:
        self.address = address
        self.choose = random.Random(seed * 1_000 + number)

    def serve(self, pipe: Connection) -> None:
        """Runs whenever it is told to, and says what came of it."""
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
