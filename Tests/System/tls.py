"""Checks larderd's TLS with other programs: OpenSSL, GnuTLS, Python and redis-cli, and with the commands of Larder.

    python3 tls.py --server PATH --larder PATH [--connections N]

Certificates are made by contrib/certificates.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from brief_case import BriefCase, run
from larder import Client, LarderError
from larder_wire import Code

CERTIFICATES = Path(__file__).parents[2] / "contrib/certificates"


class Authority:
    """An authority of contrib/certificates, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.make("authority")

    def make(self, action: str, *arguments: str) -> None:
        command = [CERTIFICATES, action, self.folder, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)

    def file(self, name: str) -> Path:
        return self.folder / name

    def context(self, client: str | None = None) -> ssl.SSLContext:
        """What a client needs: whom to trust, and its certificate."""
        context = ssl.create_default_context(cafile=self.file("ca.pem"))
        if client:
            context.load_cert_chain(self.file(f"{client}.pem"), self.file(f"{client}-key.pem"))
        return context


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class TLSCase(BriefCase):
    """A server with certificates of its own, which each test may change."""

    program: Path
    command: Path
    # The number of connections that must leak nothing.
    connections: int

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="larder-tls-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.authority = Authority(self.folder / "ca")
        self.authority.make("server", "localhost", "127.0.0.1")
        self.authority.make("client", "web.example")
        self.authority.make("client", "audit.example")
        self.port, self.redis_port = free_port(), free_port()
        self.address = f"tls:127.0.0.1:{self.port}"
        self.configuration = self.folder / "larderd.yaml"
        self.configure()
        self.log_path = self.folder / "log"
        self.start()

    def configure(self, **more: str) -> None:
        settings = {"client-authorities": self.authority.file("ca.pem"), **more}
        lines = [f"  {key}: {value}" for key, value in settings.items()]
        self.configuration.write_text(
            f"listen: [tls:127.0.0.1:{self.port}, resps:127.0.0.1:{self.redis_port}]\n"
            "stores: [items=memory]\n"
            "access: [principal:web.example=write, principal:audit.example=read, tls=read@resps]\n".replace(
                "resps]", f"tls:127.0.0.1:{self.redis_port}]")
            + f"tls:\n  certificates: [{self.authority.file('server.pem')}]\n"
            f"  keys: [{self.authority.file('server-key.pem')}]\n" + "\n".join(lines) + "\n")

    def start(self) -> None:
        with open(self.log_path, "wb") as log:
            command = [self.program, "--config", self.configuration]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.addCleanup(self.stop)
        self.wait_for("listening")

    def stop(self) -> None:
        self.process.terminate()
        self.assertEqual(self.process.wait(10), 0, self.log())

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def wait_for(self, text: str, count: int = 1) -> None:
        """Waits until the log has a text."""
        deadline = time.monotonic() + 10
        while self.log().count(text) < count:
            self.assertLess(time.monotonic(), deadline, f"no {text!r} in the log:\n{self.log()}")
            self.assertIsNone(self.process.poll(), self.log())
            time.sleep(0.01)

    def reload(self, expected: str) -> None:
        count = self.log().count(expected)
        self.process.send_signal(signal.SIGHUP)
        self.wait_for(expected, count + 1)

    def connect(self, client: str | None = "web.example") -> Client:
        connected = Client(self.address, tls=self.authority.context(client))
        self.addCleanup(connected.close)
        return connected

    def run_program(self, *command: str | Path, input: bytes = b"") -> str:
        done = subprocess.run(command, input=input, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
        return done.stdout.decode(errors="replace")

    def s_client(self, port: int, *options: str, input: bytes = b"") -> str:
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", str(self.authority.file("ca.pem"))]
        return self.run_program(*command, *options, input=input)


class CommandTests(TLSCase):
    def larder(self, *arguments: str, client: str | None = "web.example") -> tuple[int, str]:
        options = ["--server", self.address.replace("127.0.0.1", "localhost"), "--tls-ca", self.authority.file("ca.pem")]
        if client:
            options += ["--tls-cert", self.authority.file(f"{client}.pem")]
            options += ["--tls-key", self.authority.file(f"{client}-key.pem")]
        done = subprocess.run(
            [self.command, *options, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
        return done.returncode, done.stdout.decode()

    def test_rights_of_principals(self) -> None:
        self.assertEqual(self.larder("put", "items", "a", "hello"), (0, "1\n"))
        self.assertEqual(self.larder("get", "items", "a", client="audit.example"), (0, "hello"))
        status, output = self.larder("put", "items", "a", "no", client="audit.example")
        self.assertEqual(status, 3, output)
        self.assertIn("principal audit.example may not write to store items", output)
        status, output = self.larder("get", "items", "a", client=None)
        self.assertEqual(status, 3, output)
        self.assertIn("a TLS client may not use this server", output)

    def test_environment(self) -> None:
        environment = {
            **os.environ, "LARDER_SERVER": self.address, "LARDER_TLS_CA": str(self.authority.file("ca.pem")),
            "LARDER_TLS_CERT": str(self.authority.file("web.example.pem")),
            "LARDER_TLS_KEY": str(self.authority.file("web.example-key.pem")),
        }
        done = subprocess.run([self.command, "put", "items", "a", "b"], env=environment, stdout=subprocess.PIPE, timeout=20)
        self.assertEqual((done.returncode, done.stdout), (0, b"1\n"))

    def test_server_that_is_not_trusted(self) -> None:
        done = subprocess.run(
            [self.command, "--server", self.address, "get", "items", "a"], stderr=subprocess.PIPE, timeout=20)
        self.assertEqual(done.returncode, 4)
        self.assertIn(b"the server's certificate is not accepted: unable to get local issuer certificate", done.stderr)
        done = subprocess.run(
            [self.command, "--server", self.address, "--tls-ca", "/nowhere/ca.pem", "ping"], stderr=subprocess.PIPE, timeout=20)
        self.assertEqual((done.returncode, done.stderr), (2, b"larder: /nowhere/ca.pem: can't be read: No such file or directory\n"))


class ConfigurationTests(TLSCase):
    def test_check(self) -> None:
        """Files that don't fit together are found before the server starts with them."""
        check = [self.program, "config", "check", self.configuration]
        self.assertIn("is valid", self.run_program(*check))
        self.authority.file("server-key.pem").write_bytes(self.authority.file("web.example-key.pem").read_bytes())
        done = subprocess.run(check, stderr=subprocess.PIPE, timeout=20)
        self.assertEqual(done.returncode, 78)
        self.assertIn(b"is not the key of the first certificate in", done.stderr)


class ForeignPeers(TLSCase):
    def test_python(self) -> None:
        client = self.connect()
        store = client.open("items")
        store.put("key", b"value" * 10_000)
        self.assertEqual(store.get("key").value, b"value" * 10_000)
        large = os.urandom(3_000_000)
        store.put("large", large)
        self.assertEqual(store.get("large").value, large)

    def test_openssl(self) -> None:
        output = self.s_client(self.port, "-alpn", "larder/1", "-verify_return_error")
        for expected in ("Protocol: TLSv1.3", "ALPN protocol: larder/1", "Verify return code: 0 (ok)"):
            self.assertIn(expected.removeprefix("Protocol: "), output)
        self.assertNotIn("Post-Handshake New Session Ticket", output)

    def test_protocol_must_be_named(self) -> None:
        for options in ((), ("-alpn", "http/1.1")):
            self.assertIn("no application protocol", self.s_client(self.port, *options))

    def test_older_versions_are_refused(self) -> None:
        for version in ("-tls1_2", "-tls1_1", "-tls1"):
            output = self.s_client(self.redis_port, version, "-cipher", "ALL:@SECLEVEL=0")
            self.assertIn("alert protocol version", output)

    def test_gnutls(self) -> None:
        output = self.run_program(
            "gnutls-cli", "--x509cafile", self.authority.file("ca.pem"), "--port", str(self.redis_port), "127.0.0.1",
            input=b"PING\r\n")
        self.assertIn("(TLS1.3-", output)
        self.assertIn("+PONG", output)

    def test_redis_cli(self) -> None:
        def redis(*arguments: str) -> str:
            return self.run_program(
                "redis-cli", "-p", str(self.redis_port), "--tls", "--cacert", self.authority.file("ca.pem"), *arguments)

        web = ("--cert", str(self.authority.file("web.example.pem")), "--key", str(self.authority.file("web.example-key.pem")))
        self.assertEqual(redis(*web, "set", "a", "1"), "OK\n")
        self.assertEqual(redis("get", "a"), "1\n")
        self.assertIn("NOPERM", redis("set", "a", "2"))

    def test_connections_of_a_principal_in_redis_protocol(self) -> None:
        with self.configuration.open("a") as file:
            file.write("limits:\n  client-connections: 1\n")
        self.reload("reloaded the configuration")

        def connect(host: str) -> ssl.SSLSocket:
            connected = socket.create_connection(("127.0.0.1", self.redis_port), 5, source_address=(host, 0))
            return self.authority.context("web.example").wrap_socket(connected, server_hostname="127.0.0.1")

        with connect("127.0.0.1") as first, connect("127.0.0.2") as second:
            self.assertEqual(second.recv(100), b"-ERR max number of clients reached\r\n")
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(second.recv(100), b"")
            first.sendall(b"PING\r\n")
            self.assertEqual(first.recv(100), b"+PONG\r\n")

    def test_plain_text_is_refused(self) -> None:
        with socket.create_connection(("127.0.0.1", self.redis_port), 5) as connected:
            connected.sendall(b"PING\r\n")
            self.assertNotIn(b"PONG", connected.recv(100))
        self.wait_for("refused a client")


class ReloadTests(TLSCase):
    def serial(self) -> str:
        context = self.authority.context("web.example")
        with socket.create_connection(("127.0.0.1", self.redis_port), 5) as connected:
            with context.wrap_socket(connected, server_hostname="127.0.0.1") as wrapped:
                return str(wrapped.getpeercert()["serialNumber"])

    def test_new_certificate(self) -> None:
        client, before = self.connect(), self.serial()
        self.authority.make("server", "127.0.0.1")
        self.reload("new connections use the new certificates")
        self.assertNotEqual(self.serial(), before)
        client.ping()
        # Nothing has changed.
        count = self.log().count("new connections use")
        self.reload("reloaded the configuration")
        self.assertEqual(self.log().count("new connections use"), count)

    def test_files_that_do_not_fit_change_nothing(self) -> None:
        before = self.serial()
        key = self.authority.file("server-key.pem")
        good = key.read_bytes()
        for bad in (self.authority.file("web.example-key.pem").read_bytes(), b"", good[:-40]):
            key.write_bytes(bad)
            self.reload("the configuration was not reloaded")
            self.assertEqual(self.serial(), before)
        key.unlink()
        self.reload("can't be read: No such file or directory")
        # A key that everyone may read is refused.
        key.touch(mode=0o600)
        key.write_bytes(good)
        self.reload("reloaded the configuration")

    def test_invalid_settings_change_nothing(self) -> None:
        before, text = self.serial(), self.configuration.read_text()
        self.authority.make("server", "127.0.0.1")
        self.configuration.write_text(text.replace("principal:web.example=write", "principal:web.example=write@nowhere"))
        self.reload("the configuration was not reloaded")
        self.assertEqual(self.serial(), before)
        self.configuration.write_text(text.split("\ntls:")[0] + "\n")
        self.reload("the configuration was not reloaded")
        self.assertEqual(self.serial(), before)

    def test_revoked_certificates(self) -> None:
        client, other = self.connect(), self.connect("audit.example")
        self.authority.make("revoke", str(self.authority.file("web.example.pem")))
        self.configure(revocations=str(self.authority.file("revoked.pem")))
        self.reload("reloaded the configuration")
        with self.assertRaises(LarderError) as raised:
            client.ping()
        self.assertEqual(raised.exception.code, Code.notPermitted)
        other.ping()
        with self.assertRaises(LarderError) as raised:
            self.connect()
        self.assertIn("revoked", str(raised.exception).lower())
        self.wait_for("the client's certificate is not accepted: certificate revoked")

    def test_removed_rules(self) -> None:
        client, other = self.connect(), self.connect("audit.example")
        text = self.configuration.read_text().replace("principal:web.example=write, ", "")
        self.configuration.write_text(text)
        self.reload("reloaded the configuration")
        with self.assertRaises(LarderError):
            client.ping()
        other.ping()

    def test_required_certificates(self) -> None:
        self.configure(**{"client-certificates": "required"})
        self.reload("reloaded the configuration")
        with self.assertRaises((LarderError, OSError)):
            self.connect(None)
        self.connect().ping()
        self.wait_for("the client has shown no certificate")

    def test_reload_under_handshakes(self) -> None:
        failures: list[str] = []
        ends = threading.Event()

        def shake() -> None:
            while not ends.is_set():
                try:
                    self.serial()
                except (OSError, ValueError) as error:
                    failures.append(repr(error))

        threads = [threading.Thread(target=shake) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            self.authority.make("server", "127.0.0.1")
            self.reload("new connections use the new certificates")
        ends.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class TokenTests(TLSCase):
    def token(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self.command, "token", arguments[0], "--file", self.folder / "tokens", *arguments[1:]]
        return subprocess.run(command, capture_output=True, text=True, timeout=20)

    def test_life_of_a_token(self) -> None:
        created = self.token("create", "job")
        self.assertEqual(created.returncode, 0, created.stderr)
        token = created.stdout.strip()
        self.assertRegex(token, "^ldr_[0-9A-Za-z]{49}$")
        self.assertNotIn(token, (self.folder / "tokens").read_text())
        self.assertEqual((self.folder / "tokens").stat().st_mode & 0o777, 0o640)
        self.assertEqual(self.token("create", "job").returncode, 3)
        self.assertIn("job", self.token("list").stdout)
        text = self.configuration.read_text().replace("access: [", "access: [principal:job=write, ")
        self.configuration.write_text(f"tokens: {self.folder}/tokens\n{text}")
        self.reload("reloaded the configuration")

        rule = "principal:audit.example=read"
        self.configuration.write_text(self.configuration.read_text().replace(rule, "principal:audit.example=admin"))
        self.reload("reloaded the configuration")
        auditor = self.connect("audit.example")
        self.assertEqual([(entry["name"], "lastUsed" in entry) for entry in auditor.tokens()], [("job", False)])
        client = Client(self.address, tls=self.authority.context(), token=token)
        self.addCleanup(client.close)
        client.open("items").put("key", b"value")
        self.assertEqual([(entry["name"], "lastUsed" in entry) for entry in auditor.tokens()], [("job", True)])
        secret = self.folder / "job.token"
        secret.write_text(f"{token}\n")
        environment = {
            **os.environ, "LARDER_SERVER": self.address, "LARDER_TLS_CA": str(self.authority.file("ca.pem")),
            "LARDER_TOKEN_FILE": str(secret),
        }
        get = [self.command, "get", "items", "key"]
        secret.chmod(0o644)
        done = subprocess.run(get, env=environment, capture_output=True, timeout=20)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"chmod 600", done.stderr)
        secret.chmod(0o600)
        done = subprocess.run(get, env=environment, capture_output=True, timeout=20)
        self.assertEqual((done.returncode, done.stdout), (0, b"value"), done.stderr)
        output = self.run_program(
            "redis-cli", "-p", str(self.redis_port), "--tls", "--cacert", self.authority.file("ca.pem"), "--no-auth-warning",
            "-a", token, "set", "a", "1")
        self.assertEqual(output, "OK\n")

        self.assertEqual(self.token("revoke", "job").returncode, 0)
        self.assertEqual(self.token("revoke", "job").returncode, 1)
        self.reload("reloaded the configuration")
        with self.assertRaises(LarderError) as raised:
            client.ping()
        self.assertEqual(raised.exception.code, Code.notPermitted)
        with self.assertRaises(LarderError) as raised:
            Client(self.address, tls=self.authority.context(), token=token)
        self.assertEqual(raised.exception.message, "the token is not accepted")
        self.wait_for("there is no such token")
        self.assertNotIn(token, self.log())


class HostileClients(TLSCase):
    def test_half_open_handshakes(self) -> None:
        """They don't keep others out."""
        silent = [socket.create_connection(("127.0.0.1", self.port), 5) for _ in range(2_000)]
        try:
            client = self.connect()
            begin = time.monotonic()
            client.ping()
            self.assertLess(time.monotonic() - begin, 1)
        finally:
            for connected in silent:
                connected.close()

    def test_key_updates(self) -> None:
        """A client that does nothing but change its keys, which costs the server much, is disconnected."""
        command = [
            "openssl", "s_client", "-connect", f"127.0.0.1:{self.redis_port}", "-CAfile", str(self.authority.file("ca.pem")),
        ]
        def start() -> subprocess.Popen[bytes]:
            started = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
            self.addCleanup(started.kill)
            time.sleep(0.5)
            return started

        def send(client: subprocess.Popen[bytes], line: bytes) -> None:
            # The program takes a line for a command if it is all that it reads.
            client.stdin.write(line)
            time.sleep(0.02)

        patient, flooding = start(), start()
        for _ in range(12):
            # K asks for an update of the server's keys, too.
            send(patient, b"K\n")
            send(patient, b"k\n")
            send(patient, b"PING\n")
        send(patient, b"Q\n")
        self.assertEqual(patient.stdout.read().count(b"+PONG"), 12)
        with contextlib.suppress(BrokenPipeError):
            for _ in range(40):
                send(flooding, b"K\n")
        self.assertNotEqual(flooding.wait(10), 0, "the connection is still open")

    def test_many_connections_leak_nothing(self) -> None:
        def resident_bytes() -> int:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
            return int(text.split("VmRSS:")[1].split()[0]) << 10

        context = self.authority.context("web.example")
        failures: list[BaseException] = []

        def connect(count: int) -> None:
            try:
                for _ in range(count):
                    with socket.create_connection(("127.0.0.1", self.redis_port), 10) as connected:
                        # Otherwise the request waits for an acknowledgment of the handshake's end, which takes 40 ms.
                        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        with context.wrap_socket(connected, server_hostname="127.0.0.1") as secured:
                            secured.sendall(b"PING\r\n")
                            if secured.recv(16) != b"+PONG\r\n":
                                raise AssertionError("no reply to PING")
            except BaseException as error:
                failures.append(error)

        def connect_all(count: int) -> None:
            threads = [threading.Thread(target=connect, args=(count // 4,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

        connect_all(400)
        before = resident_bytes()
        connect_all(self.connections)
        growth = resident_bytes() - before
        # What the allocator keeps doesn't depend on their number.
        self.assertLess(growth, 4 << 20, f"{self.connections} connections left {growth} bytes")
        with self.connect("audit.example") as client:
            self.assertEqual(client.open("items").count(), 0)
        self.assertLess(len(list(Path(f"/proc/{self.process.pid}/fd").iterdir())), 40)

    def test_connections_that_end_early(self) -> None:
        """Neither memory nor descriptors leak."""
        def descriptors() -> int:
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))

        self.connect().ping()
        before = descriptors()
        context = self.authority.context("web.example")
        for number in range(600):
            connected = socket.create_connection(("127.0.0.1", self.redis_port), 5)
            if number % 3 == 0:
                connected.sendall(b"\x16\x03\x01")
            elif number % 3 == 1:
                connected = context.wrap_socket(connected, server_hostname="127.0.0.1")
                connected.sendall(b"PI")
            connected.close()
        deadline = time.monotonic() + 10
        while descriptors() > before + 5:
            self.assertLess(time.monotonic(), deadline, f"{descriptors()} descriptors are open, {before} before")
            time.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks larderd's TLS.")
    parser.add_argument("--server", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--larder", type=Path, required=True, help="the larder to run")
    parser.add_argument("--connections", type=int, default=1_000, help="how many must leak nothing (default: 1000)")
    options = parser.parse_args()
    TLSCase.connections = options.connections
    TLSCase.program, TLSCase.command = options.server.resolve(), options.larder.resolve()
    passed, failed = run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
