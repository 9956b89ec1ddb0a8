"""A client that openapi-python-client makes from `Protocol/http.yaml`, which performs every operation of the description."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
import os
from pathlib import Path
from typing import Any

import yaml
from http_case import CHANGING, ROOT, HTTPCase
from larder import Client

DESCRIPTION = ROOT / "Protocol" / "http.yaml"
# The generator knows no lines of JSON; its client returns their bytes.
EXPECTED_WARNING = "Unsupported content_type application/x-ndjson"


class HTTPGenerated(HTTPCase):
    package: str | None = None

    def setUp(self) -> None:
        if HTTPGenerated.package is None:
            HTTPGenerated.package = self.generate()
        self.called: set[str] = set()

    def generate(self) -> str:
        """Makes the client, and returns the name of its package."""
        bin_folder = Path(sys.executable).parent
        folder = Path(self.directory) / "generated_client"
        outcome = subprocess.run(
            [bin_folder / "openapi-python-client", "generate", "--path", DESCRIPTION, "--output-path", folder, "--meta", "none"],
            # It formats the code with a program that is beside it.
            env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
        )  # fmt: skip
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        warnings = [block for block in outcome.stdout.split("WARNING")[1:] if EXPECTED_WARNING not in " ".join(block.split())]
        self.assertEqual(warnings, [])
        sys.path.insert(0, self.directory)
        return folder.name

    def operation(self, name: str) -> Any:
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        self.called.add(name)
        return importlib.import_module(f"{self.package}.api.default.{snake}")

    def model(self, name: str) -> Any:
        return getattr(importlib.import_module(f"{self.package}.models"), name)

    def call(self, name: str, /, *arguments: str, status: int = 200, body: Any = None, **options: Any) -> Any:
        """Performs an operation, and returns the response."""
        operation = self.operation(name)
        if "x_larder" in operation.sync_detailed.__annotations__:
            options["x_larder"] = "1"
        if body is not None:
            options["body"] = body
        response = operation.sync_detailed(*arguments, client=self.client, **options)
        self.assertEqual(response.status_code, status, f"{name}: {response.content[:500]!r}")
        return response

    def body(self, name: str, json_value: dict[str, Any]) -> Any:
        return self.model(name).from_dict(json_value)

    def file(self, value: bytes) -> Any:
        types = importlib.import_module(f"{self.package}.types")
        return types.File(payload=io.BytesIO(value))

    def test_description_is_valid(self) -> None:
        validator = Path(sys.executable).parent / "openapi-spec-validator"
        outcome = subprocess.run(
            [validator, DESCRIPTION], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
        )
        self.assertEqual(outcome.returncode, 0, outcome.stdout)

        def check(node: Any, place: str) -> None:
            self.assertIsNotNone(node, f"{place} has no value: a comma in a text that needs quotation marks?")
            for name, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else []:
                check(value, f"{place}/{name}")
            if isinstance(node, dict) and node.get("type") == "array":
                self.assertIn("items", node, place)

        check(yaml.safe_load(DESCRIPTION.read_text()), "")

    def test_every_operation(self) -> None:
        module = importlib.import_module(f"{self.package}.client")
        url = f"http://127.0.0.1:{self.port}"
        self.client = module.Client(base_url=url, raise_on_unexpected_status=True)
        store = "generated"
        self.call("createStore", store, status=201, body=self.body("CreateStoreBody", {"engine": "memory"}))
        self.assertIn(store, [listed.name for listed in self.call("listStores").parsed.stores])
        self.assertEqual(self.call("describeStore", store).parsed.engine, "memory")
        self.check_entries(store)
        self.check_documents(store)
        self.check_server()
        self.check_session(module, url)
        self.call("dropStore", store, status=204)
        described = yaml.safe_load(DESCRIPTION.read_text())["paths"].values()
        operations = {method["operationId"] for path in described for method in path.values() if "operationId" in method}
        self.assertEqual(self.called, operations)

    def check_entries(self, store: str) -> None:
        value = bytes(range(256)) * 300
        for suffix, key in [("", "a/b c"), ("ByQuery", "../a//b"), ("ByQuery", "é%2F?#"), ("", "é%2F?#&+")]:
            path, query = ((store, key), {}) if not suffix else ((store,), {"key": key})
            put = self.call(f"putEntry{suffix}", *path, status=204, body=self.file(value), if_none_match="*", **query)
            tag = put.headers["ETag"]
            self.assertEqual(self.call(f"getEntry{suffix}", *path, **query).parsed.payload.read(), value)
            part = self.call(f"getEntry{suffix}", *path, status=206, range_="bytes=-3", if_range=tag, **query)
            self.assertEqual(part.parsed.payload.read(), value[-3:])
            self.call(f"getEntry{suffix}", *path, status=304, if_none_match=f'"0", W/{tag}', **query)
            self.assertEqual(self.call(f"headEntry{suffix}", *path, **query).headers["Content-Length"], str(len(value)))
            self.assertEqual(self.call(f"putEntry{suffix}", *path, status=412, body=self.file(b""), if_match='"0"', **query)
                             .parsed.code, "conditionFailed")  # fmt: skip
            self.call(f"deleteEntry{suffix}", *path, status=204, if_match=tag, **query)
            self.assertEqual(self.call(f"getEntry{suffix}", *path, status=404, **query).parsed.code, "notFound")
        operations = [{"put": f"docs/{n}", "value": {"n": n, "kind": "even" if n % 2 == 0 else "odd"}} for n in range(10)]
        revision = self.call("apply", store, body=self.body("ApplyBody", {"operations": operations})).parsed.revision
        self.assertTrue(revision.isdigit())
        values = self.model("ListEntriesValues")(1)
        page = self.call("listEntries", store, prefix="docs/", limit=3, values=values).parsed
        self.assertEqual([json.loads(entry.value)["n"] for entry in page.entries], [0, 1, 2])
        self.assertEqual(self.call("countEntries", store, prefix="docs/").parsed.count, 10)
        (element,) = self.call("showTree", store).parsed.elements
        self.assertEqual((element.prefix, element.count), ("docs/", 10))
        keys = self.call("deleteEntries", store, body=self.body("DeleteEntriesBody", {"keys": ["docs/9", "none"]}))
        self.assertEqual(keys.parsed.deleted, 1)
        # It has no end, and the generated functions read all of a response.
        arguments = self.operation("watch")._get_kwargs(store, prefix="docs/")
        with self.client.get_httpx_client().stream(**arguments) as response:
            lines = response.iter_lines()
            line = self.model("ChangeLine").from_dict(json.loads(next(lines)))
            self.assertTrue(line.incarnation.isdigit())
            self.call("putEntry", store, "docs/new", status=204, body=self.file(b"{}"))
            changes = (self.model("ChangeLine").from_dict(json.loads(text)).change for text in lines)
            self.assertEqual(next(change for change in changes if change), "put")

    def check_documents(self, store: str) -> None:
        fields = ["kind", {"n": "desc"}]
        index = self.call("ensureIndex", store, status=201, body=self.body("EnsureIndexBody", {"fields": fields, "name": "by kind"}))
        self.assertTrue(index.parsed.created)
        self.call("ensureIndex", store, body=self.body("EnsureIndexBody", {"fields": fields, "name": "by kind"}))
        (state,) = self.call("listIndexes", store).parsed.indexes
        self.assertEqual((state.name, state.state), ("by kind", "ready"))
        query = {"selector": {"n": {"$gte": 2}}, "sort": [{"n": "desc"}], "limit": 3}
        found = self.call("find", store, body=self.body("FindBody", query)).parsed
        self.assertEqual([document.document["n"] for document in found.documents], [8, 7, 6])
        self.assertEqual(found.result.found, 3)
        self.assertTrue(found.result.bookmark)
        plan = self.call("explain", store, body=self.body("ExplainBody", query)).parsed
        self.assertTrue(plan.result.explanation)
        groups = {"selector": {"kind": {"$exists": True}}, "by": ["kind"], "compute": ["count", {"max": "n"}], "sort": [{"max:n": "desc"}]}
        rows = self.call("aggregate", store, body=self.body("AggregateBody", groups)).parsed.rows
        self.assertEqual([(row.by, row.values) for row in rows], [([["even"]], [[5], [8]]), ([["odd"]], [[4], [7]])])
        change = {"selector": {"kind": "odd"}, "update": {"$inc": {"n": 100}}}
        self.assertEqual(self.call("update", store, body=self.body("UpdateBody", change)).parsed.changed, 4)
        self.call("deleteIndex", store, "by kind", status=204)
        for name in ["../x", "a//b"]:
            self.call("ensureIndex", store, status=201, body=self.body("EnsureIndexBody", {"fields": ["n"], "name": name}))
            self.call("deleteIndex", store, name, status=400)
            self.call("deleteIndexByQuery", store, status=204, name=name)

    def check_server(self) -> None:
        self.assertIn("connections", self.call("stats").parsed.figures.additional_properties)
        self.assertIsNotNone(self.call("slowLog").parsed.wakeups)
        self.assertTrue(self.call("connections").parsed.connections)
        self.assertEqual(self.call("cluster").parsed.databases, [])
        self.assertIn("rights", self.call("whoami").parsed.additional_properties)
        self.assertIn("<html", self.call("console").parsed)
        self.assertEqual(self.call("description").parsed.additional_properties["openapi"], "3.1.0")
        self.assertIn("larder_requests_total", self.call("metrics").parsed)
        self.assertEqual(self.call("health").parsed, "ok\n")
        self.call("readiness")

    def check_session(self, module: Any, url: str) -> None:
        with Client(self.address) as native:
            link = native.console_link()["link"]
        session = self.call("beginSession", body=self.body("BeginSessionBody", {"link": link})).parsed
        self.client = module.AuthenticatedClient(base_url=url, token=session.token, raise_on_unexpected_status=True)
        self.call("endSession", status=204)
        self.call("listStores", status=401)
        self.client = module.Client(base_url=url, headers=CHANGING, raise_on_unexpected_status=True)
