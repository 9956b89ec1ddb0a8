"""A server with a console, and a browser that shows it, for the tests of the console."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from brief_case import BriefCase
from larder import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from server_process import Server
from web_font import font_settings

TIMEOUT = 15_000  # In milliseconds.


class ConsoleCase(BriefCase):
    """A server with a console, and a browser."""

    larderd: Path
    larder: Path
    options: list[str] = ["--store", "films=memory"]
    arguments: list[str] = []

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory(prefix="larder-web-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.server = Server(cls.larderd, Path(cls.folder.name), "--listen", "http:127.0.0.1:0", *cls.options)
        cls.addClassCleanup(cls.server.kill)
        cls.server.wait_until_ready()
        cls.ports = cls.server.tcp_ports()
        cls.port = cls.ports[0]
        cls.url = f"http://127.0.0.1:{cls.port}/"
        playwright = sync_playwright().start()
        cls.addClassCleanup(playwright.stop)
        cls.browser: Browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", *cls.arguments],
            env={**os.environ, **font_settings(Path(cls.folder.name))},
        )  # fmt: skip
        cls.addClassCleanup(cls.browser.close)

    def setUp(self) -> None:
        self.context: BrowserContext = self.browser.new_context(
            viewport={"width": 1280, "height": 800}, accept_downloads=True, locale="en-US", timezone_id="UTC"
        )
        self.context.set_default_timeout(TIMEOUT)
        self.addCleanup(self.context.close)
        self.page: Page = self.context.new_page()
        self.flaws: list[str] = []
        self.page.on("pageerror", lambda error: self.flaws.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.flaws.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("console", self.take)
        expect.set_options(timeout=TIMEOUT)

    def take(self, message: object) -> None:
        """Keeps what the browser complains about, but not what the server refuses."""
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.flaws.append(message.text)

    def tearDown(self) -> None:
        self.assertEqual(self.flaws, [])

    def run_larder(self, *words: str, input: str | None = None) -> str:
        environment = {**os.environ, "LARDER_SERVER": self.server.address}
        outcome = subprocess.run(
            [self.larder, *words], input=input, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return outcome.stdout

    def open(self, *names: str) -> None:
        """Opens a page by its address, anew."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}#/{'/'.join(quote(name, safe='') for name in names)}")
        self.page.wait_for_selector("header")

    def click(self, name: str, within: str = "body", exact: bool = True) -> None:
        self.page.locator(within).get_by_role("button", name=name, exact=exact).click()

    def saved(self, action: object) -> bytes:
        """Returns the file that an action makes the browser save."""
        with self.page.expect_download() as download:
            action()
        return Path(download.value.path()).read_bytes()

    @contextmanager
    def store(self, name: str = "films") -> Iterator[object]:
        with Client(self.server.address) as client:
            yield client.open(name)
