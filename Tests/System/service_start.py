"""What larderd and larder rely on when they start and reload: arguments, descriptors, files of settings, listeners."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from larder import Client
from service_case import ServiceCase

# Opening a file whose name ends with .hanging never returns, as on a network disk whose server is away.
HANGING_OPEN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
static int forward(const char *name, const char *path, int flags, mode_t mode) {
  size_t length = strlen(path);
  if (length > 8 && strcmp(path + length - 8, ".hanging") == 0) for (;;) pause();
  return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name))(path, flags, mode);
}
#define FORWARD(name) int name(const char *path, int flags, ...) { \
  va_list rest; va_start(rest, flags); mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; va_end(rest); \
  return forward(#name, path, flags, mode); }
FORWARD(open)
FORWARD(open64)
"""


class StartChecks(ServiceCase):
    @property
    def command(self) -> Path:
        return self.server.with_name("larder")

    def run_server(self, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.server, *map(str, arguments)], capture_output=True, text=True, timeout=20, check=False, **options)

    def listen(self, *arguments: object, before: tuple[object, ...] = (), after: str = "") -> subprocess.Popen[bytes]:
        """Starts larderd without systemd, with a Unix socket and these arguments."""
        words = [*before, self.server, f"--listen=unix:{self.folder}/own", *arguments]
        log = (self.folder / "log").open("wb")
        self.addCleanup(log.close)
        process = subprocess.Popen(["bash", "-c", f'exec "$@" {after}', "bash", *map(str, words)], stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + 20
        # The socket's file exists a moment before the socket listens.
        while not self.accepts():
            self.assertIsNone(process.poll(), self.log())
            self.assertLess(time.monotonic(), end, "larderd doesn't listen")
            time.sleep(0.01)
        return process

    def accepts(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.folder / "own")) == 0

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def wait_for_log(self, text: str) -> None:
        end = time.monotonic() + 20
        while text not in self.log():
            self.assertLess(time.monotonic(), end, f"the log lacks '{text}': {self.log()}")
            time.sleep(0.01)

    def assertStops(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=20), 0)

    # Arguments

    def test_nothing_starts_without_proc(self) -> None:
        hidden = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
        if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode:
            self.skipTest("this machine does not allow mounts in a namespace")
        for command in ([self.server, f"--listen=unix:{self.folder}/own"], [self.server, "--version"], [self.command, "ping"]):
            done = subprocess.run([*hidden, *command], capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("there is no /proc", done.stderr)
        self.assertFalse((self.folder / "own").exists())

    def test_arguments_survive_a_library_that_moves_the_environment(self) -> None:
        source, library = self.folder / "moving.c", self.folder / "moving.so"
        source.write_text('#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { setenv("SOME_VARIABLE", "1", 1); }\n')
        subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, source], check=True)
        environment = {**os.environ, "LD_PRELOAD": str(library)}
        done = self.run_server("config", "show", "--data", self.folder / "there", env=environment)
        self.assertIn(f'data: "{self.folder}/there"', done.stdout)
        done = subprocess.run([self.command, "--version"], env=environment, capture_output=True, text=True, timeout=20, check=True)
        self.assertEqual(len(done.stdout.split(".")), 3)

    def test_arguments_that_are_not_utf8_are_refused(self) -> None:
        done = subprocess.run([self.server, b"--data=/\xff"], capture_output=True, timeout=20, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, b"larderd: argument 1 is not valid UTF-8\n"))

    def test_exit_statuses_of_the_command_line(self) -> None:
        self.assertEqual(self.run_server("--bogus").returncode, 2)
        self.assertEqual(self.run_server("--workers", "many").returncode, 2)
        self.assertEqual(self.run_server("--help").returncode, 0)
        for arguments in (["--help"], ["--version"], ["config", "show"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([self.server, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (2, "larderd: can't write to standard output: No space left on device\n"))

    # Descriptors

    def test_closed_standard_descriptors_are_not_given_to_files_or_sockets(self) -> None:
        data = self.folder / "data"
        process = self.listen(f"--data={data}", "--store=orders=log", after="<&- >&- 2>&-")
        with Client(f"unix:{self.folder}/own") as client:
            client.open("orders").put("a", b"1")
            for number in range(3):
                self.assertEqual(os.readlink(f"/proc/{process.pid}/fd/{number}"), "/dev/null")
            # Each of these writes to the log.
            process.send_signal(signal.SIGHUP)
            client.create("other")
            client.drop("other")
            self.assertEqual(client.open("orders").get("a").value, b"1")
            self.assertEqual((data / "lock").read_text(), f"{process.pid}\n")
        self.assertStops(process)

    def test_output_to_a_closed_descriptor_is_an_error(self) -> None:
        tokens = self.folder / "tokens"
        words = [self.command, "token", "create", "web", "--file", tokens]
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        for end, inherited in (">&-", ()), (">/dev/full", ()), (f">&{writer}", (writer,)):
            done = subprocess.run(
                ["bash", "-c", f'exec "$@" {end}', "bash", *words], pass_fds=inherited, capture_output=True, timeout=20, check=False)
            self.assertEqual(done.returncode, 2, f"{end} {done.stderr}")
            self.assertFalse(tokens.exists(), "a token that nobody has seen is accepted")
        for arguments in (["--help"], ["--version"], ["token", "list", "--file", tokens], ["--generate-completion-script", "bash"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([self.command, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=20, check=False)
            self.assertEqual((done.returncode, done.stderr), (2, b"larder: can't write to standard output: No space left on device\n"))

    # Files

    def test_a_fifo_in_place_of_a_file_of_settings_delays_nothing(self) -> None:
        configuration, tokens = self.folder / "larderd.yaml", self.folder / "tokens"
        tokens.touch()
        audit = self.folder / "audit.json"
        configuration.write_text(f"tokens: {tokens}\naudit: {audit}\n")
        process = self.listen(f"--config={configuration}")
        for path in (tokens, configuration):
            text = path.read_text()
            path.unlink()
            os.mkfifo(path)
            process.send_signal(signal.SIGHUP)
            self.wait_for_log(f"{path}: this is not a regular file; name one")
            path.unlink()
            path.write_text(text)
        audit.unlink()
        os.mkfifo(audit)
        process.send_signal(signal.SIGHUP)
        self.wait_for_log(f"audit: {audit}: this is not a regular file; name one; the audit goes to the log")
        with Client(f"unix:{self.folder}/own") as client:
            client.ping()
        self.assertStops(process)
        for setting in ("tokens", "audit"):
            configuration.write_text(f"{setting}: {audit}\n")
            self.assertEqual(self.run_server("config", "check", configuration).returncode, 78)
        self.assertEqual(self.run_server("--config", audit).returncode, 78)

    def test_signals_are_heard_while_a_file_of_settings_hangs(self) -> None:
        source, library = self.folder / "hanging.c", self.folder / "hanging.so"
        source.write_text(HANGING_OPEN)
        subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, source, "-ldl"], check=True)
        configuration, hanging = self.folder / "larderd.yaml", self.folder / "tokens.hanging"
        configuration.write_text("")
        hanging.touch()
        process = self.listen(f"--config={configuration}", before=("env", f"LD_PRELOAD={library}"))
        configuration.write_text(f"tokens: {hanging}\n")
        for _ in range(3):
            process.send_signal(signal.SIGHUP)
        with Client(f"unix:{self.folder}/own") as client:
            client.ping()
        self.assertStops(process)
        self.assertNotIn("reloaded", self.log())

    def test_files_that_decide_about_rights_belong_to_their_owner(self) -> None:
        certificates = Path(__file__).parents[2] / "contrib" / "certificates"
        for arguments in (["authority", "ca"], ["server", "ca", "localhost"]):
            subprocess.run([certificates, *arguments], cwd=self.folder, check=True, capture_output=True)
        files = [self.folder / "ca" / name for name in ("server.pem", "server-key.pem", "ca.pem")]
        tokens, configuration = self.folder / "tokens", self.folder / "larderd.yaml"
        subprocess.run([self.command, "token", "create", "web", "--file", tokens], check=True, capture_output=True)
        configuration.write_text(
            f"tokens: {tokens}\nlisten: ['tls:127.0.0.1:0']\ntls:\n  certificates: [{files[0]}]\n  keys: [{files[1]}]\n"
            f"  client-authorities: {files[2]}\n")
        configuration.chmod(0o644)
        done = self.run_server("config", "check", configuration)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for path in [configuration, tokens, *files]:
            mode = path.stat().st_mode & 0o777
            for others, advice in (0o020, "chmod go-w"), (0o002, "chmod go-w"), (0o004, "chmod o="):
                if others == 0o004 and path != files[1]:
                    continue
                path.chmod(mode | others)
                for arguments in (["config", "check", configuration], ["--config", configuration]):
                    done = self.run_server(*arguments)
                    self.assertEqual(done.returncode, 78, f"{path} {others:o} {done.stderr}")
                    self.assertIn(f"run: {advice} {path}", done.stderr)
            path.chmod(mode)

    def test_the_check_refuses_what_the_server_refuses(self) -> None:
        configuration, link = self.folder / "larderd.yaml", self.folder / "link.json"
        link.symlink_to("target.json")
        for text, complaint in (
            ("access: ['role:nosuch=read']", "access, item 1: there is no role 'nosuch' in roles"),
            ("roles: [a=unix, a=tcp]", "roles, item 2: 'a' occurs twice"),
            (f"audit: {self.folder}/nowhere/audit.json", "nowhere: No such file or directory"),
            (f"audit: {link}", "this is a symbolic link, which is not followed"),
            (f"audit: {self.folder}", "this is not a regular file"),
            ("limits: {find-time: 2m}", "it can't be longer than limits.max-find-time"),
        ):
            configuration.write_text(text + "\n")
            for arguments in (["config", "check", configuration], ["--config", configuration, "--listen", f"unix:{self.folder}/own"]):
                done = self.run_server(*arguments)
                self.assertNotEqual(done.returncode, 0, text)
                self.assertIn(complaint.split(": ")[-1], done.stderr)
        self.assertFalse((self.folder / "target.json").exists())

    # The audit

    def test_clients_cannot_fill_the_audit(self) -> None:
        configuration, audit = self.folder / "larderd.yaml", self.folder / "audit.json"
        configuration.write_text(f"audit: {audit}\naccess: [unix=admin]\n")
        process = self.listen(f"--config={configuration}")
        for number in range(500):
            with Client(f"unix:{self.folder}/own") as client:
                client.create(f"s{number}")
                client.drop(f"s{number}")
        self.assertStops(process)
        lines = [json.loads(line) for line in audit.read_text().splitlines()]
        for kind in ("authenticated", "store-created", "store-dropped"):
            events = [line for line in lines if line["event"] == kind]
            self.assertEqual(sum(line.get("count", 1) for line in events), 500)
            # 60 a minute, and the number of others. The test may take longer than a minute.
            counted = [line for line in events if "count" in line]
            self.assertTrue(counted and len(events) < 500, kind)
            self.assertEqual({line["object"] for line in counted}, {f"further ones of uid {os.getuid()}"})

    # Listeners

    def test_listeners_are_logged_by_what_they_speak(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        address = f"resp:127.0.0.1:{port}"
        process = self.listen(f"--listen={address}", f"--listen=http+unix:{self.folder}/http", "--store=s=memory", "--resp-database=0=nosuch")
        self.wait_for_log(f"listening address=http+unix:{self.folder}/http")
        self.assertIn(f"listening address={address} ", self.log())
        self.assertIn(f"because access has no rules listener={address}", self.log())
        self.assertNotIn(f"because access has no rules listener=http+unix", self.log())
        self.assertIn("database 0 has no store, because there is none of this name store=nosuch", self.log())
        self.assertStops(process)
        # Rules can name a listener in this way.
        process = self.listen(f"--listen={address}", "--allow=unix=admin", f"--allow=tcp=read@{address}")
        self.assertNotIn("refuses all clients", self.log())
        self.assertStops(process)

    def test_all_addresses_of_both_families_have_the_same_port(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = self.listen("--insecure-tcp", f"--listen=tcp:0.0.0.0:{port}", f"--listen=tcp:[::]:{port}")
        with Client(f"tcp:127.0.0.1:{port}") as client:
            client.ping()
        self.assertStops(process)

    def test_a_passed_unix_socket_cannot_be_for_tls(self) -> None:
        for name in ("https", "resps", "tls"):
            path = self.folder / f"{name}.sock"
            with socket.socket(socket.AF_UNIX) as passed:
                passed.bind(str(path))
                passed.listen()
                script = f'exec 3<&{passed.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES={name} exec "{self.server}"'
                done = subprocess.run(["bash", "-c", script], pass_fds=[passed.fileno()], capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("its name stands for TLS, which Unix sockets don't have", done.stderr)
