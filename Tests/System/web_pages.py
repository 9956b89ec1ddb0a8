"""What a person does on each page of the console."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import tempfile
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from larder import Write
from playwright.sync_api import expect
from web_case import ConsoleCase

SIZES = [(360, 640), (1280, 800), (2560, 1440)]
VECTORS = Path(__file__).resolve().parents[2] / "Protocol" / "vectors"


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
        expect(self.page.locator(".facts")).to_contain_text("A list of 2 values, 7 bytes")
        expect(self.page.locator(".element pre")).to_have_text(["first", re.compile("^00000000  ff 00 ")])
        # What the sizes of its values are in front of is of no use to a person.
        expect(self.page.get_by_label("View", exact=True)).to_have_count(0)
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
        expect(dialog.get_by_role("alert")).to_contain_text("the entry has revision")
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

    # What isn't lost

    def test_unsaved_changes(self) -> None:
        """Nothing that was typed is lost without a question."""
        self.open("store", "films", "entries")
        tree = self.page.get_by_role("tree", name="Keys")
        tree.get_by_role("treeitem").filter(has_text="plain").click()
        self.click("Edit")
        editor = self.page.get_by_label("Value as text")
        editor.fill("changed")
        address = self.page.url
        dialog = self.page.get_by_role("dialog")
        leave = {
            "another folder": lambda: tree.get_by_role("treeitem").filter(has_text="film/").click(),
            "another prefix": lambda: (
                self.page.get_by_label("Prefix of keys").fill("film/"), self.page.get_by_label("Prefix of keys").press("Enter"),
            ),
            "the keys again": lambda: self.click("Load the keys again"),
            "another page": lambda: self.page.get_by_role("link", name="Find").click(),
            "the name of the program": lambda: self.page.get_by_role("link", name="Larder").click(),
            "another address": lambda: self.page.evaluate("location.hash = '#/stores'"),
            "back": lambda: self.page.evaluate("history.back()"),
        }  # fmt: skip
        for name, action in leave.items():
            with self.subTest(by=name):
                action()
                expect(dialog).to_contain_text("isn't saved")
                self.click("Cancel", "dialog")
                expect(dialog).to_have_count(0)
                expect(self.page).to_have_url(address)
                expect(editor).to_have_value("changed")
        self.page.evaluate("location.reload()")
        self.page.wait_for_timeout(200)
        self.assertEqual(self.flaws, ["dialog: "], "the browser asks before it loads the page again")
        self.flaws.clear()
        expect(editor).to_have_value("changed")
        self.page.get_by_role("link", name="Find").click()
        self.click("Discard", "dialog")
        query = self.page.get_by_label("Query", exact=True)
        expect(query).to_be_visible()
        # A query isn't lost, either.
        query.fill('{"selector": {"year": 1997}}')
        self.page.get_by_role("link", name="Watch").click()
        expect(self.page.get_by_text("Watching.")).to_be_visible()
        self.page.get_by_role("link", name="Find").click()
        expect(query).to_have_value('{"selector": {"year": 1997}}')
        with self.store() as store:
            self.assertEqual(store.get("plain").value, b"some text")

    def test_saved_changes(self) -> None:
        """Where nothing would be lost, nobody is asked."""
        self.open("store", "films", "entries", "plain")
        self.click("Edit")
        self.click("Cancel")
        self.click("Edit")
        self.page.get_by_label("Value as text").fill("saved")
        self.click("Save")
        expect(self.page.locator("pre.value")).to_have_text("saved")
        self.click("Edit")
        self.page.get_by_role("link", name="Stores").click()
        expect(self.page.get_by_role("heading", name="Stores", level=1)).to_be_visible()
        self.page.reload()
        expect(self.page.get_by_role("heading", name="Stores", level=1)).to_be_visible()

    def test_back_and_forward(self) -> None:
        self.open("stores")
        self.page.get_by_role("link", name="films").first.click()
        heading = self.page.locator("main h1")
        tree = self.page.get_by_role("tree", name="Keys")
        tree.get_by_role("treeitem").filter(has_text="film/").locator(".verbatim").click()
        expect(heading).to_have_text("film/")
        tree.get_by_role("treeitem").filter(has_text="plain").click()
        expect(heading).to_have_text("plain")
        # Those that a key passes are one step.
        tree.press("ArrowUp")
        tree.press("ArrowDown")
        tree.press("ArrowUp")
        expect(heading).to_have_text("film/")
        self.page.get_by_role("link", name="Indexes").click()
        expect(heading).to_contain_text("Indexes of films")
        for text in ["film/", "plain", "film/", "All entries"]:
            self.page.go_back()
            expect(heading).to_have_text(text)
        self.page.go_back()
        expect(heading).to_have_text("Stores")
        for text in ["All entries", "film/", "plain"]:
            self.page.go_forward()
            expect(heading).to_have_text(text)
        # A folder has an address, too.
        self.page.go_back()
        self.page.reload()
        expect(heading).to_have_text("film/")
        expect(self.page.get_by_text("500 entries that begin with film/")).to_be_visible()

    def test_what_is_missing(self) -> None:
        for key in ["missing", "..", "film/", "film/9999"]:
            self.open("store", "films", "entries", key)
            expect(self.page.get_by_role("alert")).to_contain_text("There is no entry with this key")
        for part in ["entries", "find", "indexes", "watch"]:
            self.open("store", "missing", part)
            expect(self.page.get_by_role("alert")).to_contain_text("There is no store with the name missing")
        expect(self.page.get_by_text("Loading")).to_have_count(0)
        # It may be there a moment later.
        self.open("store", "films", "entries", "missing")
        with self.store() as store:
            store.put("missing", b"found")
        self.click("Try again")
        expect(self.page.locator("pre.value")).to_have_text("found")

    def test_messages_stay_with_their_page(self) -> None:
        self.open("store", "films", "entries")
        self.page.route("**/v1/**", lambda route: route.abort())
        self.click("Load the keys again")
        messages = self.page.locator(".message")
        expect(messages.first).to_be_visible()
        self.page.unroute("**/v1/**")
        self.page.get_by_role("link", name="Find").click()
        expect(self.page.get_by_label("Query", exact=True)).to_be_visible()
        expect(messages).to_have_count(0)

    def test_lists(self) -> None:
        with self.store() as store:
            store.delete_all()
            store.put("list", [b"first", b"", "größer".encode(), b"\xff"])
            store.put("many", [b"%d" % number for number in range(500)])
            store.put("long list", [b"%d" % number for number in range(1_200)])
        self.open("store", "films", "entries")
        expect(self.page.get_by_role("option").filter(has_text="many")).to_contain_text("500 values: 0, 1, 2")
        expect(self.page.get_by_role("option").filter(has_text="4 values")).to_contain_text("first, , größer, (binary) /w==")
        self.open("store", "films", "entries", "long list")
        elements = self.page.locator(".element")
        expect(elements).to_have_count(500)
        self.click("Show more: 700 are left")
        self.click("Show more: 200 are left")
        expect(elements).to_have_count(1_200)
        expect(elements.last).to_have_text("1,2001199")
        self.open("store", "films", "watch")
        expect(self.page.get_by_text("Watching.")).to_be_visible()
        with self.store() as store:
            store.put("list", [b"first", b"second"])
        expect(self.page.get_by_role("region", name="Changes")).to_contain_text("2 values: first, second")

    # Finds

    def find(self, query: str) -> None:
        self.page.get_by_label("Query", exact=True).fill(query)
        self.click("Run")

    def test_finds(self) -> None:
        self.open("store", "films", "find")
        self.find('{"selector": {"year": 1997, "rating": {"$gte": 5}}, "sort": [{"rating": "desc"}]}')
        documents = self.page.get_by_role("grid", name="Documents")
        expect(documents.get_by_role("row")).to_have_count(7)
        self.find('{"selector": {"rating": 3}, "limit": 10}')
        expect(self.page.locator(".results .summary")).to_contain_text("10 documents; examined")
        first = documents.get_by_role("row").first
        expect(first).to_contain_text("film/0003")
        self.click("Next page")
        expect(documents.get_by_role("row").first).to_contain_text("film/0103")
        rows = list(csv.reader(io.StringIO(self.saved(lambda: self.click("Save all matches as CSV")).decode())))
        self.assertEqual((len(rows), rows[0], rows[1]), (51, ["id", "title", "year", "rating"], ["film/0003", "Film 3", "1953", "3"]))
        lines = self.saved(lambda: self.click("Save all matches as lines of JSON")).decode().splitlines()
        self.assertEqual((len(lines), json.loads(lines[-1])["title"]), (50, "Film 493"))
        self.page.get_by_label("View of the results").select_option("json")
        expect(self.page.locator("article.document").first).to_contain_text('"title": "Film 103"')
        self.page.get_by_label("Earlier queries").select_option(index=2)
        expect(self.page.get_by_label("Query", exact=True)).to_have_value(re.compile('"year": 1997'))

    def test_counts(self) -> None:
        self.open("store", "films", "find")
        self.find('{"selector": {"rating": 3}, "count": true}')
        expect(self.page.locator(".results")).to_contain_text("50 documents match")
        self.find('{"selector": {"rating": 99}, "count": true}')
        expect(self.page.locator(".results")).to_contain_text("0 documents match")

    def test_many_results(self) -> None:
        """However many documents are found, only some are in the page, and each can be reached."""
        total = 200_000
        lines = [
            json.dumps({"id": f"many/{number:06}", "revision": "1", "document": {"n": number, "text": "x" * 50}})
            for number in range(total)
        ]  # fmt: skip
        result = {"result": {"found": total, "examinedDocuments": total, "examinedKeys": 0, "nanoseconds": 1, "revision": "1"}}
        body = "\n".join([*lines, json.dumps(result), ""])
        self.page.route("**/find", lambda route: route.fulfill(body=body, content_type="application/x-ndjson"))
        self.open("store", "films", "find")
        self.find('{"selector": {}, "limit": 200000}')
        expect(self.page.locator(".results .summary")).to_contain_text("200,000 documents", timeout=120_000)
        grid = self.page.get_by_role("grid", name="Documents")
        rows = grid.get_by_role("row")
        expect(rows.first).to_contain_text("many/000000")
        self.assertTrue(rows.count() < 200)
        grid.focus()
        self.page.keyboard.press("End")
        expect(rows.filter(has_text="many/199999")).to_contain_text("199999")
        self.assertTrue(rows.count() < 200)
        self.page.get_by_label("View of the results").select_option("json")
        texts = self.page.locator("article.document")
        expect(texts).to_have_count(50)
        self.click("Show more", exact=False)
        expect(texts).to_have_count(100)
        self.page.get_by_label("View of the results").select_option("table")
        rows.filter(has_text="many/000001").locator(".key").click()
        expect(self.page.get_by_role("heading", name="many/000001")).to_be_visible()

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

    def test_live_asks_seldom_for_what_is_costly(self) -> None:
        self.open("live")
        paths = []
        self.page.on("request", lambda request: paths.append(request.url.rpartition("/")[2]))
        self.page.reload()
        with self.page.expect_response(lambda response: paths.count("stats") == 4, timeout=60_000):
            pass
        self.assertEqual((paths.count("slow-log"), paths.count("connections")), (1, 1))

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
        self.run_larder("drop", "temporary", "--yes")

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
                            self.page.get_by_role("grid", name="Documents").wait_for()
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
