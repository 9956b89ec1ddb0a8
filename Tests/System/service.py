"""Checks larderd as a service, from socket activation to shutdown.

    python3 service.py --server PATH

systemd-socket-activate passes two sockets, and this script plays the service manager that larderd notifies.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

from brief_case import BriefCase, run
from larder import Client, LarderError
from larder_wire import Write
from service_access import AccessChecks
from service_case import ServiceCase
from service_damage import DamageChecks
from service_start import StartChecks
from service_store import StoreChecks


class ServiceChecks(ServiceCase):
    def test_both_passed_sockets_are_served_and_kept(self) -> None:
        service = self.start()
        with service.client(0) as local, service.client(1) as remote:
            local.open("sessions").put("a", b"1")
            self.assertEqual(remote.open("sessions").get("a").value, b"1")
        ready = service.notices.wait_for("READY", "1")
        for address, name in zip(service.addresses, ("clients", "remote")):
            self.assertIn(address, ready["STATUS"])
            self.assertIn(f"listening address={address} name={name}", service.log())
        self.assertEqual(service.log().count("listening"), 2, "larderd must not listen on other sockets")
        self.assertEqual(service.stop(), 0)
        self.assertTrue((self.folder / "s").is_socket(), "larderd must not remove the file of a passed socket")

    def test_sockets_for_another_process_are_ignored(self) -> None:
        """A process whose PID is not LISTEN_PID ignores the sockets and listens at its own addresses."""
        environment = {**os.environ, "LISTEN_PID": "1", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a:b"}
        with (self.folder / "log").open("w") as log:
            process = subprocess.Popen([self.server, f"--listen=unix:{self.folder}/own"], env=environment, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + 10
        # The socket's file exists a moment before the socket listens.
        while True:
            try:
                with Client(f"unix:{self.folder}/own") as client:
                    client.ping()
                return
            except LarderError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.01)

    def test_metrics_are_served_on_the_socket_named_metrics(self) -> None:
        service = self.start(second="metrics")
        with service.client(0) as client:
            service.notices.wait_for("READY", "1")
            client.ping()
            address = service.addresses[1].replace("tcp:", "http://")
            with urllib.request.urlopen(f"{address}/readyz", timeout=5) as response:
                self.assertEqual(response.read(), b"ok\n")
        self.assertIn(f"serving metrics address={service.addresses[1]}", service.log())
        self.assertEqual(service.stop(), 0)

    def test_invalid_socket_variables_prevent_the_start(self) -> None:
        environment = {**os.environ, "LISTEN_PID": "me", "LISTEN_FDS": "2"}
        command = [str(self.server), f"--listen=unix:{self.folder}/own"]
        result = subprocess.run(command, env=environment, capture_output=True, timeout=10, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES don't say which sockets were passed", result.stderr)

    def test_a_passed_socket_that_does_not_listen_is_refused(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wrong:
            command = f'exec 3<&{wrong.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=odd exec "{self.server}"'
            result = subprocess.run(["bash", "-c", command], pass_fds=[wrong.fileno()], capture_output=True, timeout=10)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b'can\'t use the passed descriptor 3 ("odd"): it is not a stream socket', result.stderr)

    def test_ready_follows_the_replay_and_its_progress(self) -> None:
        service = self.start()
        with service.client() as client:
            store = client.open("orders")
            # Enough that the replay takes longer than the interval of reports, also on a fast machine.
            for number in range(150):
                store.put_many([Write(f"{number}:{index}", os.urandom(1_000)) for index in range(1_000)])
        service.notices.wait_for("READY", "1")
        self.assertEqual(service.stop(), 0)
        service = self.start()
        with service.client() as client:  # The connection waited during the replay.
            self.assertEqual(client.open("orders").count(), 150_000)
        service.notices.wait_for("READY", "1")
        notices = [fields for _, fields in service.notices.all]
        ready = next(index for index, fields in enumerate(notices) if "READY" in fields)
        opening = [fields for fields in notices[:ready] if fields["STATUS"].startswith("opening orders: ")]
        self.assertEqual(opening, notices[:ready])
        percents = [int(re.search(r": (\d+)% read$", fields["STATUS"]).group(1)) for fields in opening]
        self.assertEqual(percents, sorted(percents))
        self.assertGreater(percents[-1], 0, f"no progress was reported: {percents}")
        for fields in opening:
            self.assertGreaterEqual(int(fields["EXTEND_TIMEOUT_USEC"]), 10_000_000)
        self.assertIn("opened a store store=orders entries=150000", service.log())

    def test_reload(self) -> None:
        service = self.start()
        with service.client() as client:
            service.notices.wait_for("READY", "1")
            text = service.configuration.read_text()
            service.configuration.write_text(text + "- invoices=log\nlimits:\n  connections: 2\n")
            count_before, began = len(service.notices.all), time.clock_gettime(time.CLOCK_MONOTONIC)
            ready = service.reload()
            reloading = service.notices.wait_for("RELOADING", "1", count_before)
            ended = time.clock_gettime(time.CLOCK_MONOTONIC)
            self.assertTrue(began <= int(reloading["MONOTONIC_USEC"]) / 1e6 + 1e-3 <= ended + 1e-3)
            self.assertTrue(ready["STATUS"].startswith("serving on "))
            self.assertEqual({store.name for store in client.stores()}, {"sessions", "orders", "invoices"})
            self.assertIn('reloaded the configuration changed="stores, limits.connections"', service.log())
            with service.client(1) as second:
                second.ping()
                with self.assertRaises(LarderError):
                    service.client()

    def test_a_reload_with_errors_changes_nothing(self) -> None:
        service = self.start()
        with service.client() as client:
            service.notices.wait_for("READY", "1")
            text = service.configuration.read_text()
            for wrong, complaint in (
                ("- new=memory\nlimits:\n  conections: 2\n", "did you mean limits.connections?"),
                ("- new=memory\n- sessions=log\n", '"sessions" occurs twice'),
                ("- new=memory\n- nothing=tape\n", 'there is no engine "tape"'),
            ):
                service.configuration.write_text(text + wrong)
                self.assertIn(complaint, service.reload()["STATUS"])
                self.assertEqual({store.name for store in client.stores()}, {"sessions", "orders"})
            # This error is found only while the stores are created, and the first one is valid.
            service.configuration.write_text(text.replace("sessions=memory", "first=memory\n- sessions=log"))
            self.assertIn('there is a store "sessions" already', service.reload()["STATUS"])
            self.assertEqual({store.name for store in client.stores()}, {"sessions", "orders"})
            service.configuration.write_text(text.replace("workers: 2", "workers: 3"))
            self.assertIn("a restart is needed for workers", service.reload()["STATUS"])

    def test_watchdog(self) -> None:
        service = self.start(watchdog=0.4)
        with service.client() as client:
            service.notices.wait_for("WATCHDOG", "1")
            time.sleep(2)
            client.ping()
        times = [when for when, fields in service.notices.all if "WATCHDOG" in fields]
        self.assertGreaterEqual(len(times), 7)
        gaps = [later - earlier for earlier, later in zip(times, times[1:])]
        self.assertLess(max(gaps), 0.4, f"{gaps}")
        self.assertGreater(sum(gaps) / len(gaps), 0.15, f"{gaps}")

    def test_stop(self) -> None:
        service = self.start()
        with service.client() as client:
            service.notices.wait_for("READY", "1")
            client.open("orders").put("kept", b"1")
            self.assertEqual(service.stop(), 0)
        last = service.notices.all[-1][1]
        self.assertEqual(last["STOPPING"], "1")
        self.assertRegex(service.log(), r"larderd: stopping\n.*larderd: stopped\n")

    def test_an_invalid_configuration_is_reported_with_its_status(self) -> None:
        (self.folder / "data").write_text("a file")
        service = self.start()
        with socket.create_connection(("127.0.0.1", int(service.addresses[1].rsplit(":", 1)[1]))):
            self.assertEqual(service.process.wait(timeout=10), 78)
        self.assertIn("is not a folder", service.notices.wait_for("STATUS")["STATUS"])
        self.assertIn("is not a folder, and links are not followed", service.log())

    def test_a_failed_start_reports_its_reason(self) -> None:
        (self.folder / "data").mkdir()
        (self.folder / "data" / "stores").write_text("a file")
        service = self.start()
        with socket.create_connection(("127.0.0.1", int(service.addresses[1].rsplit(":", 1)[1]))):
            self.assertEqual(service.process.wait(timeout=10), 1)
        self.assertIn("this is not a folder", service.notices.wait_for("STATUS")["STATUS"])
        self.assertIn("larderd: error: can't start:", service.log())


class JournalChecks(BriefCase):
    """The format of the log when standard error is connected to the journal."""

    server: Path

    def log(self, *before: str) -> str:
        """Returns what larderd with an invalid configuration writes to standard error, a simulated journal."""
        reader, writer = os.pipe()
        status = os.fstat(writer)
        environment = {**os.environ, "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        command = [*before, str(self.server), "--listen=unix:/nowhere/s"]
        subprocess.run(command, env=environment, stderr=writer, timeout=20, check=False)
        os.close(writer)
        with os.fdopen(reader) as text:
            return text.read()

    def test_lines_have_a_priority_if_the_journal_is_unreachable(self) -> None:
        hidden = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh"]
        self.skip_unless_possible(hidden)
        self.assertTrue(self.log(*hidden).startswith("<3>can't start: "))

    def test_the_journal_receives_fields(self) -> None:
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
            journal.bind(f"{folder}/socket")
            os.chmod(f"{folder}/socket", 0o666)
            mount = 'mkdir -p /run/systemd/journal && mount --bind "$0" /run/systemd/journal && exec "$@"'
            private = ["unshare", "--map-root-user", "--mount", "sh", "-c", f"mount -t tmpfs none /run/systemd && {mount}", folder]
            self.skip_unless_possible(private)
            self.assertEqual(self.log(*private), "", "larderd must write nothing to standard error itself")
            journal.settimeout(5)
            fields = dict(line.split(b"=", 1) for line in journal.recv(65_536).splitlines() if b"=" in line)
        self.assertTrue(fields[b"MESSAGE"].startswith(b"can't start: "))
        self.assertEqual(fields[b"PRIORITY"], b"3")
        self.assertEqual(fields[b"SYSLOG_IDENTIFIER"], b"larderd")

    def skip_unless_possible(self, before: list[str]) -> None:
        if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
            self.skipTest("this machine does not allow mounts in a namespace")


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks larderd as a service.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    ServiceCase.server = JournalChecks.server = parser.parse_args().server.resolve()
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    passed, failed = run(unittest.TestSuite([load(ServiceChecks), load(AccessChecks), load(StoreChecks), load(DamageChecks), load(StartChecks), load(JournalChecks)]))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
