"""Runs the test suite of Redis, which is written in Tcl, on a server that speaks RESP.

    python3 resp_tcl.py --suite FOLDER --port PORT [--least 200]

FOLDER has the sources of Redis. A test that uses a command that the server lacks is skipped; the others that can't pass are in
SKIPPED, each with its reason. Every other failure fails.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile

UNITS = ["type/string", "type/incr", "expire", "keyspace", "scan", "multi", "protocol", "quit", "pubsub"]

SKIPPED = {
    "PEXPIREAT with big integer works": "an expiry is at most 2^53 milliseconds away",
    "COPY basic usage for skiplist sorted set": "changes a parameter of sorted sets",
    "COPY basic usage for hashtable hash": "changes a parameter of hashes",
    "MULTI and script timeout": "changes a parameter of scripts",
    "EXEC and script timeout": "changes a parameter of scripts",
    "MULTI-EXEC body and script timeout": "changes a parameter of scripts",
    "just EXEC and script timeout": "changes a parameter of scripts",
    "MULTI with config error": "queues CONFIG SET",
    "MULTI with config set appendonly": "queues CONFIG SET",
    "MULTI with BGREWRITEAOF": "queues BGREWRITEAOF",
    "MULTI with SAVE": "queues SAVE",
    "MULTI with SHUTDOWN": "queues SHUTDOWN",
    "PubSub messages with CLIENT REPLY OFF": "uses CLIENT REPLY",
    "Keyspace notifications: we can receive both kind of events": "uses CLIENT REPLY",
    "Keyspace notifications: we receive keyspace notifications": "uses CLIENT REPLY",
    "Keyspace notifications: we receive keyevent notifications": "uses CLIENT REPLY",
    "Keyspace notifications: we are able to mask events": "uses lists",
    "Keyspace notifications: evicted events": "changes a parameter of eviction",
    "Keyspace notifications: new key test": "expects events of new keys",
    "Keyspace notifications: list events test": "uses lists",
    "Keyspace notifications: set events test": "uses sets",
    "Keyspace notifications: zset events test": "uses sorted sets",
    "Keyspace notifications: hash events test": "uses hashes",
    "Keyspace notifications: stream events test": "uses streams",
}
# What the server tells if it lacks something that a test uses.
MISSING = re.compile(r"unknown (?:sub)?command '?([\w-]+)")
# Tests that look at the inside of Redis, or fill the server with DEBUG.
TAGS = "-needs:debug -needs:repl -needs:save -needs:config-maxmemory -needs:config-resetstat"


def run(suite: str, port: int, unit: str) -> str:
    """Runs the tests of a unit. Returns what it printed."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as skipped:
        skipped.write("".join(f"{name}\n" for name in SKIPPED))
        skipped.flush()
        process = subprocess.Popen(
            ["./runtest", "--host", "127.0.0.1", "--port", str(port), "--singledb", "--ignore-encoding", "--ignore-digest", "--tags",
             TAGS, "--skipfile", skipped.name, "--durable", "--single", f"unit/{unit}"],
            cwd=suite, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        try:
            output, _ = process.communicate(timeout=180)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0] + f"\n[exception]: {unit} takes longer than 180 seconds\n"
    return re.sub(r"\x1b\[[0-9;]*m", "", output)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--least", type=int, default=200)
    arguments = parser.parse_args()
    passed, lacking, ignored = 0, 0, 0
    failures: list[str] = []
    for unit in UNITS:
        output = run(arguments.suite, arguments.port, unit)
        count = len(re.findall(r"^\[ok\]", output, re.M))
        if not count:
            failures.append(f"{unit}: no test passed\n{output[-2000:]}")
        passed += count
        ignored += len(re.findall(r"^\[(?:ignore|skip)\]", output, re.M))
        for name, text in re.findall(r"^\[(?:err|exception)\]: (.*?)(?: in tests/.*?)?\n(.*?)(?=^\[|\Z)", output, re.M | re.S):
            if MISSING.search(text):
                lacking += 1
            else:
                failures.append(f"{unit}: {name}\n{text[:600]}")
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{passed} passed, {lacking} use commands that there are not, {ignored} skipped for a reason, {len(failures)} failed")
    if failures or passed < arguments.least:
        sys.exit(1)


if __name__ == "__main__":
    main()
