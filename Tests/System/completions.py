"""Checks the completions of larder and larderd by typing into bash, zsh and fish on a pseudo terminal.

    python3 completions.py --server PATH --larder PATH

The scripts are the ones that these programs generate. Starts this larderd in a temporary directory.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from brief_case import ProgramsCase
from server_process import Server

TAB, ENTER, START_OF_LINE, KILL_LINE = "\t", "\r", "\x01", "\x15"
ESCAPES = re.compile(rb"\x1b\[[0-9;?>=]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]|\x1b[=>78M]|[\x07\x08]")
SECONDS = 8

# How each shell is started without its user's settings, and loads the scripts in a folder.
COMMANDS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "--private", "--interactive"],
}
SETUPS = {
    "bash": "source {folder}/larder.bash; source {folder}/larderd.bash",
    "zsh": "fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -d {folder}/dump",
    "fish": "source {folder}/larder.fish; source {folder}/larderd.fish",
}
SCRIPTS = {"bash": "{}.bash", "zsh": "_{}", "fish": "{}.fish"}

# What is typed before Tab, and the words of the command line afterwards.
LINES = {
    "larder stor": ["larder", "stores"],
    "larder get it": ["larder", "get", "items"],
    "larder --server {server} get it": ["larder", "--server", "{server}", "get", "items"],
    "larder --server={server} get it": ["larder", "--server={server}", "get", "items"],
    "larder page items --keys": ["larder", "page", "items", "--keys-only"],
    "larder stats --form": ["larder", "stats", "--format"],
    "larder top --format cs": ["larder", "top", "--format", "csv"],
    "larder slowlog --format t": ["larder", "slowlog", "--format", "table"],
    "larder create x d": ["larder", "create", "x", "directory"],
    "larder create x 'memory?": ["larder", "create", "x", "memory?limit=256MiB"],
    "larder create x 'log?durability=in": ["larder", "create", "x", "log?durability=interval:1s"],
    "larder restore x a --engine 'directory?durability=n":
        ["larder", "restore", "x", "a", "--engine", "directory?durability=none"],
    "larder load items entr": ["larder", "load", "items", "entries of items.jsonl"],
    "larderd --log-level deb": ["larderd", "--log-level", "debug"],
}
# Words with a question mark, which fish expands even while it completes them. bash splits them at = and :.
WITH_WILDCARDS = {
    "larder create x memory?": ["larder", "create", "x", "memory?limit=256MiB"],
    "larder create x log?durability=in": ["larder", "create", "x", "log?durability=interval:1s"],
    "larder restore x a --engine directory?durability=n":
        ["larder", "restore", "x", "a", "--engine", "directory?durability=none"],
    "larder create x log?durability=interval:": ["larder", "create", "x", "log?durability=interval:1s"],
    "larder create x log?durability=al": ["larder", "create", "x", "log?durability=always"],
}


class Shell:
    """An interactive shell whose output is read without escape sequences."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)
        self.output = b""

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def wait(self, pattern: str) -> re.Match[str]:
        """Waits for a match in the output since the last call."""
        deadline = time.monotonic() + SECONDS
        while True:
            text = ESCAPES.sub(b"", self.output).decode(errors="replace").replace("\r", "\n")
            if found := re.search(pattern, text):
                self.output = b""
                return found
            if not select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"got {text[-400:]!r} instead of {pattern!r}")
            self.output += os.read(self.terminal, 65_536)

    def completed(self, line: str) -> list[str]:
        """Returns the words of a command line after Tab at its end."""
        self.type(KILL_LINE + line + TAB + " ." + START_OF_LINE + "printf '<%s>' " + ENTER)
        found = self.wait(r"<larderd?>(<[^<>\n]*>)*<\.>")[0]
        return found[1:-1].split("><")[:-1]

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.terminal)


class CompletionCase(ProgramsCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lc-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.server = Server(self.larderd, self.folder, "--store", "items=memory", "--store", "orders=memory")
        self.addCleanup(lambda: self.server.kill())
        self.server.wait_until_ready()
        (self.folder / "entries of items.jsonl").touch()
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        (self.folder / "bin").mkdir()
        for program in (self.larder, self.larderd):
            (self.folder / "bin" / program.name).symlink_to(program)
        self.environment = {"HOME": str(self.folder), "TERM": "xterm", "LARDER_SERVER": self.server.address, "PATH": path}

    def shell(self, name: str) -> Shell:
        """Starts a shell that has loaded the completion scripts."""
        for program in (self.larder, self.larderd):
            script = subprocess.run([program, "--generate-completion-script", name], capture_output=True, check=True).stdout
            (self.folder / SCRIPTS[name].format(program.name)).write_bytes(script)
        shell = Shell(COMMANDS[name], self.environment, self.folder)
        self.addCleanup(shell.close)
        shell.type(SETUPS[name].format(folder=self.folder) + ENTER)
        shell.type("printf '<%s>' ready" + ENTER)
        shell.wait("<ready>")
        return shell

    def check(self, name: str, lines: dict[str, list[str]]) -> None:
        shell = self.shell(name)
        for line, words in lines.items():
            words = [word.format(server=self.server.address) for word in words]
            with self.subTest(line):
                self.assertEqual(shell.completed(line.format(server=self.server.address)), words, line)

    def test_bash(self) -> None:
        self.check("bash", LINES | WITH_WILDCARDS)

    def test_zsh(self) -> None:
        self.check("zsh", LINES | WITH_WILDCARDS)

    def test_fish(self) -> None:
        self.check("fish", LINES)


if __name__ == "__main__":
    sys.exit(CompletionCase.main("Checks the completions of larder and larderd."))
