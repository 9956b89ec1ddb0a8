"""Sends random commands to larderd and to redis-server, and compares the replies byte for byte.

    python3 resp_differential.py --server PATH [--commands 20000] [--seed N]

The commands are those that Larder has, with valid and invalid arguments, in both versions of the protocol, alone, pipelined,
and in transactions. A difference prints the commands that led to it, as few as possible. Replies that depend on the server, such
as those of INFO, are not compared; those without an order are sorted first.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from resp_client import RESPClient, wait_until_ready

# The commands that redis-server 7.0 lacks are tested in Swift, and so is DBSIZE: Redis counts what has expired until it removes it.
KEYS = ["a", "b", "c", "key:1", "key:2", "user:1", "k" * 40]
VALUES = [
    "", "0", "1", "-1", "7", "10", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "3.5", "-0", " 1", "1 ",
    "01", "+1", "abc", "hello world", "1e3", "0x10", "inf", "nan", "x" * 60, "3.0e3", "1e99999", "1e-99999", "1.7976931348623157e308", "-2.5", "5.000",
]
NUMBERS = ["0", "1", "-1", "2", "5", "10", "100", "-3", "9223372036854775807", "-9223372036854775808", "abc", "", "1.5"]
# Larder refuses expiries beyond 2^53 milliseconds.
PAST_AND_FUTURE = ["1", "1000000000", "4102444800", "4102444800000", "x", "-1"]
PATTERNS = ["*", "key:*", "k*", "?", "[a-b]", "[^a]", "user:1", "*:1", "\\a", "[", "a*b", "", "*1*", "h[ae]llo", "[b-a]"]


class Generator:
    """Makes random commands from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def key(self) -> str:
        return self.random.choice(KEYS)

    def value(self) -> str:
        return self.random.choice(VALUES)

    def number(self) -> str:
        return self.random.choice(NUMBERS)

    def lifetime(self) -> str:
        """No two are the same, because the two servers don't read their clocks at the same time."""
        return self.pick(str(self.random.randint(100_000, 99_999_999)), str(self.random.randint(100_000, 999_999)), "0", "-5", "x")

    def keys(self) -> list[str]:
        return [self.key() for _ in range(self.random.randint(1, 4))]

    def pairs(self) -> list[str]:
        return [word for _ in range(self.random.randint(1, 3)) for word in (self.key(), self.value())]

    def options(self, *choices: list[str], limit: int = 3) -> list[str]:
        picked = self.random.sample(choices, min(len(choices), self.random.choice([0, 0, 1, 1, 2, limit])))
        return [word for option in picked for word in option]

    def expiry(self) -> list[str]:
        return self.random.choice(
            [["EX", self.lifetime()], ["PX", self.lifetime()], ["EXAT", self.random.choice(PAST_AND_FUTURE)],
             ["PXAT", self.random.choice(PAST_AND_FUTURE)]])

    def command(self) -> list[str]:
        words = getattr(self, self.random.choice(self.NAMES))()
        chance = self.random.random()
        if chance < 0.03:
            words = words[:-1] or words
        elif chance < 0.06 and not words[0].endswith("SUBSCRIBE"):  # Each word has its own reply there.
            words = [*words, self.value()]
        if self.random.random() < 0.2:
            words[0] = words[0].lower() if self.random.random() < 0.5 else words[0].title()
        return words

    def set(self) -> list[str]:
        return ["SET", self.key(), self.value(),
                *self.options(["NX"], ["XX"], ["GET"], ["KEEPTTL"], self.expiry(), ["bad"], self.expiry())]

    def simple(self) -> list[str]:
        return [self.pick("GET", "STRLEN", "TYPE", "INCR", "DECR", "GETDEL", "PERSIST"), self.key()]

    def expiry_of(self) -> list[str]:
        return [self.pick("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"), self.key()]

    def with_value(self) -> list[str]:
        return [self.pick("APPEND", "SETNX", "GETSET", "INCRBYFLOAT"), self.key(), self.value()]

    def with_number(self) -> list[str]:
        return [self.pick("INCRBY", "DECRBY", "INCRBYFLOAT"), self.key(), self.number()]

    def setex(self) -> list[str]:
        return [self.pick("SETEX", "PSETEX"), self.key(), self.lifetime(), self.value()]

    def getex(self) -> list[str]:
        return ["GETEX", self.key(), *self.options(["PERSIST"], self.expiry(), ["NX"], limit=2)]

    def getrange(self) -> list[str]:
        return [self.pick("GETRANGE", "SUBSTR"), self.key(), self.number(), self.number()]

    def setrange(self) -> list[str]:
        return ["SETRANGE", self.key(), self.pick("0", "1", "5", "100", "-1", "x", "9223372036854775807"), self.value()]

    def many(self) -> list[str]:
        return [self.pick("MGET", "DEL", "UNLINK", "EXISTS", "TOUCH"), *self.keys()]

    def mset(self) -> list[str]:
        return [self.pick("MSET", "MSET", "MSETNX"), *self.pairs()]

    def expire(self) -> list[str]:
        name = self.pick("EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT")
        number = self.random.choice(PAST_AND_FUTURE) if name.endswith("AT") else self.lifetime()
        return [name, self.key(), number, *self.options(["NX"], ["XX"], ["GT"], ["LT"], ["bad"], limit=2)]

    def rename(self) -> list[str]:
        return [self.pick("RENAME", "RENAMENX"), self.key(), self.key()]

    def copy(self) -> list[str]:
        return ["COPY", self.key(), self.key(), *self.options(["REPLACE"], ["DB", "0"], ["bad"], limit=2)]

    def all_keys(self) -> list[str]:
        return ["KEYS", self.random.choice(PATTERNS)]

    def scan(self) -> list[str]:
        return ["SCAN", "0", "COUNT", "1000", *self.options(["MATCH", self.random.choice(PATTERNS)], ["TYPE", "string"], ["bad"])]

    def connection(self) -> list[str]:
        return self.random.choice(
            [["PING"], ["PING", self.value()], ["ECHO", self.value()], ["CLIENT", "GETNAME"],
             ["CLIENT", "SETNAME", self.pick("worker", "two words", "")], ["SELECT", "0"], ["SELECT", "x"],
             ["AUTH", "default", "x"], ["AUTH", "other", "x"], ["AUTH", "x"], ["HELLO", "9"], ["HELLO", "x"],
             ["OBJECT", "REFCOUNT", "missing"], ["OBJECT", "ENCODING", "missing"], ["OBJECT", "nothing", "a"], ["FLUSHDB", "bad"],
             ["CLIENT", "NO-EVICT", "ON"], ["CLIENT", "SETNAME"], ["SLOWLOG", "LEN", "x"], ["SLOWLOG", "GET", "1", "2"],
             ["MODULE", "LIST"], ["SCRIPT", "FLUSH", "x"], ["FUNCTION", "FLUSH", self.pick("x", "sync")],
             ["MEMORY", "USAGE", "missing", *self.options(["SAMPLES", self.number()], ["x"])], ["nothing", self.value()], ["x" * 200, "y" * 300],
             ["LLEN", self.key()], ["LRANGE", self.key(), self.number(), self.number()], ["LINDEX", self.key(), self.number()]])

    def transaction(self) -> list[str]:
        return [self.pick("MULTI", "MULTI", "EXEC", "EXEC", "EXEC", "DISCARD", "UNWATCH")]

    def watch(self) -> list[str]:
        return ["WATCH", *self.keys()]

    def channel(self) -> list[str]:
        """Nobody publishes what a client here hears, so that the replies are the only thing that arrives."""
        name = self.pick("PUBLISH", "PUBLISH", "PUBSUB", "PUBSUB", "SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "RESET")
        if name == "PUBLISH":
            return ["PUBLISH", "unheard", self.value()]
        if name == "PUBSUB":
            return self.random.choice(
                [["PUBSUB", "NUMPAT"], ["PUBSUB", "NUMSUB", "heard", "x"], ["PUBSUB", "CHANNELS"], ["PUBSUB", "CHANNELS", "h*"],
                 ["PUBSUB", "nothing"], ["PUBSUB", "NUMSUB"]])
        if name in ("SUBSCRIBE", "UNSUBSCRIBE"):
            return [name, "heard"]
        return [name] if name == "RESET" else [name, "he*"]

    def flush(self) -> list[str]:
        return [self.pick("FLUSHDB", "FLUSHALL")] if self.random.random() < 0.1 else ["PING"]

    NAMES = (
        "set", "set", "simple", "simple", "expiry_of", "with_value", "with_number", "setex", "getex", "getrange", "setrange", "many",
        "mset", "expire", "expire", "rename", "copy", "all_keys", "scan", "connection", "transaction", "watch", "flush",
        "channel",
    )


def comparable(command: list[str], reply: bytes) -> bytes:
    """Returns a reply without what differs between two servers that do the same."""
    name = command[0].upper()
    if reply.startswith(b"-"):
        return error(reply)
    if name in ("KEYS", "SCAN") and reply[:1] in b"*~":
        return b"".join(sorted(reply.split(b"\r\n")))
    if name in ("HELLO", "SLOWLOG"):
        return reply[:1]
    if name == "EXEC":
        return b"".join(sorted(roughly(line) for line in reply.split(b"\r\n")))
    return reply


def roughly(line: bytes) -> bytes:
    """Returns a line without a number that may be a time."""
    return b":" if line.startswith(b":") and int(line[1:]) > 500 else line


def error(reply: bytes) -> bytes:
    # Redis has more subcommands.
    return b"-client" if b"CLIENT" in reply else reply


class Comparison:
    """A larderd and a redis-server, and what they were sent."""

    def __init__(self, server: str, folder: Path) -> None:
        self.larder_path, self.redis_path = str(folder / "larder.sock"), str(folder / "redis.sock")
        self.processes = [
            subprocess.Popen(
                [server, "--listen", f"resp+unix:{self.larder_path}", "--store", "test=memory", "--log-level", "error"]),
            subprocess.Popen(
                ["redis-server", "--port", "0", "--unixsocket", self.redis_path, "--save", "", "--dir", str(folder), "--databases",
                 "1", "--loglevel", "warning", "--logfile", str(folder / "redis.log")]),
        ]
        wait_until_ready(self.larder_path).close()
        wait_until_ready(self.redis_path).close()

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
            process.wait(timeout=10)

    def connect(self, version: int) -> list[RESPClient]:
        clients = [RESPClient(self.larder_path), RESPClient(self.redis_path)]
        for client in clients:
            client.call("FLUSHALL")
            if version == 3:
                client.call("HELLO", 3)
        return clients

    def difference(self, commands: list[list[str]], version: int, pipelined: int = 1) -> tuple[int, bytes, bytes] | None:
        """Sends commands to both. Returns the position of the first one whose replies differ, and these."""
        clients = self.connect(version)
        try:
            for start in range(0, len(commands), pipelined):
                batch = commands[start : start + pipelined]
                for client in clients:
                    client.socket.sendall(b"".join(client.encoded([word.encode() for word in command]) for command in batch))
                for offset, command in enumerate(batch):
                    replies = [client.reply() for client in clients]
                    # Redis queues some commands in transactions that Larder refuses there.
                    if b"not allowed in transactions" in replies[0]:
                        return None
                    # A watched key that is absent again has not changed for Larder.
                    if command[0].upper() == "EXEC" and replies[1] in (b"*-1\r\n", b"_\r\n") and replies[0][:1] == b"*":
                        return None
                    if comparable(command, replies[0]) != comparable(command, replies[1]) and not is_known(command, replies):
                        return start + offset, replies[0], replies[1]
        finally:
            for client in clients:
                client.close()
        return None

    def shortest(self, commands: list[list[str]], version: int) -> list[list[str]]:
        """Leaves out commands as long as there is a difference."""
        step = max(1, len(commands) // 2)
        while True:
            start = 0
            while start < len(commands):
                rest = commands[:start] + commands[start + step :]
                if rest and self.difference(rest, version):
                    commands = rest
                else:
                    start += step
            if step == 1:
                return commands
            step = max(1, step // 2)


def is_known(command: list[str], replies: list[bytes]) -> bool:
    """Whether a difference is documented, or none but that of two clocks."""
    if command[0].upper() in ("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME") and all(reply.startswith(b":") for reply in replies):
        ours, theirs = (int(reply[1:]) for reply in replies)
        return min(ours, theirs) > 0 and abs(ours - theirs) <= (2000 if command[0].upper().startswith("P") else 2)
    return False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--commands", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    if not shutil.which("redis-server"):
        raise SystemExit("this needs redis-server; install Debian's package redis-server")
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(arguments.server, Path(folder))
        try:
            count, round_number = 0, 0
            while count < arguments.commands:
                generator = Generator(arguments.seed + round_number)
                commands = [generator.command() for _ in range(200)]
                version, pipelined = generator.random.choice([2, 3]), generator.random.choice([1, 1, 20])
                if found := comparison.difference(commands, version, pipelined):
                    position, ours, theirs = found
                    print(f"seed {arguments.seed + round_number}: {commands[position]}: {ours!r}, but Redis says {theirs!r}")
                    for command in comparison.shortest(commands[: position + 1], version):
                        print("  ", command)
                    sys.exit(1)
                count += len(commands)
                round_number += 1
        finally:
            comparison.stop()
    print(f"{count} commands, no difference (seed {arguments.seed})")


if __name__ == "__main__":
    main()
