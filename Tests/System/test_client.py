"""Checks what the Python client does with replies that it can't decode. The server is a script.

Run with `python3 test_client.py`.
"""

import socket
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from brief_case import BriefCase, run
from larder import Client, LarderError, Outcome, Store, Write
from larder_wire import FRAME, Operation

# Bodies that no reply of a server has: too short for any field, and text that is not UTF-8.
BODIES = (b"\x01", b"\xff" * 41)
HELLO = (b"\x01\0\0\0" + b"\x0f\0\0\0" + b"\0\0\0\1" + b"\0\xe0\xff\0" + b"\0\x10\0\4" + b"\0\4\0\0" + b"\0\0\1\0" + b"\4\0fake")

# Every call that decodes a reply.
CALLS: dict[str, Callable[[Store], Any]] = {
    "ping": lambda store: store.client.ping(),
    "stats": lambda store: store.client.stats(),
    "slow_log": lambda store: store.client.slow_log(),
    "connections": lambda store: store.client.connections(),
    "whoami": lambda store: store.client.whoami(),
    "check_rules": lambda store: store.client.check_rules(operation="ping"),
    "tokens": lambda store: store.client.tokens(),
    "cluster": lambda store: store.client.cluster(),
    "console_link": lambda store: store.client.console_link(),
    "open": lambda store: store.client.open("s"),
    "create": lambda store: store.client.create("s"),
    "stores": lambda store: store.client.stores(),
    "drop": lambda store: store.client.drop("s"),
    "move": lambda store: store.client.move("s", "node"),
    "close": lambda store: store.close(),
    "store stats": lambda store: store.stats(),
    "get": lambda store: store.get("k"),
    "get_range": lambda store: store.get_range("k", 0, 1),
    "get_many": lambda store: store.get_many(["k"]),
    "put": lambda store: store.put("k", b""),
    "put_chunks": lambda store: store.put_chunks("k", [b""]),
    "put_many": lambda store: store.put_many([Write("k", b"")]),
    "delete": lambda store: store.delete("k"),
    "delete_many": lambda store: store.delete_many(["k"]),
    "delete_all": lambda store: store.delete_all(),
    "count": lambda store: store.count(),
    "page": lambda store: list(store.page(1)),
    "all": lambda store: list(store.all()),
    "watch": lambda store: store.watch(),
    "find": lambda store: list(store.find()),
    "explain": lambda store: store.explain(),
    "count_documents": lambda store: store.count_documents(),
    "aggregate": lambda store: store.aggregate(),
    "distinct": lambda store: store.distinct("a"),
    "update_matching": lambda store: store.update_matching({}, {}),
    "delete_matching": lambda store: store.delete_matching({}),
    "apply": lambda store: store.apply([Write("k", b"")]),
    "ensure_index": lambda store: store.ensure_index(["a"]),
    "delete_index": lambda store: store.delete_index("a"),
    "indexes": lambda store: store.indexes(),
}


class Script:
    """A server whose reply to every request but the hello has the same body, or begins with 64 such frames."""

    def __init__(self, path: Path, body: bytes, hello: bytes = HELLO, length: int | None = None, more: bool = False) -> None:
        """`length` is what the reply announces if that is not its length."""
        self.body, self.hello, self.length, self.more = body, hello, length, more
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                received = b""
                while chunk := connection.recv(1 << 16):
                    received += chunk
                    while len(received) >= 4 and len(received) >= (size := 4 + int.from_bytes(received[:4], "little")):
                        operation, id = received[4], int.from_bytes(received[8:12], "little")
                        received = received[size:]
                        if operation == Operation.hello:
                            connection.sendall(FRAME.pack(8 + len(self.hello), 0, 0, 0, id) + self.hello)
                            continue
                        length = 8 + len(self.body) if self.length is None else self.length
                        frame = FRAME.pack(length, 0, self.more, 0, id) + self.body
                        connection.sendall(frame * (64 if self.more else 1))

    def close(self) -> None:
        self.listener.close()


class UndecodableReplyTests(BriefCase):
    def test_every_call_raises_an_error_of_the_client(self) -> None:
        for body in BODIES:
            with tempfile.TemporaryDirectory() as folder:
                script = Script(Path(folder) / "s", body)
                for name, call in CALLS.items():
                    with self.subTest(name, size=len(body)), Client(f"unix:{folder}/s") as client:
                        with self.assertRaises(LarderError) as raised:
                            call(Store(client, "s", "memory", 1))
                        self.assertEqual((raised.exception.outcome, raised.exception.code), (Outcome.unknown, None))
                        self.assertIn("reply", str(raised.exception))
                script.close()

    def test_a_frame_is_no_larger_than_the_client_allows(self) -> None:
        largest = HELLO[:8] + b"\xff\xff\xff\xff" + HELLO[12:]
        for hello, length in ((HELLO, 0xFFFF_FFFF), (largest, 0xFFFF_FFFF), (largest, 64 << 20), (HELLO, 7), (HELLO, 0)):
            with self.subTest(length=length), self.script(b"", hello=hello, length=length) as address, Client(address) as client:
                with self.assertRaisesRegex(LarderError, f"frame length {length} is outside"):
                    client.ping()

    def test_a_hello_can_have_any_limits(self) -> None:
        for offset in range(0, 32, 2):
            for value in (0, 1, 0x7FFF, 0x8000, 0xFFFF):
                hello = HELLO[:offset] + value.to_bytes(2, "little") + HELLO[offset + 2 :]
                with self.subTest(hello.hex()), self.script(b"", hello=hello) as address:
                    try:
                        with Client(address) as client:
                            client.ping()
                            Store(client, "s", "memory", 1).put("k", bytes(1_000))
                    except (LarderError, ValueError):
                        pass

    def test_a_reply_stream_can_not_exceed_the_credit(self) -> None:
        record = b"\1\0\1\0" + (60_000).to_bytes(4, "little") + (1).to_bytes(8, "little") + b"k" + bytes(60_000)
        with self.script(record, more=True) as address, Client(address, credit=100_000) as client:
            stream = Store(client, "s", "memory", 1).all()
            with self.assertRaisesRegex(LarderError, "exceeds the credit"):
                client.ping()
            del stream

    @contextmanager
    def script(self, body: bytes, **options: Any) -> Iterator[str]:
        with tempfile.TemporaryDirectory() as folder:
            script = Script(Path(folder) / "s", body, **options)
            try:
                yield f"unix:{folder}/s"
            finally:
                script.close()

    def test_every_decoder_is_used(self) -> None:
        """A call that is not in the table would not be tested."""
        calls = {name for owner in (Client, Store) for name in vars(owner) if not name.startswith("_")}
        others = {"request", "send", "send_frame", "receive", "wait_for_index"}
        self.assertEqual(calls - others - {name.split()[-1] for name in CALLS}, set())


def main() -> int:
    passed, failed = run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
