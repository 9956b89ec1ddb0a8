"""Sockets that larderd opens and hands to its service manager (this process), which keeps them across restarts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

from larder import Client, LarderError
from larder_wire import Operation, encode_hello
from service_case import Notices, ServiceCase


class DescriptorStore(Notices):
    """A service manager with a descriptor store."""

    def __init__(self, path: Path) -> None:
        self.kept: list[tuple[str, int]] = []
        super().__init__(path)

    def handle(self, fields: dict[str, str], descriptors: list[int]) -> None:
        if fields.get("FDSTORE") == "1":
            self.kept += [(fields["FDNAME"], descriptor) for descriptor in descriptors]
            return
        if fields.get("FDSTOREREMOVE") == "1":
            for kept in [kept for kept in self.kept if kept[0] == fields["FDNAME"]]:
                self.kept.remove(kept)
                os.close(kept[1])
        super().handle(fields, descriptors)


class StoreChecks(ServiceCase):
    def setUp(self) -> None:
        super().setUp()
        self.manager = DescriptorStore(self.folder / "notices")
        self.addCleanup(lambda: [os.close(descriptor) for _, descriptor in self.manager.kept])
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.addresses = [f"unix:{self.folder}/s", f"tcp:127.0.0.1:{probe.getsockname()[1]}"]

    def run_larderd(self, *options: str, size: int | None = 8) -> subprocess.Popen[bytes]:
        """Starts larderd with the stored descriptors, as systemd does, and waits until it is ready."""
        kept = list(self.manager.kept)
        # Move the descriptors to high numbers first, because their numbers may be among the target numbers.
        moves = [f"exec {100 + index}<&{descriptor}" for index, (_, descriptor) in enumerate(kept)]
        moves += [f"exec {3 + index}<&{100 + index} {100 + index}<&-" for index in range(len(kept))]
        environment = {**os.environ, "NOTIFY_SOCKET": str(self.manager.path)}
        if size is not None:
            environment["FDSTORE"] = str(size)
        if kept:
            moves.append(f"export LISTEN_PID=$$ LISTEN_FDS={len(kept)} LISTEN_FDNAMES={':'.join(name for name, _ in kept)}")
        script = "; ".join([*moves, 'exec "$0" "$@"'])
        command = ["bash", "-c", script, str(self.server), "--store=items=memory", *options]
        before = len(self.manager.all)
        with (self.folder / "log").open("w") as log:
            descriptors = [descriptor for _, descriptor in kept]
            process = subprocess.Popen(command, env=environment, stderr=log, pass_fds=descriptors)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        self.manager.wait_for("READY", "1", before)
        return process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=20), 0)

    def listening(self) -> list[str]:
        return [f"--listen={address}" for address in self.addresses]

    def test_no_client_is_refused_during_restarts(self) -> None:
        process = self.run_larderd(*self.listening())
        self.assertEqual(len(self.manager.kept), 2)
        names = {name for name, _ in self.manager.kept}
        inode = (self.folder / "s").stat().st_ino
        for _ in range(10):
            with Client(self.addresses[0]) as local, Client(self.addresses[1]) as remote:
                local.open("items").put("a", b"1")
                self.assertEqual(remote.open("items").count(), 1)
            self.stop(process)
            # Both send a hello while no server is running.
            waiting = []
            for address in self.addresses:
                rest = address.partition(":")[2]
                waiting.append(socket.socket(socket.AF_UNIX if address.startswith("unix:") else socket.AF_INET))
                waiting[-1].connect(rest if address.startswith("unix:") else ("127.0.0.1", int(rest.rpartition(":")[2])))
                hello = encode_hello(1, 1, 1, "early")
                waiting[-1].sendall((8 + len(hello)).to_bytes(4, "little") + bytes([Operation.hello, 0, 0, 0, 1, 0, 0, 0]) + hello)
            process = self.run_larderd(*self.listening())
            for client in waiting:
                client.settimeout(10)
                self.assertEqual(client.recv(5)[4], 0, "the reply to the hello must be done")
                client.close()
        self.assertEqual((self.folder / "s").stat().st_ino, inode)
        self.assertEqual(({name for name, _ in self.manager.kept}, len(self.manager.kept)), (names, 2))
        self.stop(process)

    def test_a_removed_address_is_closed(self) -> None:
        self.stop(self.run_larderd(*self.listening()))
        process = self.run_larderd(f"--listen={self.addresses[1]}")
        self.assertEqual(len(self.manager.kept), 1)
        self.assertFalse((self.folder / "s").exists())
        with Client(self.addresses[1]) as client:
            client.ping()
        self.stop(process)
        process = self.run_larderd(f"--listen={self.addresses[0]}")
        self.assertEqual(len(self.manager.kept), 1)
        with self.assertRaises(LarderError):
            Client(self.addresses[1])
        with Client(self.addresses[0]) as client:
            client.ping()

    def test_a_socket_whose_file_was_replaced_is_reopened(self) -> None:
        options = [self.listening()[0], "--socket-mode=600"]
        self.stop(self.run_larderd(*options))
        (name, _) = self.manager.kept[0]
        (self.folder / "s").rename(self.folder / "away")
        process = self.run_larderd(*options)
        self.assertEqual(len(self.manager.kept), 1)
        self.assertNotEqual(self.manager.kept[0][0], name)
        self.assertIn("closed a stored socket that is no longer used", (self.folder / "log").read_text())
        self.stop(process)
        process = self.run_larderd(self.listening()[0], "--socket-mode=640")
        self.assertEqual((self.folder / "s").stat().st_mode & 0o777, 0o640)
        with Client(self.addresses[0]) as client:
            client.ping()

    def test_without_a_descriptor_store_nothing_is_kept(self) -> None:
        for size in (None, 0):
            process = self.run_larderd(*self.listening(), size=size)
            self.stop(process)
            self.assertEqual(self.manager.kept, [])
            self.assertFalse((self.folder / "s").exists())
