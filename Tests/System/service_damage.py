"""Damaged stores: the others are served, and everything that an operator looks at names them."""

from __future__ import annotations

import subprocess
import urllib.request
from pathlib import Path

from larder import LarderError
from larder_wire import Code
from service_case import Service, ServiceCase

CONFIGURATION = """
data: {folder}/data
stores:
- sessions=memory
- good=log
- bad-log=log
- bad-directory=directory
"""
ACKNOWLEDGED = 200


def cut(files: Path, pattern: str, byte_count: int) -> Path:
    """Removes the last bytes that are not zero from the last file with that name, and the zeros behind them."""
    path = max(files.glob(pattern), key=lambda path: (len(path.name), path.name))
    path.write_bytes(path.read_bytes().rstrip(b"\0")[:-byte_count])
    return path


class DamageChecks(ServiceCase):
    def setUp(self) -> None:
        super().setUp()
        self.stores = self.folder / "data" / "stores"
        (self.folder / "larderd.yaml").write_text(CONFIGURATION.format(folder=self.folder))

    def start_ready(self) -> Service:
        service = self.start(second="metrics")
        service.client().close()
        service.notices.wait_for("READY", "1")
        return service

    def page(self, service: Service, path: str) -> str:
        address = service.addresses[1].replace("tcp:", "http://")
        with urllib.request.urlopen(f"{address}{path}", timeout=5) as response:
            return response.read().decode()

    def write_and_kill(self, *names: str) -> None:
        """Writes to stores until some writes are acknowledged, and kills the server."""
        service = self.start_ready()
        with service.client() as client:
            for name in names:
                store = client.open(name)
                for number in range(ACKNOWLEDGED):
                    store.put(f"{number}", b"%d" % number)
        service.kill()

    def run_strictly(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Runs a strict larderd, which must not start."""
        command = [self.server, f"--listen=unix:{self.folder}/strict", f"--data={self.folder}/data", *options]
        return subprocess.run(command, capture_output=True, timeout=20, text=True, check=False)

    def test_synced_writes_that_are_gone_after_a_kill_are_noticed_and_the_other_stores_are_served(self) -> None:
        self.write_and_kill("good", "bad-log", "bad-directory")
        cut_files = {
            "bad-log": cut(self.stores / "bad-log" / "files", "*.log", 300),
            "bad-directory": cut(self.stores / "bad-directory" / "files", ".journal-*", 300),
        }
        self.check_strict("--strict")
        service = self.start_ready()
        damaged = "bad-directory, bad-log"
        self.assertIn(f"without damaged stores: {damaged}", service.notices.wait_for("READY", "1")["STATUS"])
        self.assertIn(f'larderd: error: serving without damaged stores; clients get storeDamaged stores="{damaged}"\n', service.log())
        self.assertEqual(self.page(service, "/readyz"), f"ok, without damaged stores: {damaged}\n")
        metrics = self.page(service, "/metrics")
        self.assertIn("larder_stores_damaged 2\n", metrics)
        with service.client() as client:
            self.assertEqual(client.open("good").count(), ACKNOWLEDGED)
            self.assertEqual(client.stats()["stores_damaged"], 2)
            listed = {store.name: store.specification for store in client.stores()}
            self.assertEqual(listed["good"], "log?durability=always")
            for name, path in cut_files.items():
                with self.subTest(name):
                    self.assertIn(f'larder_store_damaged{{store="{name}"}} 1\n', metrics)
                    self.assertRegex(service.log(), f"larderd: error: this is damaged and not served: .*{path.name} is damaged at byte")
                    self.assertEqual(listed[name], "damaged")
                    for call in (lambda: client.open(name), lambda: client.create(name, "memory")):
                        with self.assertRaises(LarderError) as refused:
                            call()
                        self.assertEqual(refused.exception.code, Code.storeDamaged)
                        self.assertIn(f"{path} is damaged at byte", str(refused.exception))
            client.open("good").put("later", b"1")
            for name in cut_files:
                client.drop(name)
                client.create(name, name.removeprefix("bad-"))
                client.open(name).put("new", b"1")
            self.assertEqual(client.stats()["stores_damaged"], 0)
        self.assertEqual(self.page(service, "/readyz"), "ok\n")
        self.assertEqual(service.stop(), 0)
        service = self.start_ready()
        with service.client() as client:
            self.assertEqual(client.open("bad-log").count(), 1)
        self.assertNotIn("damaged", service.log())

    def check_strict(self, *options: str) -> None:
        result = self.run_strictly(*options)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"larderd: error: can't start: .* is damaged at byte \d+: ")

    def test_damaged_definitions_of_indexes_do_not_keep_a_store_from_being_served(self) -> None:
        service = self.start_ready()
        with service.client() as client:
            store = client.open("good")
            store.put("a", b'{"age":1}')
            store.ensure_index(["age"], name="age")
        self.assertEqual(service.stop(), 0)
        indexes = self.stores / "good" / "indexes"
        indexes.write_bytes(indexes.read_bytes()[:-5] + b"\n")
        result = self.run_strictly("--strict")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"can't start: {indexes}: the checksum is wrong", result.stderr)
        service = self.start_ready()
        self.assertIn(f"{indexes}: the checksum is wrong; the store is served without indexes", service.log())
        self.assertEqual(self.page(service, "/readyz"), "ok\n")
        self.assertIn('larder_store_indexes_damaged{store="good",engine="log"} 1\n', self.page(service, "/metrics"))
        with service.client() as client:
            store = client.open("good")
            self.assertEqual(store.stats()["indexes_damaged"], 1)
            self.assertEqual(store.indexes(), [])
            self.assertEqual(store.count_documents({"age": 1}), 1)
            store.ensure_index(["age"], name="age")
            self.assertEqual(store.stats()["indexes_damaged"], 0)
