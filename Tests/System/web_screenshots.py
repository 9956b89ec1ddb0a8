"""Makes the pictures of the console for the documentation.

    python3 web_screenshots.py --server PATH --output FOLDER       starts this larderd in a temporary directory

Beside each picture that shows the same every time, it writes the structure of the page: what is on it, without how it looks.
Requires `playwright` from PyPI, beside this Python, and Debian's chromium and fonts-dejavu-core.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
from pathlib import Path

from larder import Client, Write
from playwright.sync_api import Page, expect, sync_playwright
from server_process import Server
from web_font import font_settings

FIRST = ["Silent", "Golden", "Last", "Hidden", "Broken", "Distant", "Crimson", "Quiet", "Endless", "Northern"]
SECOND = ["Harbor", "Orchard", "Letter", "Winter", "Garden", "Mirror", "River", "Station", "Summer", "Lantern"]
COUNTRIES = ["France", "Italy", "Japan", "India", "Sweden", "Mexico", "Poland"]


def film(number: int) -> dict[str, object]:
    return {
        "title": f"The {FIRST[number * 7 % 10]} {SECOND[number * 3 // 10 % 10]}", "year": 1920 + number * 37 % 105,
        "country": COUNTRIES[number * 5 % 7], "rating": round(4 + number * 61 % 60 / 10, 1), "minutes": 70 + number * 13 % 90,
    }  # fmt: skip


def fill(address: str) -> None:
    """Writes the entries that the pictures show."""
    with Client(address) as client:
        films = client.open("films")
        films.put_many([Write(f"film/{number:04}", json.dumps(film(number)).encode()) for number in range(4_000)])
        films.put_many([Write(f"person/{number:04}", b'{"name": "Someone"}') for number in range(750)])
        films.put("poster/0017", bytes(range(256)) * 16)
        films.put("motto", "Always in stock".encode())
        sessions = client.open("sessions")
        sessions.put_many([Write(f"session:{number:05}", b"x" * 200, 3_600_000) for number in range(12_345)])


class Pictures:
    """The pictures, each of a page with the same contents every time, by their names."""

    def __init__(self, page: Page, url: str, address: str) -> None:
        self.page, self.url, self.address = page, url, address

    def open(self, path: str, theme: str = "light") -> None:
        self.page.emulate_media(color_scheme=theme)
        self.page.set_viewport_size({"width": 1200, "height": 720})
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}#/{path}")
        self.page.wait_for_selector("header")

    def settled(self) -> bytes:
        """Returns a picture without a focus, or anything that is still moving."""
        self.page.wait_for_timeout(200)
        return self.page.screenshot(animations="disabled", caret="hide")

    def structure(self) -> str:
        """Returns what is on the page that was shown last, without how it looks."""
        return self.page.locator("body").aria_snapshot() + "\n"

    def entries(self) -> bytes:
        self.open("store/films/entries")
        folder = self.page.get_by_role("treeitem").filter(has_text="film/")
        folder.locator(".twisty").click()
        expect(self.page.get_by_role("treeitem").nth(5)).to_contain_text("0004")
        expect(self.page.get_by_role("listbox", name="Entries").get_by_role("option").first).to_contain_text("film/0000")
        return self.settled()

    def find(self) -> bytes:
        self.open("store/films/find", "dark")
        query = '{\n  "selector": {"country": "Japan", "year": {"$gte": 1990}},\n  "sort": [{"rating": "desc"}],\n  "limit": 10\n}'
        self.page.get_by_label("Query", exact=True).fill(query)
        self.page.get_by_role("button", name="Explain").click()
        expect(self.page.locator("svg.plan")).to_be_visible()
        # How long it took is different each time.
        self.page.locator(".plan-view .summary").evaluate("(element) => { element.textContent = 'Took 2.1 ms' }")
        return self.settled()

    def conflict(self) -> bytes:
        self.open("store/films/entries/film%2F0017")
        self.page.get_by_role("button", name="Edit").click()
        value = self.page.get_by_label("Value as json")
        value.fill(value.input_value().replace('"minutes": ', '"minutes": 1'))
        with Client(self.address) as client:
            client.open("films").put("film/0017", json.dumps({**film(17), "rating": 9.9}).encode())
        self.page.get_by_role("button", name="Save").click()
        expect(self.page.get_by_text("Nothing was saved")).to_be_visible()
        picture = self.settled()
        with Client(self.address) as client:
            client.open("films").put("film/0017", json.dumps(film(17)).encode())
        return picture

    def live(self) -> bytes:
        """The page of a server with something to do."""
        is_over = threading.Event()

        def load() -> None:
            with Client(self.address) as client:
                store = client.open("films")
                while not is_over.wait(0.002):
                    store.get_many([f"film/{number:04}" for number in range(20)])
                    store.put("counter", b"1")

        writer = threading.Thread(target=load)
        writer.start()
        self.open("live")
        self.page.wait_for_timeout(20_000)
        picture = self.settled()
        is_over.set()
        writer.join()
        return picture


# Those that show the same each time.
COMPARED = ["entries", "find"]
ALL = [*COMPARED, "conflict", "live"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the pictures of the console for the documentation.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True, help="where the pictures go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="larder-pictures-") as folder:
        stores = ["--store", "films=memory", "--store", "sessions=memory"]
        server = Server(options.server.resolve(), Path(folder), "--listen", "http:127.0.0.1:0", *stores)
        try:
            server.wait_until_ready()
            fill(server.address)
            (port,) = server.tcp_ports()
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path="/usr/bin/chromium", args=["--no-sandbox"],
                    env={**os.environ, **font_settings(Path(folder))},
                )  # fmt: skip
                page = browser.new_context(locale="en-US", timezone_id="UTC").new_page()
                pictures = Pictures(page, f"http://127.0.0.1:{port}/", server.address)
                for name in ALL:
                    path = options.output / f"console-{name}.png"
                    path.write_bytes(getattr(pictures, name)())
                    print(path)
                    if name in COMPARED:
                        path.with_suffix(".txt").write_text(pictures.structure())
                browser.close()
        finally:
            server.kill()


if __name__ == "__main__":
    main()
