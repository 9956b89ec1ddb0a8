"""Checks the console of larder by typing into it on a pseudo terminal.

    python3 console.py --server PATH --larder PATH

Starts this larderd in a temporary directory, which also holds the history of the consoles.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from brief_case import ProgramsCase
from larder import Client
from server_process import Server

CTRL_C, CTRL_D, CTRL_U, CTRL_Z, TAB, ENTER, UP = "\x03", "\x04", "\x15", "\x1a", "\t", "\r", "\x1b[A"
HOSTILE = b"\x1b]0;owned\x07\x1b[2J\xc2\x9b31mred\x7f\ntwo\tlines \xe2\x80\xaeevil"
# Parts of it that would control a terminal.
CONTROL_SEQUENCES = (b"\x1b]", b"\x1b[2J", b"\xc2\x9b", b"\x9b31m", b"\x7f", b"\xe2\x80\xae")
PROMPT = re.compile(r"\S*larder\.sock> ")
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|[\r\x07\x08]")


class Console:
    """A running console. Keeps its output as the bytes that a terminal receives."""

    def __init__(self, program: Path, environment: dict[str, str], *arguments: str, columns: int = 100) -> None:
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            os.execve(program, [program, *arguments], environment)
        self.raw = b""
        self.seen = 0
        self.status: int | None = None

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def text(self) -> str:
        """Returns the output since the last call of `wait`, without escape sequences."""
        return ESCAPES.sub(b"", self.raw[self.seen :]).decode(errors="replace")

    def wait(self, wanted: str | re.Pattern[str], seconds: float = 10) -> str:
        """Waits for the text and returns the output up to that point."""
        pattern = wanted if isinstance(wanted, re.Pattern) else re.compile(re.escape(wanted))
        deadline = time.monotonic() + seconds
        while not pattern.search(self.text()):
            if not self.read(deadline - time.monotonic()):
                raise AssertionError(f"got {self.text()[-3_000:]!r} instead of {pattern.pattern!r}")
        text = self.text()
        self.seen = len(self.raw)
        return text

    def read(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self.terminal], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.terminal, 65_536)
        except OSError:  # The console has exited.
            piece = b""
        self.raw += piece
        return piece != b""

    def do(self, line: str, seconds: float = 10) -> str:
        """Types a line, waits for the next prompt and returns the command's output."""
        self.type(line + ENTER)
        return self.wait_for_prompt(seconds).partition("\n")[2].rpartition("\n")[0]

    def wait_for_prompt(self, seconds: float = 10) -> str:
        """Waits for a prompt at the start of a line."""
        return self.wait(re.compile("\n" + PROMPT.pattern), seconds)

    def wait_for_exit(self, seconds: float = 10) -> int:
        """Returns the exit status once the console has exited."""
        deadline = time.monotonic() + seconds
        while self.status is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"the console does not exit; it printed {self.text()[-3_000:]!r}")
            self.read(0.05)
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def close(self) -> None:
        if self.status is None:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.terminal)




class ConsoleCase(ProgramsCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lc-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.start_server()
        self.addCleanup(lambda: self.server.kill())
        with Client(self.server.address) as client:
            items = client.open("items")
            items.put("apple", b"red")
            items.put("apricot", b"orange")
            items.put("two words", b'{"a": 1}')
            items.put("wide", b"w" * 500)
            items.put("hostile", HOSTILE)
        self.environment = {"HOME": str(self.folder), "TERM": "xterm", "LARDER_SERVER": self.server.address}
        self.history = self.folder / ".local/state/larder/history"

    def start_server(self) -> None:
        self.server = Server(self.larderd, self.folder, "--store", "items=memory", "--store", "sessions=memory")
        self.server.wait_until_ready()

    def console(self, *arguments: str, columns: int = 100) -> Console:
        console = Console(self.larder, self.environment, *arguments, columns=columns)
        self.addCleanup(console.close)
        self.greeting = console.wait(PROMPT)
        return console

    def test_greeting_and_exit(self) -> None:
        for exit_keys in ("quit" + ENTER, " exit " + ENTER, CTRL_D):
            console = self.console()
            self.assertIn("2 stores", self.greeting)
            self.assertIn("larderd/", self.greeting)
            self.assertIn("'help'", self.greeting)
            before = termios.tcgetattr(console.terminal)
            self.assertRegex(console.do("ping"), r"^\d+\.\d{3} ms$")
            console.type(exit_keys)
            self.assertEqual(console.wait_for_exit(), 0)
            after = termios.tcgetattr(console.terminal)
            self.assertTrue(after[3] & termios.ICANON and after[3] & termios.ECHO and after[3] & termios.ISIG)
            self.assertFalse(before[3] & termios.ICANON, "the line editor must turn canonical mode off")

    def test_options_and_other_servers(self) -> None:
        self.environment["LARDER_SERVER"] = "unix:/nowhere/larder.sock"
        console = self.console("--server", self.server.address, "--timeout", "2s")
        self.assertEqual(console.do("larder count items"), "5")
        self.assertIn("can't connect", console.do("count items --server unix:/nowhere/larder.sock"))
        self.assertEqual(console.do("count --timeout 1s items"), "5")
        self.assertIn("a command is missing", console.do("--timeout 1s"))

    def test_commands_share_a_connection(self) -> None:
        console = self.console()
        console.do("format json")
        first = json.loads(console.do("stats"))
        for _ in range(5):
            console.do("get items apple")
        self.assertEqual(json.loads(console.do("stats"))["connections_accepted_total"], first["connections_accepted_total"])

    def test_tab_completion(self) -> None:
        console = self.console()
        (self.folder / "entries.jsonl").write_text('{"key":"new","value":1}\n')
        console.type("sto" + TAB + ENTER)
        self.assertIn("DURABILITY", console.wait_for_prompt())
        console.type("cou" + TAB + "it" + TAB + ENTER)
        self.assertIn("\n5\n", console.wait_for_prompt())
        console.type("get items tw" + TAB + ENTER)
        self.assertRegex(console.wait_for_prompt(), "'two words' ?\n{\"a\": 1}\n")
        console.type("get items ap" + TAB)
        console.wait("\napple    apricot\n")
        console.type("p" + TAB + ENTER)
        self.assertIn("\nred\n", console.wait_for_prompt())
        console.type("page items --rev" + TAB + "--keys" + TAB + ENTER)
        self.assertIn("wide", console.wait_for_prompt())
        console.type(f"load items {self.folder}/ent" + TAB + ENTER)
        self.assertIn("loaded 1 entry", console.wait_for_prompt())
        console.type("nothing-like-it" + TAB + CTRL_C)
        console.wait_for_prompt()
        self.assertEqual(console.do("get items new"), "1")

    def test_history(self) -> None:
        console = self.console()
        for line in ("ping", "ping", " get items secret", "count items"):
            console.do(line)
        console.type(CTRL_D)
        console.wait_for_exit()
        self.assertEqual(self.history.read_text(), "ping\ncount items\n")
        self.assertEqual(stat.S_IMODE(self.history.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.history.parent.stat().st_mode), 0o700)
        console = self.console()
        console.type(UP + ENTER)
        self.assertIn("\n5\n", console.wait_for_prompt())
        console.type(UP + UP + ENTER)
        self.assertIn(" ms\n", console.wait_for_prompt())
        self.environment["XDG_STATE_HOME"] = str(self.folder / "state")
        self.console().do("count items")
        self.assertEqual((self.folder / "state/larder/history").read_text(), "count items\n")

    def test_ctrl_c_abandons_a_line(self) -> None:
        console = self.console()
        console.type("delete items apple" + CTRL_C)
        console.wait_for_prompt()
        self.assertEqual(console.do("count items"), "5")
        self.assertNotIn("delete", self.history.read_text())

    def test_ctrl_c_stops_a_command(self) -> None:
        console = self.console()
        console.do("count items")
        self.server.process.send_signal(signal.SIGSTOP)
        for line in ("count items", "page items", "stores", "dump items"):
            console.type(line + ENTER)
            console.wait(line + "\n")
            time.sleep(0.2)
            console.type(CTRL_C)
            self.assertIn("larder: interrupted", console.wait_for_prompt(3))
        self.server.process.send_signal(signal.SIGCONT)
        self.assertEqual(console.do("count items"), "5")
        console.type("put items typed" + ENTER)
        console.wait("Ctrl-D on a line of its own.\n")
        console.type("never written" + ENTER)
        time.sleep(0.2)
        console.type(CTRL_C)
        console.wait_for_prompt(3)
        console.type("put items typed" + ENTER)
        console.wait("Ctrl-D on a line of its own.\n")
        console.type("written" + ENTER + CTRL_D)
        console.wait_for_prompt()
        self.assertEqual(console.do("get items typed"), "written")

    def test_ctrl_c_stops_loading(self) -> None:
        console = self.console()
        os.mkfifo(self.folder / "fifo")
        fifo = os.open(self.folder / "fifo", os.O_RDWR)  # Open for writing, too, so that the input never ends.
        self.addCleanup(os.close, fifo)
        os.write(fifo, b"".join(b'{"key":"k%d","value":"new"}\n' % number for number in range(500)))
        console.type(f"load items {self.folder}/fifo" + ENTER)
        with Client(self.server.address) as client:
            deadline = time.monotonic() + 10
            while client.open("items").count() < 505:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
        console.type(CTRL_C)
        self.assertIn("interrupted", console.wait_for_prompt(3))
        self.assertEqual(console.do("count items"), "505")

    def test_termination_by_a_signal(self) -> None:
        """The console restores the terminal, even after a command that handles signals itself."""
        for command in (None, "watch items"):
            console = self.console()
            if command:
                console.type(command + ENTER)
                console.wait(command + "\n")
                time.sleep(0.3)
                console.type(CTRL_C)
                console.wait_for_prompt(3)
            os.kill(console.process, signal.SIGTERM)
            self.assertEqual(console.wait_for_exit(), -signal.SIGTERM)
            modes = termios.tcgetattr(console.terminal)[3]
            self.assertTrue(modes & termios.ICANON and modes & termios.ECHO and modes & termios.ISIG)

    def test_ignored_hangup(self) -> None:
        ignoring = ("--norc", "-c", f"trap '' HUP; exec {self.larder}")
        console = Console(Path("/bin/bash"), self.environment, *ignoring)
        self.addCleanup(console.close)
        console.wait(PROMPT)
        os.kill(console.process, signal.SIGHUP)
        console.wait_for_prompt()
        self.assertEqual(console.do("count items"), "5")

    def test_server_restarts(self) -> None:
        console = self.console()
        self.assertEqual(console.do("count items"), "5")
        self.server.kill()
        for _ in range(3):
            self.assertIn("is larderd running there?", console.do("count items"))
        console.type("count " + TAB + CTRL_C)
        console.wait_for_prompt()
        self.start_server()
        self.assertEqual(console.do("count items"), "0")
        self.server.kill()
        late = self.console()
        self.assertIn("is larderd running there?", self.greeting)
        self.start_server()
        self.assertEqual(late.do("count items"), "0")

    def test_hostile_values(self) -> None:
        console = self.console(columns=132)
        with Client(self.server.address) as client:
            client.open("items").put("evil\x1b]0;owned\x07", HOSTILE)
        printed = {line: console.do(line) for line in ("page items", "get items hostile", "get-many items hostile", "dump items")}
        console.type("get items evil" + TAB + CTRL_C)
        console.wait_for_prompt()
        console.do("get items 'not\x16\x1bthere'")
        console.do("format json")
        lines = console.do("page items").splitlines()
        standalone = Console(self.larder, self.environment, "get", "items", "hostile")
        self.addCleanup(standalone.close)
        self.assertEqual(standalone.wait_for_exit(), 0)
        self.assertIn("two", standalone.text())
        for sequence in CONTROL_SEQUENCES:
            self.assertNotIn(sequence, console.raw + standalone.raw, f"{sequence!r} reached the terminal")
        self.assertIn(r"\u001b]0;owned\u0007\u001b[2J\u009b31mred\u007f\ntwo\tlines \u202eevil", printed["page items"])
        self.assertIn("\ntwo\tlines", printed["get items hostile"])
        self.assertIn(HOSTILE.decode(), [json.loads(line)["value"] for line in lines if '"hostile"' in line])

    def test_tables_fit(self) -> None:
        for columns in (50, 80, 132):
            console = self.console(columns=columns)
            lines = console.do("page items").splitlines()
            self.assertEqual(lines[0].split(), ["KEY", "REVISION", "VALUE"])
            self.assertLessEqual(max(map(len, lines)), columns)
            wide = next(line for line in lines if line.startswith("wide"))
            self.assertEqual(len(wide), columns)
            self.assertTrue(wide.endswith("w…"))
            self.assertIn("(missing)", console.do("get-many items apple none"))

    def test_errors_and_help(self) -> None:
        console = self.console()
        self.assertEqual(
            console.do("cuont items"), "larder: there is no command 'cuont'; did you mean 'count'? 'help' lists the commands")
        self.assertIn("no entry 'none'", console.do("get items none"))
        self.assertIn("see 'larder get --help'", console.do("get items"))
        for line in ("help", "?"):
            text = console.do(line)
            for word in ("get-many", "Whole stores", "table, json or csv", "Tab completes"):
                self.assertIn(word, text)
            console_commands = text.partition("Console\n")[2].partition("\n\n")[0].splitlines()
            self.assertEqual({len(re.match(r"  .*?  +|  +", line)[0]) for line in console_commands}, {22}, "aligned")
        for line in ("help get", "get ?", "get --help", "larder get --help"):
            self.assertIn("USAGE: larder get", console.do(line))
        self.assertIn("'format json'", console.do("format xml"))
        self.assertEqual(console.do(""), "")

    def test_commands_of_several_lines(self) -> None:
        console = self.console()
        console.type("put items lines '{\"a\":" + ENTER)
        console.wait("   ...> ")
        console.type("1}'" + ENTER)
        self.assertRegex(console.wait_for_prompt(), r"\n\d+\n")
        self.assertEqual(console.do("get items lines"), '{"a":\n1}')
        console.type("count \\" + ENTER)
        console.wait("   ...> ")
        console.type("items" + ENTER)
        self.assertIn("\n6\n", console.wait_for_prompt())
        for key in (CTRL_C, CTRL_D):
            console.type("delete items 'apple" + ENTER)
            console.wait("   ...> ")
            console.type("apple'" + key if key == CTRL_C else key)
            console.wait_for_prompt()
        self.assertEqual(console.do("get items apple"), "red")

    def test_json_needs_no_quotes(self) -> None:
        console = self.console()
        console.do("""put items j {"a": 1, "b": ["it's {", 2]}""")
        self.assertEqual(console.do("get items j"), """{"a": 1, "b": ["it's {", 2]}""")
        console.type("update items {" + ENTER)
        console.wait("   ...> ")
        console.type('"b": 2} --set {"c": [1, "x y"]}' + ENTER)
        self.assertIn("changed 1 document", console.wait_for_prompt())
        self.assertIn('"c":[1,"x y"]', console.do("get items j"))

    def test_dropping_asks(self) -> None:
        console = self.console()
        for answer, outcome in (("n", "not confirmed; nothing was done"), ("", "not confirmed"), ("y", "larder.sock> ")):
            console.type("drop items" + ENTER)
            console.wait("Drop 'items' with 5 entries? [y/N] ")
            console.type(answer + ENTER)
            self.assertIn(outcome, console.wait_for_prompt())
        self.assertIn("there is no store", console.do("count items"))
        self.assertEqual(console.do("drop sessions --yes"), "")
        self.assertEqual(console.do("stores --format json"), "")

    def test_q_leaves_pages(self) -> None:
        console = self.console()
        for command in ("top --watch", "stats --watch", "stats items --watch"):
            console.type(command + ENTER)
            console.wait("Press q or Ctrl-C to quit")
            console.type("q")
            console.wait(PROMPT)
        self.assertEqual(console.do("count items"), "5")
        alone = Console(self.larder, self.environment, "top", "--watch")
        self.addCleanup(alone.close)
        alone.wait("Press q or Ctrl-C to quit")
        alone.type("xq")
        self.assertEqual(alone.wait_for_exit(), 0)
        mode = termios.tcgetattr(alone.terminal)[3]
        self.assertTrue(mode & termios.ICANON and mode & termios.ECHO)

    def test_ctrl_c_stops_a_large_value(self) -> None:
        """Escaping takes time in proportion to the value, and Ctrl-C ends it between two parts."""
        with Client(self.server.address) as client:
            client.open("items").put("large", bytes(range(256)) * 32_768)
            client.open("items").put("text", "größe 漢字 ".encode() * 30_000)
        console = self.console()
        console.type("get items large" + ENTER)
        console.wait(r"\xfe\xff")
        console.type(CTRL_C)
        deadline = time.monotonic() + 10
        while "larder: interrupted" not in console.text():
            self.assertTrue(console.read(deadline - time.monotonic()))
        console.wait_for_prompt()
        self.assertLess(len(console.raw), 20_000_000, "the whole value was printed")
        start = time.monotonic()
        text = console.do("get items text", seconds=30)
        self.assertNotIn("\\x", text)
        self.assertGreaterEqual(text.count("größe"), 29_000)
        self.assertLess(time.monotonic() - start, 20)

    def test_reading_a_file(self) -> None:
        console = self.console()
        commands = self.folder / "commands.txt"
        commands.write_text("# Two entries\nput items x 1\nget items none\nput items y 1\n")
        console.type(".read " + str(commands)[:-4] + TAB + ENTER)
        self.assertIn(f"larder: {commands}, line 3: 'items' has no entry 'none'", console.wait_for_prompt())
        self.assertEqual(console.do("count items"), "6")
        self.assertIn("can't read", console.do(".read /nowhere"))

    def test_ctrl_z_suspends(self) -> None:
        """The terminal has its own settings while the console is suspended, and the console goes on afterward."""
        console = Console(Path("/bin/bash"), {**self.environment, "PS1": "shell> "}, "--norc", "--noediting", "-i")
        self.addCleanup(console.close)
        console.wait("shell> ")
        console.type(f"{self.larder}{ENTER}")
        console.wait(PROMPT)
        for start, rest in (("count items", ""), ("coun", "t items")) * 5:
            console.type(start + CTRL_Z)
            console.wait("shell> ")
            console.type("stty -a" + ENTER)
            settings = console.wait("shell> ")
            for setting in (" icanon", " echo ", "isig"):
                self.assertIn(setting, settings)
            console.type("fg" + ENTER)
            console.wait(PROMPT)
            console.type(rest + ENTER)
            self.assertIn("\n5\n", console.wait_for_prompt())
        for number in (signal.SIGTSTP, signal.SIGSTOP):
            console.type("coun")
            console.wait("coun")
            os.killpg(os.tcgetpgrp(console.terminal), number)
            console.wait("shell> ")
            console.type("fg" + ENTER)
            console.wait(PROMPT)
            console.type("t items" + ENTER)
            self.assertIn("\n5\n", console.wait_for_prompt())
        console.type(CTRL_D)
        console.wait("shell> ")

    def test_ctrl_z_without_a_shell(self) -> None:
        """Where no shell could continue it, the console goes on."""
        console = self.console()
        console.type("coun" + CTRL_Z)
        console.wait_for_prompt()
        console.type("t items" + ENTER)
        self.assertIn("\n5\n", console.wait_for_prompt())

    def test_resizing(self) -> None:
        """A line wraps at the terminal's width, also after it has changed while the line is edited."""
        console = self.console()
        for columns in (60, 40, 80):
            fcntl.ioctl(console.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            deadline = time.monotonic() + 10
            while self.row_width(console, 3 * columns) != columns:
                self.assertLess(time.monotonic(), deadline, f"the console does not use the width {columns}")

    def row_width(self, console: Console, count: int) -> int:
        """Returns the number of characters in the second row of a line that is typed and then erased."""
        start = len(console.raw)
        console.type("x" * count)
        while console.raw[start:].count(b"x") < count:
            self.assertTrue(console.read(10))
        console.type(CTRL_U)
        # At the end of a row, the editor moves to the next one by a blank and a backspace.
        return len(console.raw[start:].split(b" \x08")[1])

    def test_without_a_terminal(self) -> None:
        """Without a terminal for input and output, larder does not start a console, but runs the lines of its input."""
        done = subprocess.run([self.larder], input=b"count items\n", env=self.environment, capture_output=True, timeout=10)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"5\n", b""))
        done = subprocess.run([self.larder], input=b"", env=self.environment, capture_output=True, timeout=10)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertTrue(done.stderr.startswith(b"OVERVIEW"))
        ours, theirs = pty.openpty()
        done = subprocess.run([self.larder], stdin=theirs, env=self.environment, capture_output=True, timeout=10)
        os.close(ours)
        os.close(theirs)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        page = [self.larder, "page", "items", "--limit", "1"]
        done = subprocess.run(page, env=self.environment, capture_output=True, timeout=10)
        self.assertEqual(done.stdout, b'{"key":"apple","value":"red","revision":1}\n')


if __name__ == "__main__":
    sys.exit(ConsoleCase.main("Checks larder's console."))
