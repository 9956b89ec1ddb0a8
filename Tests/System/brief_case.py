"""A test case with short failure messages, however large the compared values are, and runners that count results.

unittest shows how two sequences differ line by line, which takes minutes for the bytes of a large value. This test case
shows only the first difference.
"""

from __future__ import annotations

import argparse
import os
import unittest
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# larderd refuses files of settings that others may write.
os.umask(0o022)

REPORT_LIMIT = 2_000  # In characters.
REPORTS_PER_TEST = 2  # Subtests usually fail for the same reason.


def clip(text: str, limit: int = 160) -> str:
    """Returns the text, or its beginning and end if it exceeds the limit."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]} … {text[-(limit // 2) :]}"


def excerpt(value: object) -> str:
    """Returns a short form of any value, with its size if it is truncated."""
    if isinstance(value, (bytes, bytearray, str)) and len(value) > 120:
        return f"{value[:40]!r} … {value[-20:]!r} (size {len(value)})"
    return clip(repr(value))


def first_difference(seen: Sequence[object], expected: Sequence[object]) -> int:
    """Returns the first index at which the two differ, or the shorter size if one is a prefix of the other."""
    low, high = 0, min(len(seen), len(expected))
    while low < high:
        middle = (low + high) // 2
        if seen[low : middle + 1] == expected[low : middle + 1]:
            low = middle + 1
        else:
            high = middle
    return low


def difference(seen: object, expected: object) -> str:
    """Describes the first difference between two values that are not equal."""
    if isinstance(seen, dict) and isinstance(expected, dict):
        for key in [*expected, *seen]:
            if key not in seen or key not in expected:
                return f"{excerpt(key)} is {'missing' if key in expected else 'unexpected'}"
            if seen[key] != expected[key]:
                return f"at {excerpt(key)}: {difference(seen[key], expected[key])}"
    if isinstance(seen, (set, frozenset)) and isinstance(expected, (set, frozenset)):
        return f"{excerpt(seen - expected)} are unexpected, {excerpt(expected - seen)} are missing"
    if type(seen) is type(expected) and isinstance(seen, (list, tuple, bytes, str)):
        first = first_difference(seen, expected)
        if isinstance(seen, (list, tuple)) and first < min(len(seen), len(expected)):
            return f"sizes {len(seen)} and {len(expected)}, at {first}: {difference(seen[first], expected[first])}"
        if max(len(seen), len(expected)) > 40:
            window = slice(max(first - 8, 0), first + 24)
            sizes = f"sizes {len(seen)} and {len(expected)}, first difference at {first}"
            return f"{sizes}: got {excerpt(seen[window])}, expected {excerpt(expected[window])}"
    return f"got {excerpt(seen)}, expected {excerpt(expected)}"


class BriefCase(unittest.TestCase):
    def assertEqual(self, seen: object, expected: object, note: object = None) -> None:
        if not seen == expected:
            self.fail(difference(seen, expected) + ("" if note is None else f": {clip(str(note))}"))


class ProgramsCase(BriefCase):
    """A test case that runs the larderd and the larder of the command line."""

    larderd: Path
    larder: Path

    @classmethod
    def main(cls, description: str) -> int:
        """Runs the tests of this class and returns the script's exit status."""
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
        parser.add_argument("--larder", metavar="PATH", type=Path, required=True, help="the larder to run")
        options = parser.parse_args()
        cls.larderd, cls.larder = options.server.resolve(), options.larder.resolve()
        passed, failed = run(unittest.defaultTestLoader.loadTestsFromTestCase(cls))
        print(f"{passed} passed, {failed} failed")
        return 1 if failed else 0


def run(*suites: unittest.TestSuite) -> tuple[int, int]:
    """Runs the suites concurrently, reports the failures, and returns how many tests passed and failed."""
    with ThreadPoolExecutor(len(suites)) as pool:
        results = list(pool.map(result_of, suites))
    passed = failed = 0
    for result in results:
        failures = report(result)
        passed += result.testsRun - failures - len(result.skipped)
        failed += failures
    return passed, failed


def result_of(suite: unittest.TestSuite) -> unittest.TestResult:
    result = unittest.TestResult()
    suite.run(result)
    return result


def report(result: unittest.TestResult) -> int:
    """Prints the failures and returns the number of failed tests."""
    reports: Counter[str] = Counter()
    for case, text in result.failures + result.errors:
        name = getattr(case, "test_case", case).id()
        reports[name] += 1
        if reports[name] <= REPORTS_PER_TEST:
            print(f"FAILED {clip(str(case), 300)}\n{clip(text, REPORT_LIMIT)}")
    for name, count in reports.items():
        if count > REPORTS_PER_TEST:
            print(f"{count - REPORTS_PER_TEST} more reports of {name}")
    for case, reason in result.skipped:
        print(f"SKIPPED {case}: {reason}")
    return len(reports)


def report_violations(name: str, violations: Sequence[str], summary: str | None = None) -> int:
    """Prints the violations of one test, a summary, and the count. Returns the exit status."""
    for violation in violations:
        print(f"FAILED {name}: {violation}")
    if summary:
        print(summary)
    print(f"{0 if violations else 1} passed, {1 if violations else 0} failed")
    return 1 if violations else 0
