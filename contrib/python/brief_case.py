"""A test case that says in a few lines what failed, however large the things are that it compared, and the count of a run.

unittest compares sequences line by line to show their difference, which takes minutes for the bytes of a large value. Here only the first
difference is shown.
"""

from __future__ import annotations

import unittest
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

REPORT_LIMIT = 2_000  # Characters of one report.
REPORTS_PER_TEST = 2  # Subtests mostly fail for the same reason.


def clip(text: str, limit: int = 160) -> str:
    """The two ends of a text that is longer than the limit."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]} … {text[-(limit // 2) :]}"


def excerpt(value: object) -> str:
    """A short form of any value; the size of it where that is cut off."""
    if isinstance(value, (bytes, bytearray, str)) and len(value) > 120:
        return f"{value[:40]!r} … {value[-20:]!r} (size {len(value)})"
    return clip(repr(value))


def first_difference(seen: Sequence[object], expected: Sequence[object]) -> int:
    """The index at which the two differ first; the size of the shorter one if it is how the other begins."""
    low, high = 0, min(len(seen), len(expected))
    while low < high:
        middle = (low + high) // 2
        if seen[low : middle + 1] == expected[low : middle + 1]:
            low = middle + 1
        else:
            high = middle
    return low


def difference(seen: object, expected: object) -> str:
    """Where the two differ first, for two that are not equal."""
    if isinstance(seen, dict) and isinstance(expected, dict):
        for key in [*expected, *seen]:
            if key not in seen or key not in expected:
                return f"{excerpt(key)} is {'missing' if key in expected else 'too much'}"
            if seen[key] != expected[key]:
                return f"at {excerpt(key)}: {difference(seen[key], expected[key])}"
    if isinstance(seen, (set, frozenset)) and isinstance(expected, (set, frozenset)):
        return f"{excerpt(seen - expected)} are too much, {excerpt(expected - seen)} are missing"
    if type(seen) is type(expected) and isinstance(seen, (list, tuple, bytes, str)):
        first = first_difference(seen, expected)
        if isinstance(seen, (list, tuple)) and first < min(len(seen), len(expected)):
            return f"sizes {len(seen)} and {len(expected)}, at {first}: {difference(seen[first], expected[first])}"
        if max(len(seen), len(expected)) > 40:
            window = slice(max(first - 8, 0), first + 24)
            sizes = f"sizes {len(seen)} and {len(expected)}, first difference at {first}"
            return f"{sizes}: {excerpt(seen[window])} was seen, {excerpt(expected[window])} expected"
    return f"{excerpt(seen)} was seen, {excerpt(expected)} expected"


class BriefCase(unittest.TestCase):
    def assertEqual(self, seen: object, expected: object, note: object = None) -> None:
        if not seen == expected:
            self.fail(difference(seen, expected) + ("" if note is None else f": {clip(str(note))}"))


def run(*suites: unittest.TestSuite) -> tuple[int, int]:
    """Runs the suites beside each other. How many tests passed and how many failed, with a report of those that did."""
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
    """Prints what failed; how many tests did."""
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
