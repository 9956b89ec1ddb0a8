"""Groups of documents and changes of those that match: Protocol/wire.md §6.8 and §6.9."""

import json
from typing import Any

import larder_wire as wire
from larder import Write
from larder_wire import ChangeKind, Code, DocumentChanges, Operation
from session_case import Case

PEOPLE = {
    "ada": {"name": "Ada", "age": 36, "pets": ["cat", "dog"]},
    "bob": {"name": "Bob", "age": 12, "pets": ["cat"]},
    "cleo": {"name": "Cleo", "age": 40, "pets": []},
    "dan": {"name": "Dan"},
}


class ChangeChecks(Case):
    def setUp(self) -> None:
        super().setUp()
        self.revision = self.store.put_many([Write(key, json.dumps(person).encode()) for key, person in PEOPLE.items()])
        self.store.put("list", [b"{}"])
        self.store.put("text", b"age")

    def document(self, key: str) -> Any:
        return json.loads(self.store.get(key).value)

    def counts(self, changes: DocumentChanges) -> tuple[int, int, bool]:
        return changes.matched, changes.changed, changes.revision > 0

    # Groups.

    def test_groups(self) -> None:
        compute = ["count", {"sum": "age"}, {"avg": "age"}, {"min": "name"}, {"max": "age"}]
        groups = self.store.aggregate(["pets"], compute)
        self.assertEqual(
            groups,
            [
                ([None], [2, 40, 40.0, "Cleo", 40]),
                (["cat"], [2, 48, 24.0, "Ada", 36]),
                (["dog"], [1, 36, 36.0, "Ada", 36]),
            ],
        )
        self.assertEqual(self.store.aggregate(), [([], [4])])
        self.assertEqual(self.store.aggregate(selector={"age": 99}), [([], [0])])
        self.assertEqual(self.store.aggregate(["age"], selector={"age": 99}), [])

    def test_missing_values_are_empty_arrays(self) -> None:
        body = wire.encode_aggregate('{"_id":"dan"}', '{"by":["age","name"],"compute":["count",{"max":"age"}]}')
        row, result = wire.decode_found(self.client.request(Operation.aggregate, body, self.store.handle))
        self.assertEqual((row.key, row.revision), ("", 0))
        self.assertEqual(json.loads(row.value), {"by": [[], ["Dan"]], "values": [[1], []]})
        self.assertEqual((result.found, result.text, result.revision), (1, "", self.revision + 2))

    def test_different_values(self) -> None:
        self.assertEqual(self.store.distinct("pets"), ["cat", "dog"])
        self.assertEqual(self.store.distinct("age", {"pets": "cat"}), [12, 36])

    def test_groups_arrive_in_frames(self) -> None:
        people = [Write(f"{number:05}", json.dumps({"n": number, "text": "t" * 100}).encode()) for number in range(5_000)]
        self.store.put_many(people)
        groups = self.store.aggregate(["n", "text"], selector={"n": {"$gte": 0}})
        self.assertEqual(groups, [([number, "t" * 100], [1]) for number in range(5_000)])

    def test_aggregations_that_are_not_valid(self) -> None:
        aggregations: list[Any] = [
            [], {"group": []}, {"by": "age"}, {"by": [1]}, {"by": ["a..b"]}, {"compute": "count"}, {"compute": ["sum"]},
            {"compute": [{"sum": 1}]}, {"compute": [{"sum": "a", "avg": "b"}]}, {"by": [f"f{number}" for number in range(33)]},
        ]
        for aggregation in aggregations:
            body = wire.encode_aggregate("", json.dumps(aggregation))
            with self.subTest(aggregation=aggregation), self.refuses(Code.illegalArgument):
                self.client.request(Operation.aggregate, body, self.store.handle)

    # Changes.

    def test_an_update(self) -> None:
        changes = self.store.update_matching({"pets": "cat"}, {"$inc": {"age": 1}, "$set": {"seen": True}})
        self.assertEqual(self.counts(changes), (2, 2, True))
        self.assertEqual(self.document("ada"), {"name": "Ada", "age": 37, "pets": ["cat", "dog"], "seen": True})
        self.assertEqual(self.document("bob")["age"], 13)
        self.assertEqual(self.document("dan"), PEOPLE["dan"])
        self.assertEqual({self.store.get(key).revision for key in ("ada", "bob")}, {changes.revision})
        self.assertEqual(self.store.get("dan").revision, self.revision)
        self.assertGreater(changes.nanoseconds, 0)
        self.assertEqual((changes.examined_documents, changes.examined_keys), (5, 0))

    def test_a_merge_patch_keeps_the_other_text(self) -> None:
        self.store.put("spaced", b'{ "name" :  "Eve", "age":1.0 }')
        self.assertEqual(self.counts(self.store.update_matching({"name": "Eve"}, {"city": "Zürich"})), (1, 1, True))
        self.assertEqual(self.store.get("spaced").value, '{ "name" :  "Eve", "age":1.0,"city":"Zürich" }'.encode())

    def test_an_update_that_makes_no_difference(self) -> None:
        before = self.store.stats()["revision"]
        changes = self.store.update_matching({"name": "Ada"}, {"$set": {"age": 36}})
        self.assertEqual(self.counts(changes), (1, 0, False))
        self.assertEqual(self.store.stats()["revision"], before)
        self.assertEqual(self.counts(self.store.update_matching({"name": "nobody"}, {"age": 1})), (0, 0, False))

    def test_a_deletion(self) -> None:
        changes = self.store.delete_matching({"age": {"$gte": 36}})
        self.assertEqual(self.counts(changes), (2, 2, True))
        self.assertEqual([entry.key for entry in self.store.all()], ["bob", "dan", "list", "text"])
        self.assertEqual(changes.revision, self.store.stats()["revision"])
        self.assertEqual(self.counts(self.store.delete_matching({})), (2, 2, True))
        self.assertEqual([entry.key for entry in self.store.all()], ["list", "text"])

    def test_dry_runs(self) -> None:
        before = [(entry.key, entry.value, entry.revision) for entry in self.store.all()]
        revision = self.store.stats()["revision"]
        update = self.store.update_matching({"age": {"$exists": True}}, {"$set": {"age": 36}}, dry_run=True)
        self.assertEqual(self.counts(update), (3, 2, False))
        self.assertEqual(self.counts(self.store.delete_matching({}, dry_run=True)), (4, 4, False))
        self.assertEqual([(entry.key, entry.value, entry.revision) for entry in self.store.all()], before)
        self.assertEqual(self.store.stats()["revision"], revision)

    def test_an_update_that_is_impossible_in_one_document(self) -> None:
        self.store.put("eve", b'{"age":"old"}')
        before = [(entry.key, entry.revision) for entry in self.store.all()]
        for dry_run in (True, False):
            with self.refuses(Code.illegalArgument):
                self.store.update_matching({"age": {"$exists": True}}, {"$inc": {"age": 1}}, dry_run)
        self.assertEqual([(entry.key, entry.revision) for entry in self.store.all()], before)

    def test_an_update_keeps_the_expiry(self) -> None:
        self.store.put("eve", b'{"name":"Eve"}', expire_after_milliseconds=60_000)
        self.store.update_matching({"name": "Eve"}, {"age": 1})
        entry = self.store.get("eve")
        self.assertEqual(json.loads(entry.value), {"name": "Eve", "age": 1})
        self.assertIsNotNone(entry.expire_after_milliseconds)
        self.assertTrue(0 < entry.expire_after_milliseconds <= 60_000)

    def test_a_change_is_one_request_for_watches(self) -> None:
        with self.second_client().open(self.store.name).watch() as watch:
            revision = self.store.update_matching({"pets": "cat"}, {"seen": True}).revision
            changes = watch.next_changes()
            self.assertEqual([(change.kind, change.key, change.revision) for change in changes], [(ChangeKind.single, key, revision) for key in ("ada", "bob")])
            revision = self.store.delete_matching({"pets": "cat"}).revision
            changes = watch.next_changes()
            self.assertEqual([(change.kind, change.key, change.revision) for change in changes], [(ChangeKind.deleted, key, revision) for key in ("ada", "bob")])

    def test_more_documents_than_one_request_changes(self) -> None:
        for start in range(0, 65_537, 1_000):
            self.store.put_many([Write(f"{number:05}", b'{"n":1}') for number in range(start, min(start + 1_000, 65_537))])
        with self.refuses(Code.queryStopped):
            self.store.delete_matching({"n": 1})
        self.assertEqual(self.store.count_documents({"n": 1}), 65_537)
        self.store.delete("00000")
        self.assertEqual(self.counts(self.store.delete_matching({"n": 1})), (65_536, 65_536, True))

    def test_changes_with_an_index(self) -> None:
        index = self.store.ensure_index(["age"])
        self.store.wait_for_index(index)
        changes = self.store.update_matching({"age": 12}, {"$set": {"age": 13}})
        self.assertEqual(self.counts(changes), (1, 1, True))
        self.assertGreater(changes.examined_keys, 0)
        self.assertEqual([entry.key for entry in self.store.find({"age": 13}, index=index)], ["bob"])
        self.assertEqual([entry.key for entry in self.store.find({"age": 12}, index=index)], [])
        self.store.delete_matching({"age": {"$gt": 30}})
        self.assertEqual([entry.key for entry in self.store.find({"age": {"$gt": 0}}, index=index)], ["bob"])

    def test_updates_that_are_not_valid(self) -> None:
        for update in ({"$add": {"a": 1}}, {"$set": 1}, {"$set": {"_id": "x"}}, []):
            body = wire.encode_change_matching("", json.dumps(update))
            with self.subTest(update=update), self.refuses(Code.illegalArgument):
                self.client.request(Operation.change_matching, body, self.store.handle)
        with self.refuses(Code.illegalArgument):
            self.store.delete_matching({"$nor": 1})
