"""Checks the metrics of a larderd with the parser of Prometheus's own Python client.

    python3 metrics.py --server PATH        starts this larderd in a temporary directory and stops it afterwards

Requires `prometheus_client` from PyPI. Prints how many checks passed and exits with status 1 if any failed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from brief_case import BriefCase, run
from larder import Client, LarderError
from larder_wire import Write
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


class MetricsChecks(BriefCase):
    url: str
    address: str

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=5) as response:
            return response.read().decode()

    def scrape(self) -> dict[str, Metric]:
        text = self.get("/metrics")
        families = list(text_string_to_metric_families(text))
        self.assertEqual(len({family.name for family in families}), len(families), "each family must appear once")
        return {family.name: family for family in families}

    def value(self, families: dict[str, Metric], sample: str, **labels: str) -> float:
        for family in families.values():
            for found in family.samples:
                if found.name == sample and found.labels == labels:
                    return found.value
        self.fail(f"no sample {sample} {labels}")

    def counts(
        self, families: dict[str, Metric], requests: Iterable[tuple[str, str]], durations: Iterable[str]
    ) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
        counted = {
            (operation, outcome): self.value(families, "larder_requests_total", operation=operation, outcome=outcome)
            for operation, outcome in requests
        }
        measured = {operation: self.value(families, "larder_request_duration_seconds_count", operation=operation) for operation in durations}
        return counted, measured

    def test_names_types_and_help(self) -> None:
        for name, family in self.scrape().items():
            self.assertTrue(name.startswith(("larder_", "process_")), name)
            self.assertIn(family.type, ("counter", "gauge", "histogram"), name)
            self.assertTrue(family.documentation, name)
            self.assertTrue(family.samples, name)
            # Base units only; the names of counters end in "_total" (which the parser removes).
            self.assertFalse(re.search("(milli|micro|nano)seconds|kilobytes|percent", name), name)
            self.assertTrue(re.fullmatch("[a-z_]+", name), name)
            if family.type != "counter":
                self.assertFalse(name.endswith("_total"), name)
            elif not name.startswith("process_"):
                self.assertTrue(all(sample.name.endswith("_total") for sample in family.samples), name)

    def test_counters(self) -> None:
        before = self.scrape()
        with Client(self.address) as client:
            for name in ("brief", "lasting"):
                store = client.open(name)
                for number in range(50):
                    store.put(f"secret{number}", b"value" * 10)
                store.get("secret1")
                store.get("nothing")
        requests = {("put", "done"): 100.0, ("get", "done"): 2.0, ("get", "rejected"): 2.0}
        durations = {"put": 100.0, "get": 4.0}
        # A request is counted shortly after its reply, and each family is read at a moment of its own.
        deadline = time.monotonic() + 5
        while (seen := self.counts(after := self.scrape(), requests, durations)) != (requests, durations):
            if time.monotonic() > deadline:
                break
        self.assertEqual(seen, (requests, durations))
        self.assertEqual(self.value(after, "larder_store_entries", store="lasting", engine="log"), 50)
        self.assertTrue(self.value(after, "larder_store_log_bytes", store="lasting", engine="log") > 50 * 50)
        self.assertTrue(self.value(after, "larder_store_commit_duration_seconds_count", store="lasting", engine="log") >= 50)
        self.assertTrue(self.value(after, "larder_store_sync_duration_seconds_count", store="lasting", engine="log") >= 50)
        self.assertNotIn("secret", self.get("/metrics"))
        for name, family in before.items():
            if family.type == "gauge":
                continue
            for sample in family.samples:
                self.assertTrue(self.value(after, sample.name, **sample.labels) >= sample.value, f"{sample.name} decreased")

    def test_evictions_are_counted(self) -> None:
        labels = {"store": "small", "engine": "memory"}
        with Client(self.address) as client:
            small = client.open("small")
            for start in range(0, 20_000, 1_000):
                small.put_many([Write(f"{number}", bytes(100)) for number in range(start, start + 1_000)])
            families = self.scrape()
            self.assertEqual(small.count(), 20_000 - self.value(families, "larder_store_evicted_total", **labels))
        limit = self.value(families, "larder_store_limit_bytes", **labels)
        self.assertEqual(limit, 1 << 20)
        self.assertTrue(0.9 * limit <= self.value(families, "larder_store_limited_bytes", **labels) <= limit)

    def test_histograms(self) -> None:
        for name, family in self.scrape().items():
            if family.type != "histogram":
                continue
            series: dict[str, list[tuple[float, float]]] = {}
            for sample in family.samples:
                if sample.name.endswith("_bucket"):
                    labels = {name: value for name, value in sample.labels.items() if name != "le"}
                    series.setdefault(str(labels), []).append((float(sample.labels["le"]), sample.value))
            for buckets in series.values():
                self.assertEqual(buckets, sorted(buckets), name)
                self.assertEqual([count for _, count in buckets], sorted(count for _, count in buckets), name)
                self.assertEqual(buckets[-1][0], float("inf"), name)

    def test_health(self) -> None:
        self.assertEqual((self.get("/healthz"), self.get("/readyz")), ("ok\n", "ok\n"))
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.get("/nothing")
        self.assertEqual(refused.exception.code, 404)
        refused.exception.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the metrics of a larderd.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="larder-metrics-") as directory:
        MetricsChecks.address = f"unix:{directory}/larder.sock"
        arguments = ["--listen", MetricsChecks.address, "--data", f"{directory}/data", "--metrics", "tcp:127.0.0.1:0"]
        arguments += ["--store", "brief=memory", "--store", "lasting=log", "--store", "small=memory?limit=1MiB"]
        with subprocess.Popen([options.server.resolve(), *arguments], stderr=subprocess.PIPE, text=True) as server:
            try:
                for line in server.stderr or ():
                    if found := re.search(r"serving metrics address=tcp:(\S+)", line):
                        MetricsChecks.url = f"http://{found[1]}"
                        break
                wait_until_ready(MetricsChecks.address)
                passed, failed = run(unittest.defaultTestLoader.loadTestsFromTestCase(MetricsChecks))
            finally:
                server.terminate()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def wait_until_ready(address: str) -> None:
    for _ in range(100):
        try:
            return Client(address).close()
        except LarderError:
            time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
