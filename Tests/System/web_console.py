"""Checks the console in a browser, as a person would use it: each page, at three sizes, with the keyboard alone, with text that
tries to be code, with few rights, and beside other sites that try to use it.

    python3 web_console.py --server PATH --larder PATH       starts this larderd in temporary directories

Requires `playwright` and `axe-playwright-python` from PyPI, beside this Python, and Debian's chromium. Prints how many checks
passed and exits with status 1 if any failed.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import http.client
import http.server
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from axe_playwright_python.sync_playwright import Axe
from brief_case import BriefCase, run
from larder import Client, Write
from web_screenshots import COMPARED, Pictures, fill
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from server_process import Server

SIZES = [(360, 640), (1280, 800), (2560, 1440)]
TIMEOUT = 15_000  # In milliseconds.
VECTORS = Path(__file__).resolve().parents[2] / "Protocol" / "vectors"
IMAGES = Path(__file__).resolve().parents[2] / "contrib" / "images"

# What must be shown as it is, as keys and values and names.
HOSTILE = [
    "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", '"><svg onload=alert(1)>', "javascript:alert(1)",
    "\u202eevil\u202c", "a\x00b", "line\nbreak", "__proto__", "constructor", "..", ".", "../../etc/passwd", "%2f%2e", "a?b#c&d=e",
    "<a href=javascript:alert(1)>x</a>", "{{7*7}}", "'; DROP TABLE films; --", " spaces ", "😀", "x" * 4096,
]  # fmt: skip


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
        found = re.search(r"listening address=tcp:127\.0\.0\.1:(\d+)", cls.server.log())
        assert found, cls.server.log()
        cls.port = int(found[1])
        cls.url = f"http://127.0.0.1:{cls.port}/"
        playwright = sync_playwright().start()
        cls.addClassCleanup(playwright.stop)
        cls.browser: Browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", *cls.arguments]
        )
        cls.addClassCleanup(cls.browser.close)

    def setUp(self) -> None:
        self.context: BrowserContext = self.browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
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


class PagesTests(ConsoleCase):
    """What a person does on each page."""

    def setUp(self) -> None:
        super().setUp()
        with self.store() as store:
            store.delete_all()
            store.put_many([
                Write(f"film/{number:04}", json.dumps({"title": f"Film {number}", "year": 1950 + number % 70, "rating": number % 10}).encode())
                for number in range(500)
            ])  # fmt: skip
            store.put("plain", b"some text")

    # Entries

    def test_tree_table_and_entry(self) -> None:
        self.open("store", "films", "entries")
        tree = self.page.get_by_role("tree", name="Keys")
        folder = tree.get_by_role("treeitem").filter(has_text="film/")
        expect(folder).to_contain_text("500")
        expect(self.page.get_by_text("501 entries")).to_be_visible()
        folder.locator(".twisty").click()
        expect(tree.get_by_role("treeitem").nth(1)).to_contain_text("0000")
        expect(self.page.get_by_text("500 entries that begin with film/")).to_be_visible()
        table = self.page.get_by_role("listbox", name="Entries")
        expect(table.get_by_role("option").first).to_contain_text("Film 0")
        # The last one can be reached at once.
        table.focus()
        self.page.keyboard.press("End")
        expect(table.get_by_role("option").filter(has_text="film/0499")).to_contain_text("Film 499")
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("heading", name="film/0499")).to_be_visible()
        expect(self.page.locator("pre.value")).to_have_text('{\n  "title": "Film 499",\n  "year": 1959,\n  "rating": 9\n}')

    def test_prefix_and_delimiter(self) -> None:
        with self.store() as store:
            store.put("user:1:name", b"Ada")
            store.put("user:1:age", b"36")
        self.open("store", "films", "entries")
        self.page.get_by_label("Prefix of keys").fill("user:")
        self.page.get_by_label("Prefix of keys").press("Enter")
        tree = self.page.get_by_role("tree", name="Keys")
        expect(tree.get_by_role("treeitem").first).to_contain_text("1:age")
        self.page.get_by_label("Delimiter of folders").fill(":")
        self.page.get_by_label("Delimiter of folders").press("Enter")
        expect(tree.get_by_role("treeitem")).to_have_count(1)
        expect(tree.get_by_role("treeitem").first).to_contain_text("1:")
        tree.locator(".twisty").first.click()
        expect(tree.get_by_role("treeitem")).to_have_count(3)
        self.page.get_by_label("Prefix of keys").fill("user:1:")
        self.page.get_by_label("Prefix of keys").press("Enter")
        expect(tree.get_by_role("treeitem")).to_have_count(2)
        expect(tree.get_by_role("treeitem").first).to_contain_text("age")

    def test_views_of_a_value(self) -> None:
        with self.store() as store:
            store.put("bytes", bytes(range(256)))
            store.put("large numbers", b'{"n": 12345678901234567890, "m": 1.50}')
        self.open("store", "films", "entries", "bytes")
        value = self.page.locator("pre.value")
        expect(value).to_contain_text("00000010  10 11 12")
        self.page.get_by_label("View").select_option("base64")
        expect(value).to_contain_text("AAECAwQFBgcICQoLDA0ODxAR")
        self.open("store", "films", "entries", "large numbers")
        # Numbers are as they were written.
        expect(value).to_have_text('{\n  "n": 12345678901234567890,\n  "m": 1.50\n}')
        self.page.get_by_label("View").select_option("hex")
        expect(value).to_contain_text("7b 22 6e 22")
        with self.store() as store:
            store.put("list", [b"first", b"\xff\x00"])
        self.open("store", "films", "entries", "list")
        expect(self.page.locator(".facts")).to_contain_text("a list of values")
        expect(self.page.get_by_role("article").get_by_role("listitem")).to_have_text(["first", "ff 00"])
        expect(self.page.get_by_role("button", name="Edit")).to_be_disabled()
        with self.store() as store:
            store.put("empty", b"")
        self.open("store", "films", "entries", "empty")
        expect(self.page.get_by_text("The value is empty.")).to_be_visible()

    def test_edits(self) -> None:
        self.open("store", "films", "entries", "plain")
        self.click("Edit")
        self.page.get_by_label("Value as text").fill("other text ✓")
        self.page.keyboard.press("Control+Enter")
        expect(self.page.locator("pre.value")).to_have_text("other text ✓")
        with self.store() as store:
            self.assertEqual(store.get("plain").value, "other text ✓".encode())
            store.put("bytes", b"\xff\x00", expire_after_milliseconds=500_000)
        self.open("store", "films", "entries", "bytes")
        self.click("Edit")
        self.page.get_by_label("Value as hex").fill("ff 0")
        self.click("Save")
        expect(self.page.get_by_role("alert")).to_contain_text("two digits")
        self.page.get_by_label("Value as hex").fill("ff 01 02")
        self.click("Save")
        expect(self.page.locator("pre.value")).to_contain_text("ff 01 02")
        with self.store() as store:
            entry = store.get("bytes")
            self.assertEqual(entry.value, b"\xff\x01\x02")
            self.assertTrue(400_000 < entry.expire_after_milliseconds <= 500_000, entry.expire_after_milliseconds)

    def test_conflicts(self) -> None:
        self.open("store", "films", "entries", "plain")
        for theirs, label, winner in [(b"theirs", "Save my version", b"mine"), (b"theirs again", "Keep the other version", b"theirs again")]:
            self.click("Edit")
            self.page.get_by_label("Value as text").fill("mine")
            with self.store() as store:
                store.put("plain", theirs)
            self.click("Save")
            expect(self.page.get_by_role("alert").first).to_contain_text("Nothing was saved")
            expect(self.page.get_by_role("region", name="The other version")).to_have_text(theirs.decode())
            expect(self.page.get_by_label("Your version")).to_have_value("mine")
            self.click(label)
            expect(self.page.locator("pre.value")).to_have_text(winner.decode())
            with self.store() as store:
                self.assertEqual(store.get("plain").value, winner)

    def test_new_entries_expiry_and_deletes(self) -> None:
        self.open("store", "films", "entries")
        self.click("New entry…")
        dialog = self.page.get_by_role("dialog")
        dialog.get_by_label("Key").fill("plain")
        dialog.get_by_label("Value").fill("mine")
        self.click("Create")
        expect(dialog.get_by_role("alert")).to_contain_text("has an entry")
        dialog.get_by_label("Key").fill("new/one")
        dialog.get_by_label("Expires in").fill("soon")
        self.click("Create")
        expect(dialog.get_by_role("alert")).to_contain_text("A time is a number")
        dialog.get_by_label("Expires in").fill("15 min")
        self.click("Create")
        expect(self.page.get_by_role("heading", name="new/one")).to_be_visible()
        expect(self.page.locator(".facts")).to_contain_text("expires in 14 min")
        self.click("Expiry…")
        dialog.get_by_label("Expires in").fill("")
        self.click("Save", "dialog")
        expect(self.page.locator(".facts")).to_contain_text("doesn't expire")
        self.click("Delete…")
        self.click("Cancel", "dialog")
        self.click("Delete…")
        self.click("Delete", "dialog")
        expect(self.page.get_by_text("Deleted new/one.")).to_be_visible()
        with self.store() as store:
            self.assertEqual(store.get("new/one"), None)
            self.assertEqual(store.get("plain").value, b"some text")

    def test_large_values(self) -> None:
        value = os.urandom(12 << 20)
        with tempfile.NamedTemporaryFile() as file:
            file.write(value)
            file.flush()
            self.open("store", "films", "entries", "plain")
            self.click("Upload…")
            self.page.get_by_role("dialog").get_by_label("File").set_input_files(file.name)
            self.click("Upload", "dialog")
            # The browser reads the file meanwhile.
            expect(self.page.locator(".facts")).to_contain_text("12 MiB")
        expect(self.page.locator(".pager")).to_contain_text("bytes 0 to 65,535 of 12,582,912")
        self.click("Next part")
        expect(self.page.locator("pre.value")).to_contain_text("00010000")
        row = " ".join(f"{byte:02x}" for byte in value[65536:65552])
        expect(self.page.locator("pre.value")).to_contain_text(row)
        saved = self.saved(lambda: self.click("Download"))
        self.assertEqual(hashlib.sha256(saved).digest(), hashlib.sha256(value).digest())
        # Only what is shown is in the page.
        self.assertTrue(self.page.evaluate("document.body.textContent.length") < 400_000)

    def test_deletes_below_a_prefix(self) -> None:
        self.open("store", "films", "entries")
        tree = self.page.get_by_role("tree", name="Keys")
        tree.get_by_role("treeitem").first.click()
        expect(self.page.get_by_role("heading", name="film/")).to_be_visible()
        self.click("Delete these entries")
        dialog = self.page.get_by_role("dialog")
        expect(dialog).to_contain_text("500 entries will be gone: all whose keys begin with film/")
        dialog.get_by_role("textbox").fill("50")
        self.click("Delete", "dialog")
        expect(dialog.get_by_role("alert")).to_contain_text("not the number")
        dialog.get_by_role("textbox").fill("500")
        self.click("Delete", "dialog")
        expect(self.page.get_by_text("Deleted 500 entries.")).to_be_visible()
        with self.store() as store:
            self.assertEqual(store.count(), 1)

    def test_many_keys(self) -> None:
        """However many keys there are, only some are loaded, and any can be reached."""
        total = 50_000
        with self.store() as store:
            for start in range(0, total, 5_000):
                store.put_many([Write(f"many/{number:07}", b"x") for number in range(start, start + 5_000)])
        self.open("store", "films", "entries")
        tree = self.page.get_by_role("tree", name="Keys")
        folder = tree.get_by_role("treeitem").filter(has_text="many/")
        expect(folder).to_contain_text("50,000")
        folder.locator(".twisty").click()
        expect(tree.get_by_role("treeitem").filter(has_text="0000000")).to_be_visible()
        table = self.page.get_by_role("listbox", name="Entries")
        expect(table.get_by_role("option").first).to_contain_text("many/0000000")
        table.evaluate("(element) => { element.scrollTop = element.scrollHeight / 2 }")
        expect(table.get_by_role("option").filter(has_text="many/0025000")).to_be_visible()
        self.assertTrue(self.page.locator(".row").count() < 200)

    # Finds

    def find(self, query: str) -> None:
        self.page.get_by_label("Query", exact=True).fill(query)
        self.click("Run")

    def test_finds(self) -> None:
        self.open("store", "films", "find")
        self.find('{"selector": {"year": 1997, "rating": {"$gte": 5}}, "sort": [{"rating": "desc"}]}')
        documents = self.page.get_by_role("region", name="Documents")
        expect(documents.get_by_role("row")).to_have_count(8)
        self.find('{"selector": {"rating": 3}, "limit": 10}')
        expect(self.page.locator(".results .summary")).to_contain_text("10 documents; examined")
        first = documents.get_by_role("row").nth(1)
        expect(first).to_contain_text("film/0003")
        self.click("Next page")
        expect(documents.get_by_role("row").nth(1)).to_contain_text("film/0103")
        rows = list(csv.reader(io.StringIO(self.saved(lambda: self.click("Save all matches as CSV")).decode())))
        self.assertEqual((len(rows), rows[0], rows[1]), (51, ["id", "title", "year", "rating"], ["film/0003", "Film 3", "1953", "3"]))
        lines = self.saved(lambda: self.click("Save all matches as lines of JSON")).decode().splitlines()
        self.assertEqual((len(lines), json.loads(lines[-1])["title"]), (50, "Film 493"))
        self.page.get_by_label("View of the results").select_option("json")
        expect(self.page.locator("article.document").first).to_contain_text('"title": "Film 103"')
        self.page.get_by_label("Earlier queries").select_option(index=2)
        expect(self.page.get_by_label("Query", exact=True)).to_have_value(re.compile('"year": 1997'))

    def test_errors_are_marked_at_their_place(self) -> None:
        self.open("store", "films", "find")
        cases = [
            ('{"selector": {"year": {"$gtt": 2000}}}', '"$gtt"', "did you mean $gt"),
            ('{"selector": {"year": 2000,}}', "}", "a name in double quotes"),
            ('{"selector": {"year": oops}}', "oops", "a value is expected"),
            ('{"selectr": {}}', '"selectr"', 'no member "selectr"'),
        ]
        for query, place, message in cases:
            self.page.get_by_label("Query", exact=True).fill(query)
            expect(self.page.locator(".marks mark")).to_have_text(place)
            expect(self.page.locator(".flaw")).to_contain_text(message)
        # What only the server knows.
        self.find('{"selector": {"year": {"$mod": [0, 1]}}}')
        expect(self.page.locator(".marks mark")).to_have_text('"$mod"')
        self.find('{"selector": {}, "sort": ["a", 5]}')
        expect(self.page.locator(".marks mark")).to_have_text("5")

    def test_plans_and_indexes(self) -> None:
        self.open("store", "films", "find")
        self.page.get_by_label("Query", exact=True).fill('{"selector": {"year": {"$gt": 2000}}, "sort": ["year"], "limit": 5}')
        self.click("Explain")
        plan = self.page.locator("svg.plan")
        expect(plan).to_have_attribute("aria-label", re.compile("^Plan: Scan .*Sort.*Result"))
        self.click("Create the index on year")
        expect(self.page.get_by_text(re.compile("The index .* is being built"))).to_be_visible()
        # It is small.
        for _ in range(100):
            self.click("Explain")
            self.page.wait_for_timeout(100)
            if plan.get_attribute("aria-label").startswith("Plan: Index"):
                break
        expect(plan).to_have_attribute("aria-label", re.compile("^Plan: Index year 1 range"))
        self.page.get_by_role("link", name="Indexes").click()
        row = self.page.get_by_role("row").filter(has_text="year")
        expect(row).to_contain_text("ready")
        expect(row).to_contain_text("500")
        self.click("New index…")
        dialog = self.page.get_by_role("dialog")
        dialog.get_by_label("Fields").fill("title, -rating")
        dialog.get_by_label("Name").fill("by title")
        dialog.get_by_label("Only documents that match").fill('{"rating": {"$gt": 5}}')
        self.click("Create", "dialog")
        other = self.page.get_by_role("row").filter(has_text="by title")
        expect(other).to_contain_text("title, rating (desc)")
        expect(other).to_contain_text("ready")
        self.click("Delete by title")
        self.click("Delete", "dialog")
        expect(other).to_have_count(0)

    # The server

    def test_watch(self) -> None:
        self.open("store", "films", "watch")
        expect(self.page.get_by_text("Watching.")).to_be_visible()
        changes = self.page.get_by_role("region", name="Changes").get_by_role("row")
        with self.store() as store:
            store.put("watched/1", b"first")
            expect(changes.nth(1)).to_contain_text("watched/1")
            expect(changes.nth(1)).to_contain_text("first")
            self.click("Pause")
            store.put("watched/2", b"second")
            store.delete("watched/1")
            self.page.wait_for_timeout(300)
            expect(changes).to_have_count(2)
            self.click("Resume")
            expect(changes.nth(1)).to_contain_text("delete")
            expect(changes.nth(2)).to_contain_text("watched/2")
            self.page.get_by_label("Prefix of keys").fill("only/")
            self.page.get_by_label("Prefix of keys").press("Enter")
            expect(self.page.get_by_text("Watching.")).to_be_visible()
            store.put("other", b"")
            store.put("only/this", b"")
            expect(changes.nth(1)).to_contain_text("only/this")
            expect(changes).to_have_count(2)

    def test_live(self) -> None:
        self.open("live")
        chart = self.page.locator(".chart").first
        expect(chart.locator("strong")).not_to_have_text("–")
        for text in ["99 % within", "records", "Slow log"]:
            expect(self.page.get_by_text(text).first).to_be_visible()
        expect(self.page.get_by_role("region", name="Connections")).to_contain_text("127.0.0.1")
        self.click("Pause")
        path = chart.locator(".line").get_attribute("d")
        self.page.wait_for_timeout(1_500)
        self.assertEqual(chart.locator(".line").get_attribute("d"), path)
        self.click("Resume")
        expect(chart.locator(".line")).not_to_have_attribute("d", path)

    def test_servers_of_a_cluster(self) -> None:
        """With what the protocol's vector says, because this server has no database."""
        (report,) = [
            json.loads(vector["frame"]["cluster"])
            for vector in json.loads((VECTORS / "replies.json").read_text()) if vector["name"] == "cluster"
        ]  # fmt: skip
        self.page.route("**/v1/cluster", lambda route: route.fulfill(json={"databases": report}))
        self.open("live")
        expect(self.page.get_by_role("region", name="Servers of main")).to_contain_text("kitchen (this one)")
        expect(self.page.get_by_role("region", name="Stores of main").get_by_role("row").nth(1)).to_contain_text("orders")

    def test_stores(self) -> None:
        self.open("stores")
        self.click("New store…", "main")
        dialog = self.page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("temporary")
        dialog.get_by_label("Engine").fill("tape")
        self.click("Create", "dialog")
        expect(dialog.get_by_role("alert")).to_contain_text("tape")
        dialog.get_by_label("Engine").fill("memory")
        self.click("Create", "dialog")
        expect(self.page.get_by_role("heading", name="All entries")).to_be_visible()
        with self.store("temporary") as store:
            store.put("text", b"text")
            store.put("bytes", b"\xff\xfe", expire_after_milliseconds=900_000)
            store.put("large", b"long text " * 1_000)
            store.put("large bytes", b"\xff" * 9_999)
        self.open("stores")
        self.click("Details of temporary")
        expect(dialog).to_contain_text("incarnation")
        self.click("Close", "dialog")
        backup = self.saved(lambda: self.click("Back up temporary"))
        self.click("Drop temporary")
        dialog.get_by_label("Type the name of the store").fill("temp")
        self.click("Drop", "dialog")
        expect(dialog.get_by_role("alert")).to_contain_text("not the name")
        dialog.get_by_label("Type the name of the store").fill("temporary")
        self.click("Drop", "dialog")
        expect(self.page.get_by_text("The store temporary is gone.")).to_be_visible()
        expect(self.page.get_by_role("row").filter(has_text="temporary")).to_have_count(0)
        # The command line restores the backup.
        self.run_larder("create", "temporary", "memory")
        self.run_larder("load", "temporary", "-", input=backup.decode())
        with self.store("temporary") as store:
            self.assertEqual(store.get("text").value, b"text")
            self.assertEqual(store.get("large").value, b"long text " * 1_000)
            self.assertEqual(store.get("large bytes").value, b"\xff" * 9_999)
            entry = store.get("bytes")
            self.assertEqual(entry.value, b"\xff\xfe")
            self.assertTrue(800_000 < entry.expire_after_milliseconds <= 900_000)
        self.run_larder("drop", "temporary")

    # How it is used

    def test_keyboard_alone(self) -> None:
        press = self.page.keyboard.press
        self.open("stores")
        self.page.locator("body").press("?")
        expect(self.page.get_by_role("dialog")).to_contain_text("Keyboard shortcuts")
        press("Escape")
        for _ in range(30):  # To the store in the list.
            press("Tab")
            if self.page.evaluate("document.activeElement.textContent").startswith("films"):
                break
        press("Enter")
        tree = self.page.get_by_role("tree", name="Keys")
        expect(tree.get_by_role("treeitem").first).to_be_visible()
        press("/")
        press("Tab")
        press("Tab")
        press("Tab")
        expect(tree).to_be_focused()
        press("ArrowDown")
        press("ArrowRight")
        expect(tree.get_by_role("treeitem").nth(1)).to_contain_text("0000")
        press("ArrowDown")
        press("ArrowDown")
        press("Enter")
        heading = self.page.get_by_role("heading", name="film/0001")
        expect(heading).to_be_focused()
        expect(self.page.locator("pre.value")).to_be_visible()
        press("Tab")
        press("Tab")
        press("Enter")  # Edit
        expect(self.page.get_by_label("Value as json")).to_be_focused()
        press("Control+a")
        self.page.keyboard.type("{}")
        press("Control+Enter")
        expect(self.page.locator("pre.value")).to_have_text("{}")
        tree.focus()
        press("Delete")
        expect(self.page.get_by_role("dialog")).to_contain_text("film/0001")
        press("Tab")
        press("Enter")
        expect(self.page.get_by_text("Deleted film/0001.")).to_be_visible()
        self.page.locator("h1").first.press("4")
        query = self.page.get_by_label("Query", exact=True)
        expect(query).to_be_focused()
        press("Control+Enter")
        expect(self.page.locator(".results .summary")).to_contain_text("25 documents")

    def test_sizes_and_accessibility(self) -> None:
        """Each page fits into each size, in both themes, and has no serious fault of accessibility."""
        self.run_larder("index", "create", "films", "by-year", "year")
        pages = [
            ("stores",), ("live",), ("store", "films", "entries"), ("store", "films", "entries", "film/0001"),
            ("store", "films", "find"), ("store", "films", "indexes"), ("store", "films", "watch"),
        ]  # fmt: skip
        for theme in ["light", "dark"]:
            self.page.emulate_media(color_scheme=theme)
            for width, height in SIZES:
                self.page.set_viewport_size({"width": width, "height": height})
                for names in pages:
                    with self.subTest(theme=theme, width=width, page="/".join(names)):
                        self.open(*names)
                        if names[-1] == "find":
                            self.find('{"selector": {"year": {"$gt": 2000}}}')
                            self.page.get_by_role("region", name="Documents").wait_for()
                        elif names[-1] == "live":
                            self.page.get_by_text("Slow log").wait_for()
                        self.page.wait_for_timeout(150)
                        self.assertTrue(self.page.evaluate("document.documentElement.scrollWidth") <= width)
                        self.check_accessibility()
        self.open("stores")
        self.click("New store…", "main")
        self.check_accessibility()

    def check_accessibility(self) -> None:
        faults = [
            f"{violation['id']}: {violation['help']}: {[node['html'] for node in violation['nodes']][:3]}"
            for violation in Axe().run(self.page).response["violations"]
            if violation["impact"] in ("serious", "critical")
        ]
        self.assertEqual(faults, [])

    def test_failures_of_the_server(self) -> None:
        self.open("stores")
        self.page.route("**/v1/**", lambda route: route.abort())
        self.page.get_by_role("link", name="films").first.click()
        expect(self.page.get_by_text("The server doesn't respond").first).to_be_visible()
        self.page.unroute("**/v1/**")
        self.click("Load the keys again")
        expect(self.page.get_by_role("treeitem").first).to_be_visible()


class HostileTextTests(ConsoleCase):
    """Text that tries to be code is shown as it is."""

    def setUp(self) -> None:
        super().setUp()
        with self.store() as store:
            store.delete_all()

    def test_keys_and_values(self) -> None:
        with self.store() as store:
            for text in HOSTILE:
                store.put(text, text.encode())
        self.open("store", "films", "entries")
        expect(self.page.get_by_text(f"{len(HOSTILE)} entries")).to_be_visible()
        self.page.get_by_label("Delimiter of folders").fill("")
        self.page.get_by_label("Delimiter of folders").press("Enter")
        self.page.set_viewport_size({"width": 1280, "height": 1200})
        keys = self.page.get_by_role("tree", name="Keys").locator(".verbatim")
        expect(keys.filter(has_text="etc/passwd")).to_be_visible()
        expect(keys).to_have_count(len(HOSTILE))
        self.assertEqual(sorted(keys.evaluate_all("(all) => all.map((element) => element.textContent)")), sorted(HOSTILE))
        for text in HOSTILE:
            with self.subTest(text=text[:40]):
                self.open("store", "films", "entries", text)
                expect(self.page.locator("pre.value")).to_be_visible()
                self.assertEqual(self.page.locator("article h1 .verbatim").evaluate("(element) => element.textContent"), text)
                value = self.page.locator("pre.value").evaluate("(element) => element.textContent")
                self.assertEqual(value, text)
                # The key arrives as it is, when it is written and deleted, too.
                self.click("Edit")
                self.page.locator("textarea.editor").press("Control+End")
                self.page.keyboard.type("!")
                self.click("Save")
                expect(self.page.get_by_text("Saved.")).to_be_visible()
                with self.store() as store:
                    self.assertEqual(store.get(text).value, f"{text}!".encode())
                self.click("Delete…")
                self.click("Delete", "dialog")
                expect(self.page.get_by_role("tree", name="Keys")).to_be_visible()
                self.page.get_by_text("Deleted ").first.wait_for()
                with self.store() as store:
                    self.assertEqual(store.get(text), None)

    def test_documents_and_errors(self) -> None:
        with self.store() as store:
            for number, text in enumerate(HOSTILE):
                store.put(f"document/{number:02}", json.dumps({text: text, "n": number}).encode())
        self.open("store", "films", "find")
        for view in ["table", "json"]:
            self.page.get_by_label("Query", exact=True).fill('{"selector": {"n": {"$gte": 0}}}')
            self.click("Run")
            self.page.get_by_label("View of the results").select_option(view)
            text = self.page.locator(".results").evaluate("(element) => element.textContent")
            for hostile in HOSTILE[:4]:
                self.assertTrue(hostile in text or json.dumps(hostile) in text, hostile)
        for hostile in HOSTILE[:-1]:
            self.page.get_by_label("Query", exact=True).fill(json.dumps({"selector": {"n": {"$mod": hostile}}}))
            self.click("Run")
            expect(self.page.locator(".flaw")).not_to_be_empty()
            self.page.get_by_label("Query", exact=True).fill(json.dumps({hostile: 1}))
            expect(self.page.locator(".flaw")).to_contain_text("no member")
        self.open("store", "<img src=x onerror=alert(1)>", "entries")
        expect(self.page.get_by_text("onerror").first).to_be_visible()
        self.open("store", "films", "watch")
        expect(self.page.get_by_text("Watching.")).to_be_visible()
        with self.store() as store:
            for text in HOSTILE:
                store.put(text, text.encode())
        expect(self.page.get_by_role("region", name="Changes").get_by_role("row")).to_have_count(len(HOSTILE) + 1)


class RightsTests(ConsoleCase):
    """Whoever may do little is refused by the server, not by the page."""

    options: list[str] = []

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory(prefix="larder-tokens-") as folder:
            tokens = Path(folder) / "tokens"
            cls.tokens = {
                name: subprocess.run(
                    [cls.larder, "token", "create", name, "--file", tokens], check=True, stdout=subprocess.PIPE, text=True
                ).stdout.strip()
                for name in ["admin", "reader", "tenant"]
            }
            configuration = Path(folder) / "larderd.yaml"
            configuration.write_text(f"""
stores: [films=memory]
tokens: {tokens}
access:
- unix=admin
- principal:admin=admin
- principal:reader=read:films
- principal:tenant=write:films/tenant/*
""")
            cls.options = ["--config", str(configuration)]
            super().setUpClass()

    def setUp(self) -> None:
        super().setUp()
        with self.store() as store:
            store.put_many([Write(f"{folder}/{number}", b"value") for folder in ["tenant", "other"] for number in range(5)])

    def log_in(self, name: str) -> None:
        self.page.goto(self.url)
        self.page.get_by_label("Token").fill(self.tokens[name])
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_selector("header")

    def test_logging_in(self) -> None:
        self.page.goto(self.url)
        self.page.get_by_label("Token").fill("not a token")
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.get_by_role("alert")).to_contain_text("not accepted")
        # After a wrong token, others have to wait.
        self.page.wait_for_timeout(300)
        self.log_in("admin")
        expect(self.page.locator(".who")).to_have_text("admin")
        self.page.reload()
        expect(self.page.locator(".who")).to_have_text("admin")
        self.click("Log out")
        expect(self.page.get_by_label("Token")).to_be_visible()

    def test_links(self) -> None:
        """A link has the rights of the user of the command line, once, and until the browser logs out."""
        link = self.run_larder("console").strip()
        self.assertTrue(link.startswith(f"{self.url}#link=ldr_"), link)
        self.page.goto(link)
        expect(self.page.locator(".who")).to_have_text(f"uid {os.getuid()}")
        self.assertTrue("ldr_" not in self.page.url)
        with self.page.expect_request("**/v1/stats") as used:
            self.open("live")
        token = used.value.headers["authorization"].removeprefix("Bearer ")
        other = self.context.new_page()
        other.goto(link)
        expect(other.get_by_role("alert")).to_contain_text("was used")
        # It is not the token of anything else.
        self.assertEqual(self.status(token), 200)
        self.assertEqual(self.status(link.partition("=")[2]), 401)
        self.click("Log out")
        expect(self.page.get_by_label("Token")).to_be_visible()
        self.assertEqual(self.status(token), 401)

    def status(self, token: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/stores", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status

    def test_reader(self) -> None:
        self.log_in("reader")
        self.open("store", "films", "entries", "other/1")
        self.click("Edit")
        self.page.locator("textarea.editor").fill("changed")
        self.click("Save")
        expect(self.page.get_by_role("alert")).to_contain_text("may not")
        self.click("Cancel")
        self.click("Delete…")
        self.click("Delete", "dialog")
        expect(self.page.get_by_role("dialog").get_by_role("alert")).to_contain_text("may not")
        self.page.keyboard.press("Escape")
        self.open("live")
        expect(self.page.get_by_text("may not").first).to_be_visible()
        with self.store() as store:
            self.assertEqual(store.get("other/1").value, b"value")

    def test_tenant(self) -> None:
        self.log_in("tenant")
        self.open("store", "films", "entries")
        expect(self.page.get_by_text("may not").first).to_be_visible()
        self.page.get_by_label("Prefix of keys").fill("tenant/")
        self.page.get_by_label("Prefix of keys").press("Enter")
        expect(self.page.get_by_role("tree").get_by_role("treeitem")).to_have_count(5)
        expect(self.page.get_by_text("5 entries that begin with tenant/")).to_be_visible()
        self.page.get_by_label("Prefix of keys").fill("other/")
        self.page.get_by_label("Prefix of keys").press("Enter")
        expect(self.page.get_by_role("tree").get_by_role("treeitem")).to_have_count(0)
        self.open("store", "films", "entries", "other/1")
        expect(self.page.get_by_text("may not").first).to_be_visible()


ATTACK = """<!doctype html><title>Another site</title><iframe name="frame"></iframe>
<script>
const [http, native, resp] = [%d, %d, %d];
const target = (port, host = "127.0.0.1") => `http://${host}:${port}`;
window.results = [];
async function attempt(name, action) {
  let outcome;
  try { outcome = await action(); } catch (error) { outcome = `failed: ${error}`; }
  window.results.push([name, String(outcome)]);
}
const entry = "/v1/stores/films/entries/victim";
window.done = (async () => {
  for (const host of ["127.0.0.1", "localhost"]) {
    const base = target(http, host);
    for (const path of ["/v1/stores", entry, "/v1/whoami", "/metrics", "/openapi.json"]) {
      await attempt(`read ${path}`, async () => (await fetch(base + path)).text());
      await attempt(`read blindly ${path}`, async () => (await fetch(base + path, { mode: "no-cors" })).text());
    }
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json"]) {
      for (const path of ["/v1/stores/films/update", "/v1/stores/films/delete", "/v1/stores/films/apply"]) {
        const body = JSON.stringify({ selector: {}, delete: true, keys: ["victim"], operations: [{ delete: "victim" }] });
        await attempt(`post ${type} ${path}`, async () => (await fetch(base + path, { method: "POST", mode: "no-cors", headers: { "Content-Type": type }, body })).text());
      }
    }
    await attempt("put", async () => (await fetch(base + entry, { method: "PUT", headers: { "X-Larder": "1" }, body: "owned" })).text());
    await attempt("delete", async () => (await fetch(base + entry, { method: "DELETE", headers: { "X-Larder": "1" } })).text());
    await attempt("beacon", () => navigator.sendBeacon(base + "/v1/stores/films/delete", '{"keys":["victim"]}'));
    for (const path of ["/", entry, "/console/main.js"]) {
      await attempt(`image ${path}`, () => new Promise((resolve) => {
        const image = new Image();
        image.onload = () => resolve("loaded");
        image.onerror = () => resolve("failed: image");
        image.src = base + path;
      }));
      await attempt(`script ${path}`, () => new Promise((resolve) => {
        const script = document.createElement("script");
        script.onload = () => resolve("loaded");
        script.onerror = () => resolve("failed: script");
        script.src = base + path;
        document.head.append(script);
      }));
    }
    await attempt("frame", () => new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.onload = () => {
        let text;
        try { text = frame.contentDocument ? "readable" : "failed: opaque"; } catch { text = "failed: opaque"; }
        resolve(text);
      };
      frame.src = base + "/";
      document.body.append(frame);
    }));
    const form = document.createElement("form");
    Object.assign(form, { method: "POST", action: base + "/v1/stores/films/delete", target: "frame", enctype: "text/plain" });
    const input = document.createElement("input");
    [input.name, input.value] = ['{"keys":["victim"], "x":"', '"}'];
    form.append(input);
    document.body.append(form);
    form.submit();
    for (const port of [http, native, resp]) {
      await attempt(`socket ${port}`, () => new Promise((resolve) => {
        const socket = new WebSocket(`ws://${host}:${port}/`);
        socket.onopen = () => resolve("open");
        socket.onerror = () => resolve("failed: socket");
        setTimeout(() => resolve("failed: timeout"), 3000);
      }));
    }
    for (const port of [native, resp]) {
      await attempt(`other port ${port}`, async () => (await fetch(target(port, host), { method: "POST", mode: "no-cors", body: "FLUSHALL\\r\\nDEL victim\\r\\n" })).text());
    }
  }
  return true;
})();
</script>"""


class OtherSitesTests(ConsoleCase):
    """Other sites, and names that lead to this machine, can neither read nor change anything."""

    options = ["--store", "films=memory", "--listen", "tcp:127.0.0.1:0", "--listen", "resp:127.0.0.1:0"]
    arguments = ["--host-resolver-rules=MAP evil.test 127.0.0.1", "--disable-features=LocalNetworkAccessChecks"]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.ports = [int(port) for port in re.findall(r"listening address=tcp:127\.0\.0\.1:(\d+)", cls.server.log())]
        assert len(cls.ports) == 3, cls.server.log()

    def setUp(self) -> None:
        super().setUp()
        with self.store() as store:
            store.put("victim", b"secret")

    def tearDown(self) -> None:
        # The browser says a lot about what it has blocked.
        self.assertEqual([flaw for flaw in self.flaws if flaw.startswith("dialog")], [])
        with self.store() as store:
            self.assertEqual(store.get("victim").value, b"secret")
            self.assertEqual(store.count(), 1)

    def test_another_origin(self) -> None:
        attack = (ATTACK % tuple(self.ports)).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(attack)

            def log_message(self, *arguments: object) -> None:
                pass

        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        self.addCleanup(site.server_close)
        self.addCleanup(site.shutdown)
        self.page.goto(f"http://evil.test:{site.server_port}/")
        self.page.evaluate("window.done")
        outcomes = self.page.evaluate("window.results")
        self.assertTrue(len(outcomes) > 60, len(outcomes))
        # An opaque response has no text, and a beacon was only queued.
        learned = [
            outcome for outcome in outcomes if not outcome[1].startswith("failed") and outcome[1] != "" and outcome[0] != "beacon"
        ]  # fmt: skip
        self.assertEqual(learned, [])
        self.page.wait_for_timeout(500)

    def test_rebound_name(self) -> None:
        for path in ["", "console/main.js", "v1/stores", "v1/stores/films/entries/victim", "openapi.json", "metrics"]:
            response = self.page.goto(f"http://evil.test:{self.port}/{path}")
            self.assertEqual(response.status, 421, path)
            self.assertTrue("secret" not in self.page.content())
        # A page that was loaded before the name has led to this machine has the origin of what it asks for.
        self.page.route("**/page", lambda route: route.fulfill(body="<p>A page</p>", content_type="text/html"))
        self.page.goto(f"http://evil.test:{self.port}/page")
        for method in ["GET", "PUT", "DELETE"]:
            status = self.page.evaluate(
                "async (method) => (await fetch('/v1/stores/films/entries/victim', { method, headers: { 'X-Larder': '1' } })).status",
                method,
            )  # fmt: skip
            self.assertEqual(status, 421)

    def test_links_from_elsewhere(self) -> None:
        """A link on another site may lead to the console, but not be followed into its data."""
        self.page.goto("data:text/html,<a>x</a>")
        self.page.evaluate("(url) => { location.href = url }", self.url)
        self.page.wait_for_selector("header")


class PicturesTests(ConsoleCase):
    """The pictures in the documentation show the console as it is."""

    options = ["--store", "films=memory", "--store", "sessions=memory"]

    def test_pictures(self) -> None:
        fill(self.server.address)
        pictures = Pictures(self.page, self.url, self.server.address)
        for name in COMPARED:
            shown = (IMAGES / f"console-{name}.png").read_bytes()
            now = getattr(pictures, name)()
            # A quarter of the size, so that what a font changes by a pixel doesn't matter.
            share = self.context.new_page().evaluate(
                """async (pictures) => {
                  const [first, second] = await Promise.all(pictures.map(async (picture) => {
                    const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${picture}`)).blob());
                    const context = new OffscreenCanvas(300, 180).getContext("2d");
                    context.drawImage(bitmap, 0, 0, 300, 180);
                    return context.getImageData(0, 0, 300, 180).data;
                  }));
                  let count = 0;
                  for (let index = 0; index < first.length; index += 4) {
                    if ([0, 1, 2].some((color) => Math.abs(first[index + color] - second[index + color]) > 40)) count += 1;
                  }
                  return count / (300 * 180);
                }""",
                [base64.b64encode(picture).decode() for picture in (shown, now)],
            )
            self.assertTrue(share < 0.03, f"{name}: {share:.3f} of the picture is different; run contrib/screenshots and look")


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the console in a browser.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--larder", metavar="PATH", type=Path, required=True, help="the larder to run")
    parser.add_argument("names", metavar="NAME", nargs="*", help="the only tests to run")
    options = parser.parse_args()
    ConsoleCase.larderd, ConsoleCase.larder = options.server.resolve(), options.larder.resolve()
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{name}*" for name in options.names] or None
    cases = [PagesTests, HostileTextTests, RightsTests, OtherSitesTests, PicturesTests]
    passed, failed = run(unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
