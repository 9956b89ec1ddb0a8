"""Checks every operation and every kind of bad input against a server.

    python3 session.py unix:/run/larder.sock        checks a server that is already running
    python3 session.py --server PATH                starts this larderd in a temporary directory and stops it afterwards

Reports where the server deviates from Protocol/wire.md, then prints how many checks passed; exits with 1 if any failed.
Touches only the stores that it creates.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

import larder_wire as wire
import session_apply
import session_bad_input
import session_changes
import session_entries
import session_finds
import session_indexes
import session_reply_streams
import session_stores
import session_timeouts
import session_watches
from brief_case import run
from larder import Client, LarderError, Write
from larder_wire import Code, Operation, Outcome
from server_process import Server
from session_case import Case

MODULES = (session_stores, session_entries, session_reply_streams, session_bad_input, session_watches)
DOCUMENT_MODULES = (session_finds, session_changes, session_indexes, session_apply)


class ServerChecks(Case):
    """Checks that need their own server: the connection limit and, last in the order of names, shutdown (§8)."""

    server: Server

    def setUp(self) -> None:
        self.when_there_is_room(super().setUp)

    def when_there_is_room(self, connect: Callable[[], None]) -> None:
        """Connects as soon as the server accepts it, because it has noticed that another connection was closed."""
        deadline = time.monotonic() + 5
        while True:
            try:
                return connect()
            except LarderError as error:
                self.assertEqual(error.code, Code.tooManyConnections)
                self.assertLess(time.monotonic(), deadline, "closing a connection does not make room for another")

    def test_one_connection_too_many(self) -> None:
        """`self.client` counts toward the limit, and connections of earlier tests may not be closed yet."""
        connections = []
        with self.refuses(Code.tooManyConnections, Outcome.not_executed):
            while len(connections) < self.server.max_connections:
                connections.append(self.second_client())
        self.assertGreater(len(connections), self.server.max_connections - 50)
        for client in (self.client, *connections):
            client.ping()
        connections.pop().close()
        self.when_there_is_room(lambda: Client(self.address).close())

    def test_server_is_still_running(self) -> None:
        self.assertIsNone(self.server.process.poll(), "the server has exited")

    def test_sigterm(self) -> None:
        """The server answers received requests, continues reply streams, refuses new clients and notifies the others."""
        self.store.put_many([Write(f"{number}", bytes(50_000)) for number in range(20)])
        reader, busy, idle = self.raw(credit=1), self.raw(), self.raw()
        stream = reader.send_request(Operation.all, wire.encode_all(), reader.open(self.store.name))
        frames = [reader.done(stream)]
        busy.send(b"".join(wire.encode_frame(Operation.ping, id) for id in range(1, 51)))
        self.server.process.send_signal(signal.SIGTERM)
        self.assertEqual({busy.reply().id for _ in range(50)}, set(range(1, 51)))
        for raw in (busy, idle):
            self.assert_error(raw.reply(timeout=10), 0, Code.shuttingDown, Outcome.not_executed)
            self.assert_closed(raw)
        with self.assertRaises(LarderError):
            Client(self.address, timeout=0.2).close()
        reader.send(wire.encode_frame(Operation.credit, stream, wire.encode_credit(1 << 30)))
        while frames[-1].more:
            frames.append(reader.done(stream))
        self.assertEqual(sum(len(wire.decode_records(frame.body)) for frame in frames), 20)
        self.assert_error(reader.reply(timeout=10), 0, Code.shuttingDown, Outcome.not_executed)
        self.assert_closed(reader)
        try:
            self.assertEqual(self.server.process.wait(timeout=10), 0, "exit status")
        except subprocess.TimeoutExpired:
            self.fail("the server is still running 10 seconds after SIGTERM")

    def clean_up_stores(self) -> None:
        """Does nothing, because the stores disappear with the server."""


def load(*modules: object) -> unittest.TestSuite:
    return unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromModule(module) for module in modules)


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks a Larder server against its protocol.")
    parser.add_argument("address", nargs="?", help="unix:/path or tcp:host:port of a running server")
    parser.add_argument("--server", metavar="PATH", type=Path, help="the larderd to start, instead of an address")
    options = parser.parse_args()
    if (options.address is None) == (options.server is None):
        parser.error("give either an address or --server PATH")
    if options.address:
        try:
            Client(options.address).close()
        except (LarderError, ValueError) as error:
            parser.exit(1, f"{error}\n")
        Case.address = options.address
        passed, failed = run(load(*MODULES, *DOCUMENT_MODULES), load(session_timeouts))
    else:
        with tempfile.TemporaryDirectory(prefix="larder-session-") as directory:
            server = Server(options.server.resolve(), Path(directory))
            try:
                server.wait_until_ready()
                Case.address, ServerChecks.server = server.address, server
                passed, failed = run(load(*MODULES, *DOCUMENT_MODULES), load(session_timeouts))
                last_passed, last_failed = run(unittest.defaultTestLoader.loadTestsFromTestCase(ServerChecks))
                passed, failed = passed + last_passed, failed + last_failed
                if failed:
                    print(f"The server's log (exit status {server.process.poll()}):\n{server.log()}")
            finally:
                server.kill()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
