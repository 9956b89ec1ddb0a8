"""Checks the console in a browser, as a person would use it: each page, at three sizes, with the keyboard alone, with text that
tries to be code, with few rights, and beside other sites that try to use it.

    python3 web_console.py --server PATH --larder PATH       starts this larderd in temporary directories
    python3 web_console.py … --pictures                      compares the pictures in the documentation instead

Requires `playwright` and `axe-playwright-python` from PyPI, beside this Python, and Debian's chromium and fonts-dejavu-core. Prints how many checks
passed and exits with status 1 if any failed.
"""

from __future__ import annotations

import argparse
import base64
import sys
import unittest
from pathlib import Path

from brief_case import run
from web_attacks import HostileTextTests, OtherSitesTests, RightsTests
from web_case import ConsoleCase
from web_pages import PagesTests
from web_screenshots import COMPARED, Pictures, fill

IMAGES = Path(__file__).resolve().parents[2] / "contrib" / "images"


class PicturesTests(ConsoleCase):
    """The pictures in the documentation show the console as it is."""

    options = ["--store", "films=memory", "--store", "sessions=memory"]

    def test_pictures(self) -> None:
        fill(self.server.address)
        pictures = Pictures(self.page, self.url, self.server.address)
        for name in COMPARED:
            shown = (IMAGES / f"console-{name}.png").read_bytes()
            now = getattr(pictures, name)()
            self.assertEqual(
                pictures.structure(), (IMAGES / f"console-{name}.txt").read_text(), f"{name}: run contrib/screenshots and look"
            )
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
    parser.add_argument("--pictures", action="store_true", help="compare the pictures in the documentation")
    parser.add_argument("names", metavar="NAME", nargs="*", help="the only tests to run")
    options = parser.parse_args()
    ConsoleCase.larderd, ConsoleCase.larder = options.server.resolve(), options.larder.resolve()
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{name}*" for name in options.names] or None
    cases = [PicturesTests] if options.pictures else [PagesTests, HostileTextTests, RightsTests, OtherSitesTests]
    passed, failed = run(unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
