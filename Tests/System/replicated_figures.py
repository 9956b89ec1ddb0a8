"""Measures replicated stores beside PostgreSQL itself, which keeps their commits, and beside etcd.

    python3 replicated_figures.py --server PATH --bench PATH [--time SECONDS]

Larder and pgbench use the same database, in turn, which has two standbys and waits for one of them: larder-bench puts
100-byte values under random keys of 16 bytes, and pgbench upserts rows of the same size. etcd has three members; h2load
puts and gets one key of the same size at the leader.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from etcd import GET, PUT, Etcd
from larder import Client, LarderError
from larder_wire import Write
from postgres import Postgres, programs, wait_for
from server_process import Server

UPSERT = """\\set id random(1, 200000)
INSERT INTO kv VALUES (lpad(:id::text, 16, '0'), repeat('x', 100)) ON CONFLICT (k) DO UPDATE SET v = excluded.v;
"""


def larder_bench(options: argparse.Namespace, server: Server, workload: str, connections: int, pipeline: int, store: str) -> dict:
    command = [
        options.bench, "run", "--target", f"larder:{server.address}", "--workload", workload, "--connections", connections,
        "--pipeline", pipeline, "--duration", f"{options.time}s", "--store", store, "--no-load", "--json",
    ]
    return json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)


def pgbench(options: argparse.Namespace, postgres: Postgres, folder: Path, clients: int) -> tuple[float, float]:
    """Returns transactions per second, and the mean latency in milliseconds."""
    script = folder / "upsert.sql"
    script.write_text(UPSERT)
    command = [
        programs() / "pgbench", "-h", postgres.folder, "-U", "larder", "-n", "-M", "prepared", "-c", clients, "-j", min(clients, 2),
        "-T", options.time, "-f", script, "postgres",
    ]
    output = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout
    return float(re.search(r"tps = ([0-9.]+)", output).group(1)), float(re.search(r"latency average = ([0-9.]+)", output).group(1))


def create(server: Server, name: str) -> None:
    def creates() -> bool:
        try:
            with Client(server.address, timeout=30) as client:
                client.create(name, "replicated")
            return True
        except LarderError as error:
            return error.code is not None and error.code.name == "storeExists"

    wait_for(creates, 20, f"can't create a store: {server.log()}")


def cold_start(options: argparse.Namespace, postgres: Postgres, folder: Path, count: int) -> float:
    """Returns how long a server takes to serve a store of another one that was stopped, in seconds."""
    def start(name: str) -> Server:
        (folder / name).mkdir()
        return Server(options.server, folder / name, environment={
            "LARDERD_DATABASES": f"main={postgres.address}", "LARDERD_CLUSTER_NODE": name})

    first = start("first")
    first.wait_until_ready()
    create(first, "large")
    with Client(first.address, timeout=60) as client:
        store = client.open("large")
        for start_key in range(0, count, 10_000):
            store.put_many([Write(f"key-{number:012}", b"x" * 100) for number in range(start_key, start_key + 10_000)])
    first.process.terminate()
    first.process.wait()
    begun = time.monotonic()
    second = start("second")
    try:
        second.wait_until_ready()
        second.wait_for_store("large")
        return time.monotonic() - begun
    finally:
        second.process.terminate()
        second.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures replicated stores beside PostgreSQL.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--bench", metavar="PATH", type=Path, required=True, help="the larder-bench to run")
    parser.add_argument("--time", metavar="SECONDS", type=int, default=8, help="how long each measurement takes (default: 8)")
    options = parser.parse_args()
    options.server, options.bench = options.server.resolve(), options.bench.resolve()
    postgres = Postgres(shared_buffers="512MB", max_wal_size="8GB")
    etcd = Etcd()
    with tempfile.TemporaryDirectory(prefix="larder-figures-") as temporary:
        folder = Path(temporary)
        (folder / "server").mkdir()
        server = Server(options.server, folder / "server", environment={
            "LARDERD_DATABASES": f"main={postgres.address}", "LARDERD_CLUSTER_STORES": "bench"})
        try:
            postgres.add_standbys(2)
            server.wait_until_ready()
            create(server, "bench")
            postgres.query("CREATE TABLE kv (k text PRIMARY KEY, v text NOT NULL)")
            rows: list[tuple[str, str]] = []
            for clients, pipeline in ((50, 16), (50, 1), (1, 1)):
                before = postgres.query("SELECT pg_current_wal_lsn()")
                result = larder_bench(options, server, "put", clients, pipeline, "bench")
                wal = float(postgres.query(f"SELECT pg_current_wal_lsn() - '{before}'"))
                upserts, latency = pgbench(options, postgres, folder, clients)
                puts = result["requestsPerSecond"]
                rows.append((f"durable put, {clients} clients × {pipeline}", f"{puts:,.0f}/s"))
                rows.append((f"  pgbench, upserts by {clients} clients", f"{upserts:,.0f}/s, {latency:.2f} ms"))
                rows.append(("  Larder ÷ pgbench", f"{puts / upserts:.1f}"))
                etcd_puts = etcd.run("Put", PUT, clients, pipeline, options.time)
                rows.append((f"  etcd, {clients} clients × {pipeline}", f"{etcd_puts:,.0f}/s"))
                rows.append(("  Larder ÷ etcd", f"{puts / etcd_puts:.1f}"))
                rows.append(("  WAL per put, bytes", f"{wal / (puts * options.time):.0f}"))
            with Client(server.address) as client:
                client.create("memory", "memory")
            larder_bench(options, server, "put", 50, 16, "memory")
            rates = {"bench": [], "memory": []}
            for _ in range(3):
                for store, seen in rates.items():
                    seen.append(larder_bench(options, server, "get", 50, 1, store)["requestsPerSecond"])
            gets = {store: sorted(seen)[1] for store, seen in rates.items()}
            rows.append(("get, 50 clients", f"{gets['bench']:,.0f}/s"))
            rows.append(("  of a store in memory", f"{gets['memory']:,.0f}/s"))
            etcd_gets = sorted(etcd.run("Range", GET, 50, 1, options.time) for _ in range(3))[1]
            rows.append(("  etcd, serializable", f"{etcd_gets:,.0f}/s"))
            rows.append(("  Larder ÷ etcd", f"{gets['bench'] / etcd_gets:.1f}"))
            rows.append(("cold start of 1,000,000 entries", f"{cold_start(options, postgres, folder, 1_000_000):.1f} s"))
            for name, value in rows:
                print(f"{name:<45} {value}")
        finally:
            server.kill()
            etcd.remove()
            postgres.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
