"""Three etcd servers on this machine, and what they do in a second, as h2load sees it over gRPC."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from postgres import wait_for


def field(number: int, content: bytes) -> bytes:
    """Returns a field of a Protocol Buffers message. The content is shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def call(message: bytes) -> bytes:
    """Returns the body of a gRPC call."""
    return b"\0" + len(message).to_bytes(4, "big") + message


KEY = b"0123456789abcdef"
PUT = call(field(1, KEY) + field(2, b"x" * 100))
# Field 7, serializable: the reply need not be current.
GET = call(field(1, KEY) + bytes([7 << 3, 1]))


class Etcd:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="larder-etcd-", dir="/tmp"))
        probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(6)]
        ports = [probe.getsockname()[1] for probe in probes]
        for probe in probes:
            probe.close()
        peers = ",".join(f"etcd{number}=http://127.0.0.1:{port}" for number, port in enumerate(ports[3:]))
        self.ports = ports[:3]
        self.processes = []
        for number, (client, peer) in enumerate(zip(ports[:3], ports[3:])):
            command = [
                "etcd", f"--name=etcd{number}", f"--data-dir={self.folder}/{number}", f"--initial-cluster={peers}",
                f"--listen-client-urls=http://127.0.0.1:{client}", f"--advertise-client-urls=http://127.0.0.1:{client}",
                f"--listen-peer-urls=http://127.0.0.1:{peer}", f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            ]
            with (self.folder / f"log{number}").open("w") as log:
                self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        self.leader = None
        wait_for(self.finds_leader, 30, f"etcd does not start: see {self.folder}")

    def finds_leader(self) -> bool:
        leaders = [port for port in self.ports if self.metric(port, "etcd_server_is_leader") == 1]
        self.leader = leaders[0] if leaders else None
        return self.leader is not None

    def metric(self, port: int, name: str) -> float:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
                lines = response.read().decode().splitlines()
        except OSError:
            return 0
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    def run(self, method: str, body: bytes, clients: int, pipeline: int, seconds: float) -> float:
        """Returns the successful calls per second of clients of the leader."""
        file = self.folder / method
        file.write_bytes(body)
        handled = f'grpc_server_handled_total{{grpc_code="OK",grpc_method="{method}"'
        before, begun = self.metric(self.leader, handled), time.monotonic()
        command = [
            "h2load", "-c", clients, "-m", pipeline, "-t", "1", "-D", seconds, "-d", file, "-H", "content-type: application/grpc",
            "-H", "te: trailers", f"http://127.0.0.1:{self.leader}/etcdserverpb.KV/{method}",
        ]
        subprocess.run(list(map(str, command)), capture_output=True, check=True)
        ended = time.monotonic()
        return (self.metric(self.leader, handled) - before) / (ended - begun)

    def remove(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
