"""Slow checks, which run concurrently with the others: Protocol/wire.md §9."""

import time

import larder_wire as wire
from larder_wire import Code, Operation, Outcome
from session_case import Case


class TimeoutChecks(Case):
    def test_no_hello_within_five_seconds(self) -> None:
        """Silence, a partial hello and a hello of one byte per second all time out."""
        hello = wire.encode_frame(Operation.hello, 1, wire.encode_hello(1, 1, 1, "slow"))
        start = time.monotonic()
        silent, partial, slow = (self.raw(greeted=False) for _ in range(3))
        partial.send(hello[:20])
        for byte in hello[:4]:
            slow.send(bytes([byte]))
            time.sleep(1)
        self.client.ping()
        for raw in (silent, partial, slow):
            self.assert_error(raw.reply(timeout=4), 0, Code.timedOut, Outcome.not_executed)
            self.assert_closed(raw)
        self.assertGreater(time.monotonic() - start, 4.5)
        self.client.ping()
