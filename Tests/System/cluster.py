"""Shows a cluster on this machine: three larderds, and three PostgreSQL servers under Patroni with a synchronous standby.

    python3 cluster.py --server PATH --larder PATH --patroni PATH [--once]

It loads the package database, writes all the time, kills the larderd that leads the store, then the machine of the
database's primary, and checks that nothing acknowledged is lost. Without --once, the cluster then runs until Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from larder import Client, LarderError
from larder_wire import Write
from postgres import programs, wait_for

STORE = "packages"


def free_ports(count: int) -> list[int]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def say(text: str) -> None:
    print(text, flush=True)


class Process:
    """A process and everything that it starts, which are the machine that it runs on."""

    def __init__(self, name: str, folder: Path, command: list[str], user: str | None = None) -> None:
        self.log = folder / f"{name}.log"
        if user and os.geteuid() == 0:
            command = ["runuser", "-u", user, "--", *command]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", start_new_session=True)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        for process in {self.process.pid, *descendants(self.process.pid)}:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass
        self.process.wait()


def descendants(process: int) -> list[int]:
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    children = [int(child) for child in listing.stdout.split()]
    return children + [found for child in children for found in descendants(child)]


class Databases:
    """Three PostgreSQL servers under Patroni, and the etcd that it agrees with."""

    def __init__(self, folder: Path, patroni: Path) -> None:
        self.folder = folder
        client, peer, *ports = free_ports(8)
        self.names = ["db1", "db2", "db3"]
        self.ports = dict(zip(self.names, ports[:3]))
        self.apis = dict(zip(self.names, ports[3:]))
        urls = {"client": f"http://127.0.0.1:{client}", "peer": f"http://127.0.0.1:{peer}"}
        self.etcd = Process(
            "etcd", folder,
            [
                "etcd", f"--data-dir={folder}/etcd", "--name=etcd", f"--listen-client-urls={urls['client']}",
                f"--advertise-client-urls={urls['client']}", f"--listen-peer-urls={urls['peer']}",
                f"--initial-advertise-peer-urls={urls['peer']}", f"--initial-cluster=etcd={urls['peer']}",
            ])
        self.machines = {}
        for name in self.names:
            settings = folder / f"{name}.yaml"
            settings.write_text(json.dumps(self.settings(name, client)))
            self.machines[name] = Process(name, folder, [str(patroni), str(settings)], user="postgres")
        wait_for(lambda: self.primary() and self.has_standby(), 120, f"the database does not start: see {folder}")
        self.query("CREATE ROLE larder LOGIN")
        self.query("CREATE DATABASE larder OWNER larder")

    def settings(self, name: str, etcd: int) -> dict:
        local = ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
        return {
            "scope": "larder", "name": name,
            "restapi": {"listen": f"127.0.0.1:{self.apis[name]}", "connect_address": f"127.0.0.1:{self.apis[name]}"},
            "etcd3": {"host": f"127.0.0.1:{etcd}"},
            "bootstrap": {
                "dcs": {
                    "ttl": 20, "loop_wait": 2, "retry_timeout": 5, "synchronous_mode": True, "synchronous_mode_strict": True,
                    "postgresql": {"use_pg_rewind": False, "parameters": {"max_connections": 60}},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.ports[name]}", "connect_address": f"127.0.0.1:{self.ports[name]}",
                "data_dir": f"{self.folder}/{name}", "bin_dir": str(programs()), "pg_hba": local,
                "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "replicator"}},
                "parameters": {"unix_socket_directories": str(self.folder), "shared_buffers": "32MB"},
            },
        }

    @property
    def address(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        return f"postgresql://larder@{hosts}/larder?connect_timeout=2"

    def members(self) -> list[dict]:
        for port in self.apis.values():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/cluster", timeout=2) as response:
                    return json.load(response)["members"]
            except OSError:
                continue
        return []

    def primary(self) -> str | None:
        found = [member["name"] for member in self.members() if member["role"] == "leader" and member["state"] == "running"]
        return found[0] if found else None

    def has_standby(self) -> bool:
        return any(member["role"] == "sync_standby" for member in self.members())

    def query(self, sql: str) -> str:
        name = self.primary()
        assert name
        command = [programs() / "psql", "-h", "127.0.0.1", "-p", str(self.ports[name]), "-U", "postgres", "-XAtc", sql, "postgres"]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    def kill(self, name: str) -> None:
        """Ends everything on a machine: Patroni, and the server that it has started, which is on its own."""
        processes = [self.machines[name].process.pid]
        try:
            processes.append(int((self.folder / name / "postmaster.pid").read_text().split("\n", 1)[0]))
        except (OSError, ValueError):
            pass
        for process in [found for process in processes for found in (*descendants(process), process)]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.machines[name].process.wait()

    def end(self) -> None:
        for name in self.machines:
            self.kill(name)
        self.etcd.end()


class Servers:
    """Three larderds."""

    def __init__(self, folder: Path, program: Path, database: str) -> None:
        self.addresses = {name: f"unix:{folder}/{name}" for name in ("kitchen", "pantry", "cellar")}
        self.machines = {}
        for name, address in self.addresses.items():
            settings = folder / f"{name}.yaml"
            settings.write_text(
                json.dumps(
                    {
                        "listen": [address], "databases": [f"main={database}"], "cluster.node": name,
                        "cluster.require-standby": True,
                    }))
            self.machines[name] = Process(name, folder, [str(program), f"--config={settings}"])
            wait_for(lambda: self.answers(name), 30, f"{name} does not start: {self.machines[name].log.read_text()}")

    def answers(self, name: str) -> bool:
        try:
            Client(self.addresses[name]).close()
            return True
        except LarderError:
            return False

    def leader(self) -> str | None:
        """Returns the leader of the store as the first server that lives knows it, which `larder` asks, too."""
        for address in self.addresses.values():
            with contextlib.suppress(LarderError), Client(address) as client:
                leaders = [store.get("leader") for database in client.cluster() for store in database["stores"] if store["name"] == STORE]
                return leaders[0] if leaders else None
        return None

    def end(self) -> None:
        for machine in self.machines.values():
            machine.end(signal.SIGTERM)


class Writer(threading.Thread):
    """Writes numbered entries, and looks for the server that serves the store whenever that is necessary."""

    def __init__(self, addresses: list[str]) -> None:
        super().__init__(daemon=True)
        self.addresses, self.acknowledged, self.times = addresses, 0, [time.monotonic()]
        self.ends = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.ends.is_set():
            for address in self.addresses:
                try:
                    with Client(address, timeout=5) as client:
                        store = client.open(STORE)
                        while not self.ends.is_set():
                            number = self.acknowledged + 1
                            store.put(f"write-{number:08}", str(number).encode())
                            self.acknowledged = number
                            self.times.append(time.monotonic())
                except LarderError:
                    continue
            time.sleep(0.02)

    def longest_pause(self, since: float) -> float:
        times = [since, *(moment for moment in self.times if moment >= since)]
        return max(later - earlier for earlier, later in zip(times, times[1:]))


def packages() -> list[tuple[str, bytes]]:
    listing = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Version}\n"], capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in listing.stdout.splitlines()]
    return [(name, json.dumps({"name": name, "version": version}).encode()) for name, version in rows]


def check(store, data: list[tuple[str, bytes]], acknowledged: int) -> None:
    """Checks that everything that was acknowledged is there."""
    expected = [*data, *((f"write-{number:08}", str(number).encode()) for number in range(1, acknowledged + 1))]
    for start in range(0, len(expected), 1_000):
        part = expected[start : start + 1_000]
        for (key, value), entry in zip(part, store.get_many(key for key, _ in part)):
            if entry is None or entry.value != value:
                raise SystemExit(f"LOST: {key}")


def story(options: argparse.Namespace, folder: Path, cleanups: list[Callable[[], None]]) -> None:
    say("starting etcd, and three PostgreSQL servers under Patroni ...")
    databases = Databases(folder, options.patroni)
    cleanups.append(databases.end)
    say("starting three larderds ...")
    servers = Servers(folder, options.server, databases.address)
    cleanups.append(servers.end)
    addresses = list(servers.addresses.values())

    def larder(*arguments: str) -> None:
        say(f"\n$ larder {' '.join(arguments)}")
        command = [str(options.larder), "--server", ",".join(addresses), *arguments]
        shown = ["script", "-qec", " ".join(command), "/dev/null"] if arguments == ("cluster",) else command
        subprocess.run(shown, check=True, timeout=60, stdin=subprocess.DEVNULL)

    def creates() -> bool:
        try:
            with Client(addresses[0], timeout=10) as client:
                client.create(STORE, "replicated")
            return True
        except LarderError:
            return servers.leader() is not None

    wait_for(creates, 60, f"no store can be created: {servers.machines['kitchen'].log.read_text()}")
    wait_for(lambda: servers.leader() is not None, 10, "nobody serves the store")
    data = packages()
    with Client(addresses[0]) as client:
        client.open(STORE).put_many([Write(key, value) for key, value in data])
    say(f"loaded {len(data):,} packages, and writing one entry after the other from now on")
    larder("cluster")
    writer = Writer(addresses)
    wait_for(lambda: writer.acknowledged > 500, 30, "no writes")

    def survive(what: str, kill: Callable[[], None]) -> None:
        killed = time.monotonic()
        say(f"\nafter {writer.acknowledged:,} writes: {what}")
        kill()
        # What was written until the process ended doesn't show that writes go on.
        before = writer.acknowledged
        wait_for(lambda: writer.acknowledged > before + 200, 90, f"writes don't go on: see {folder}")
        say(f"writes went on after {writer.longest_pause(killed):.1f} s; {writer.acknowledged:,} are acknowledged")

    leader = servers.leader()
    assert leader
    survive(f"killing {leader}, which serves the store (its lease is 3 s)", servers.machines[leader].end)
    wait_for(lambda: servers.leader() not in (None, leader), 10, "nobody serves the store")
    larder("cluster")
    wait_for(databases.has_standby, 60, "there is no standby")
    primary = databases.primary()
    assert primary
    survive(f"killing the machine of {primary}, the database's primary (Patroni waits 20 s)", lambda: databases.kill(primary))
    writer.ends.set()
    writer.join()
    # The servers may still be connecting to the new primary.
    wait_for(lambda: servers.leader() is not None, 30, "nobody serves the store")
    final = servers.leader()
    assert final
    wait_for(lambda: servers.answers(final), 10, "the leader is gone")
    with Client(servers.addresses[final], timeout=30) as client:
        check(client.open(STORE), data, writer.acknowledged)
    say(f"\nall {len(data):,} packages and {writer.acknowledged:,} acknowledged writes are there")
    if not options.once:
        say(f"\nThe servers are at {', '.join(addresses)}. Ctrl-C ends them.")
        signal.pause()


def main() -> int:
    parser = argparse.ArgumentParser(description="Shows a cluster that survives the death of its machines.")
    parser.add_argument("--server", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--larder", type=Path, required=True, help="the larder to run")
    parser.add_argument("--patroni", type=Path, required=True, help="the Patroni to start")
    parser.add_argument("--once", action="store_true", help="end after the story")
    options = parser.parse_args()
    for name in ("server", "larder", "patroni"):
        setattr(options, name, getattr(options, name).absolute())
    folder = Path(tempfile.mkdtemp(prefix="larder-cluster-", dir="/tmp"))
    folder.chmod(0o777)
    cleanups: list[Callable[[], None]] = []
    succeeded = False
    try:
        story(options, folder, cleanups)
        succeeded = True
    except KeyboardInterrupt:
        succeeded = True
    finally:
        for cleanup in reversed(cleanups):
            cleanup()
        if succeeded:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
