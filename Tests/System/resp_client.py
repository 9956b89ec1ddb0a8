"""A client of RESP that returns replies byte for byte."""

from __future__ import annotations

import socket
import time


class RESPClient:
    """A connection whose replies are bytes, so that two servers can be compared."""

    def __init__(self, address: tuple[str, int] | str, timeout: float = 30) -> None:
        is_path = isinstance(address, str)
        self.socket = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.received = bytearray()

    def close(self) -> None:
        self.socket.close()

    @staticmethod
    def encoded(words: list[bytes]) -> bytes:
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)

    def send(self, *words: bytes | str | int) -> None:
        self.socket.sendall(self.encoded([word if isinstance(word, bytes) else str(word).encode() for word in words]))

    def call(self, *words: bytes | str | int) -> bytes:
        self.send(*words)
        return self.reply()

    def reply(self) -> bytes:
        """Returns the next reply as it was sent."""
        while (end := self._end(0)) is None:
            part = self.socket.recv(1 << 16)
            if not part:
                raise ConnectionError(f"the server has closed the connection after {bytes(self.received)!r}")
            self.received += part
        reply = bytes(self.received[:end])
        del self.received[:end]
        return reply

    def _end(self, start: int) -> int | None:
        """Returns where the value ends that begins at an offset; None if it isn't complete."""
        line = self.received.find(b"\r\n", start)
        if line < 0:
            return None
        kind, rest, end = self.received[start : start + 1], self.received[start + 1 : line], line + 2
        if kind in b"$=!":
            if int(rest) < 0:
                return end
            end += int(rest) + 2
            return end if end <= len(self.received) else None
        if kind in b"*~>%":
            for _ in range(int(rest) * (2 if kind == b"%" else 1)):
                if (next_end := self._end(end)) is None:
                    return None
                end = next_end
        return end


def wait_until_ready(address: tuple[str, int] | str, seconds: float = 10) -> RESPClient:
    """Returns a connection to a server that has just been started."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            client = RESPClient(address)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
            continue
        if client.call("PING") == b"+PONG\r\n":
            return client
        client.close()
