"""Checks the API over HTTP with clients of others: schemathesis, which sends what `Protocol/http.yaml` describes and what it
doesn't, curl, Python's http.client, requests, a client that openapi-python-client makes, and all that behind nginx.

    python3 http_api.py --server PATH       starts this larderd in a temporary directory and stops it afterwards

Requires `schemathesis`, `openapi-spec-validator` and `openapi-python-client` from PyPI and what they depend on, beside this
Python, and curl and nginx. `LARDER_SEED` repeats the random requests of an earlier run. Prints how many checks passed and
exits with status 1 if any failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import requests
import yaml
from brief_case import clip, run
from http_case import CHANGING, ROOT, HTTPCase
from http_conditions import HTTPConditions
from http_generated import HTTPGenerated
from http_proxy import HTTPProxy
from larder import Client
from server_process import Server


class HTTPChecks(HTTPCase):
    def test_description(self) -> None:
        """What is described is served as described, and nothing makes the server fail."""
        outcome = subprocess.run(
            [
                Path(sys.executable).parent / "schemathesis", "run", ROOT / "Protocol" / "http.yaml",
                "--url", f"http://127.0.0.1:{self.port}", "--max-examples", "50", "--request-timeout", "5", "--no-color",
                # A response without an end.
                "--exclude-path-regex", "changes$",
                # The server accepts more than is described, such as unknown fields, and refuses what depends on entries.
                "--exclude-checks", "positive_data_acceptance,negative_data_rejection",
            ],
            # It keeps files in its folder.
            cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, check=False,
        )  # fmt: skip
        self.assertEqual(outcome.returncode, 0, clip(outcome.stdout, 4_000))

    def test_description_from_the_server(self) -> None:
        served = requests.get(f"http://127.0.0.1:{self.port}/openapi.json", timeout=10).json()
        self.assertEqual(served, yaml.safe_load((ROOT / "Protocol" / "http.yaml").read_text()))

    def test_files_of_the_console(self) -> None:
        url = f"http://127.0.0.1:{self.port}/"
        page = requests.get(url, timeout=10)
        self.assertEqual(page.headers["Content-Type"], "text/html; charset=utf-8")
        paths = ["", *re.findall(r'(?:href|src)="([^"#]+)"', page.text)]
        for path in paths:
            with self.subTest(path=path):
                plain = requests.get(url + path, headers={"Accept-Encoding": "identity"}, timeout=10)
                packed = requests.get(url + path, headers={"Accept-Encoding": "br, gzip"}, stream=True, timeout=10)
                self.assertEqual((plain.status_code, packed.headers.get("Content-Encoding")), (200, "gzip"))
                self.assertEqual(packed.content, plain.content)
                self.assertTrue(int(packed.headers["Content-Length"]) < len(plain.content) or len(plain.content) < 500)
                for answer in [plain, packed]:
                    policy = answer.headers["Content-Security-Policy"]
                    self.assertTrue("default-src 'none'; script-src 'self'" in policy and "trusted-types 'none'" in policy)
                    self.assertEqual(answer.headers["Cross-Origin-Resource-Policy"], "same-origin")
                    known = {"If-None-Match": answer.headers["ETag"]}
                    known["Accept-Encoding"] = "gzip" if answer is packed else "identity"
                    self.assertEqual(requests.get(url + path, headers=known, timeout=10).status_code, 304)
                self.assertTrue(plain.headers["ETag"] != packed.headers["ETag"])
                head = requests.head(url + path, headers={"Accept-Encoding": "identity"}, timeout=10)
                self.assertEqual((head.headers["Content-Length"], head.content), (str(len(plain.content)), b""))
        for path in ["console", "console/", "console/none.js", "console/../openapi.json/", "index.html", "console%2Fmain.js"]:
            self.assertEqual(requests.get(url + path, timeout=10).status_code, 404, path)

    def test_requests(self) -> None:
        """A session of requests, with JSON, streams and bodies of any kind."""
        with requests.Session() as session:
            session.headers["X-Larder"] = "1"
            store = f"http://127.0.0.1:{self.port}/v1/stores/films"
            operations = [{"put": f"requests/{number}", "value": {"n": number}} for number in range(300)]
            self.assertEqual(session.post(f"{store}/apply", json={"operations": operations}).status_code, 200)
            found = session.post(f"{store}/find", json={"selector": {"n": {"$gte": 0}}, "limit": 1_000}, stream=True,
                                 headers={"Accept": "application/x-ndjson"})  # fmt: skip
            lines = [json.loads(line) for line in found.iter_lines()]
            self.assertEqual((len(lines), lines[-1]["result"]["found"]), (301, 300))
            self.assertEqual(session.put(f"{store}/entries/requests/name with space?", data="é").status_code, 204)
            self.assertEqual(session.get(f"{store}/entries/requests/name with space").content, "é".encode())
            deleted = session.post(f"{store}/delete", json={"keys": [f"requests/{number}" for number in range(300)]})
            self.assertEqual(deleted.json(), {"deleted": 300})

    def test_large_values(self) -> None:
        url = f"http://127.0.0.1:{self.port}/v1/stores/films/entries/large"
        value = os.urandom(5 << 20)
        with tempfile.NamedTemporaryFile() as file:
            file.write(value)
            file.flush()
            upload = ["curl", "-sSf", "-H", "X-Larder: 1", "-T", file.name, url]
            subprocess.run(upload, check=True, timeout=30)
        download = subprocess.run(["curl", "-sSf", url], check=True, timeout=30, stdout=subprocess.PIPE)
        self.assertEqual(download.stdout, value)

    def test_requests_of_one_connection(self) -> None:
        connection = self.connect()
        for number in range(200):
            path = f"/v1/stores/films/entries/number/{number}"
            connection.request("PUT", path, body=b"%d" % number, headers=CHANGING)
            response = connection.getresponse()
            self.assertEqual((response.status, response.read()), (204, b""))
            connection.request("GET", path)
            self.assertEqual(connection.getresponse().read(), b"%d" % number)
        connection.request("GET", "/v1/stores/films/count?prefix=number/")
        self.assertEqual(json.load(connection.getresponse()), {"count": 200})

    def test_changes_of_native_clients(self) -> None:
        watcher = self.connect()
        watcher.request("GET", "/v1/stores/films/changes?prefix=watched")
        response = watcher.getresponse()
        lines = [json.loads(response.readline()) for _ in range(2)]
        self.assertEqual([set(line) for line in lines], [{"incarnation"}, {"through"}])

        def write() -> None:
            with Client(self.address) as client:
                store = client.open("films")
                for number in range(1_000):
                    store.put(f"watched{number:04}", b"x" * 100)

        writer = threading.Thread(target=write)
        writer.start()
        keys: list[str] = []
        while len(keys) < 1_000:
            line = json.loads(response.readline())
            if "key" in line:
                keys.append(line["key"])
        writer.join()
        self.assertEqual(keys, [f"watched{number:04}" for number in range(1_000)])


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the API over HTTP.")
    parser.add_argument("--server", metavar="PATH", type=Path, required=True, help="the larderd to start")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="larder-http-") as directory:
        # Rules, so that the console has links.
        server = Server(
            options.server.resolve(), Path(directory), "--listen", "http:127.0.0.1:0", "--store", "films=memory",
            "--store", "disk=log", "--data", f"{directory}/data", "--allow", "tcp=admin",
            "--allow", f"user:{os.getuid()}=admin",
        )  # fmt: skip
        try:
            server.wait_until_ready()
            (HTTPCase.port,) = server.tcp_ports()
            HTTPCase.address, HTTPCase.directory = server.address, directory
            loader, suite = unittest.defaultTestLoader, unittest.TestSuite()
            for case in [HTTPChecks, HTTPConditions, HTTPGenerated, HTTPProxy]:
                suite.addTests(loader.loadTestsFromTestCase(case))
            passed, failed = run(suite)
        finally:
            server.kill()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
