"""Several operations in one step: Protocol/wire.md §6.11."""

import json
from typing import Any

from larder import LarderError, Write
from larder_wire import ChangeKind, Check, Code, Delete, Update
from session_case import Case


class ApplyChecks(Case):
    def document(self, key: str) -> Any:
        return json.loads(self.store.get(key).value)

    def test_every_kind_of_operation(self) -> None:
        first = self.store.put("ada", b'{"age":36,"pet":"cat"}')
        self.store.put("old", b"x")
        with self.store.watch() as watch:
            revision = self.store.apply(
                [
                    Check("ada", if_revision=first),
                    Check("bob", if_absent=True),
                    Update("ada", b'{"$inc":{"age":1}}', if_revision=first),
                    Update("ada", b'{"pet":null}'),
                    Write("bob", b'{"age":12}', expire_after_milliseconds=60_000, if_absent=True),
                    Update("bob", b'{"$inc":{"age":-2}}'),
                    Update("visits", b'{"$inc":{"n":1}}', create=True),
                    Write("list", [b"a", b""]),
                    Delete("old"),
                    Delete("nobody"),
                ]
            )
            self.assertEqual(revision, first + 2)
            changes = []
            while len(changes) < 5:
                changes += watch.next_changes()
            self.assertEqual({change.revision for change in changes}, {revision})
            deleted = [change.key for change in changes if change.kind == ChangeKind.deleted]
            self.assertEqual((sorted(change.key for change in changes), deleted), (["ada", "bob", "list", "old", "visits"], ["old"]))
        self.assertEqual((self.document("ada"), self.document("bob"), self.document("visits")), ({"age": 37}, {"age": 10}, {"n": 1}))
        self.assertLessEqual(self.store.get("bob").expire_after_milliseconds, 60_000)
        self.assertEqual((self.store.get("list").value, self.store.get("old")), ([b"a", b""], None))

    def test_nothing_to_change(self) -> None:
        revision = self.store.put("a", b"{}")
        self.assertEqual(self.store.apply([]), 0)
        self.assertEqual(self.store.apply([Check("a", if_revision=revision), Delete("b"), Update("a", b"{}")]), 0)
        self.assertEqual(self.store.get("a").revision, revision)

    def test_conditions_that_do_not_hold(self) -> None:
        revision = self.store.put("a", b"{}")
        cases = [
            (Check("a", if_revision=revision + 1), Code.conditionFailed),
            (Check("a", if_absent=True), Code.conditionFailed),
            (Check("b", if_revision=revision), Code.conditionFailed),
            (Delete("b", if_revision=revision), Code.conditionFailed),
            (Update("b", b"{}"), Code.notFound),
            (Update("a", b'{"$inc":1}'), Code.illegalArgument),
            (Check("a"), Code.illegalArgument),
        ]
        for operation, code in cases:
            with self.subTest(operation=operation):
                try:
                    self.store.apply([Write("new", b"x"), operation])
                    self.fail("the operation was executed")
                except LarderError as error:
                    self.assertEqual(error.code, code)
                    self.assertIn(f'operation 2 on "{operation.key}": ', str(error))
        self.assertEqual(self.store.count(), 1)

    def test_as_many_operations_as_allowed(self) -> None:
        writes = [Write(f"{number:05}", b"{}", if_absent=True) for number in range(65_536)]
        with self.refuses(Code.illegalArgument):
            self.store.apply([*writes, Write("more", b"")])
        revision = self.store.apply(writes)
        checks = [Check(write.key, if_revision=revision) for write in writes]
        self.assertEqual(self.store.apply(checks), 0)
        self.assertEqual(self.store.apply([Delete(write.key, if_revision=revision) for write in writes]), revision + 1)
        self.assertEqual(self.store.count(), 0)

    def test_large_documents(self) -> None:
        keys = [f"key{number}" for number in range(10)]
        self.store.put_many([Write(key, json.dumps({"n": 0, "text": "x" * 50_000}).encode()) for key in keys])
        updates = [Update(key, b'{"$inc":{"n":1}}') for key in keys * 3]
        self.assertGreater(self.store.apply(updates), 0)
        self.assertEqual({self.document(key)["n"] for key in keys}, {3})
