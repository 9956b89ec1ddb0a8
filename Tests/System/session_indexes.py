"""Indexes of documents: Protocol/wire.md §6.10, and finds that use them (§6.7)."""

import json
import random
from typing import Any

import larder_wire as wire
from larder import Write
from larder_wire import Code, Operation
from session_case import Case

SPECIES = ("cat", "dog", "fish")


def document(number: int) -> dict[str, Any]:
    """Returns a document. Some lack a field, and some have an array."""
    fields: dict[str, Any] = {"age": number % 50, "name": f"name{number % 7}", "pet": {"species": SPECIES[number % 3]}}
    if number % 11 == 0:
        fields["age"] = [number % 50, "old"]
    if number % 13 == 0:
        del fields["name"]
    return fields


class IndexChecks(Case):
    def put_documents(self, count: int = 500) -> None:
        self.store.put_many([Write(f"{number:04}", json.dumps(document(number)).encode()) for number in range(count)])

    def keys(self, *arguments: Any, **options: Any) -> list[str]:
        return [entry.key for entry in self.store.find(*arguments, **options)]

    def test_an_index_is_created_confirmed_and_deleted(self) -> None:
        self.assertEqual(self.store.indexes(), [])
        definition = {"name": "größe", "fields": ["name", {"age": "desc"}], "where": {"pet.species": "cat"}}
        body = json.dumps(definition, ensure_ascii=False).encode()
        for created in (True, False):
            reply = self.client.request(Operation.index_ensure, body, self.store.handle)
            self.assertEqual(wire.decode_index_ensure(reply), (created, "größe"))
        (index,) = self.store.indexes()
        self.assertEqual({name: index[name] for name in definition}, definition)
        self.store.delete_index("größe")
        self.assertEqual(self.store.indexes(), [])
        with self.refuses(Code.indexUnknown):
            self.store.delete_index("größe")

    def test_names(self) -> None:
        self.assertEqual(self.store.ensure_index(["age"]), "age")
        self.assertEqual(self.store.ensure_index([{"age": "desc"}, "name"]), "-age,name")
        self.assertEqual([index["name"] for index in self.store.indexes()], ["-age,name", "age"])
        with self.refuses(Code.indexExists):
            self.store.ensure_index(["name"], name="age")
        self.assertEqual(self.store.ensure_index(["name"], name="n" * 128), "n" * 128)

    def test_the_limit_of_indexes(self) -> None:
        for number in range(64):
            self.store.ensure_index([f"field{number}"])
        with self.refuses(Code.tooManyIndexes):
            self.store.ensure_index(["another"])
        self.assertEqual(self.store.ensure_index(["field0"]), "field0")
        self.store.delete_index("field0")
        self.store.ensure_index(["another"])
        self.assertEqual(len(self.store.indexes()), 64)

    def test_the_figures_of_an_index(self) -> None:
        self.put_documents()
        index = self.store.wait_for_index(self.store.ensure_index(["age"]))
        self.assertEqual((index["state"], index["documents"], index["overflowDocuments"]), ("ready", 500, 0))
        self.assertGreater(index["entries"], 500)
        self.assertGreater(index["memoryBytes"], 500)
        self.assertEqual(index["arrayFields"], ["age"])
        partial = self.store.wait_for_index(self.store.ensure_index(["name"], {"pet.species": "cat"}))
        self.assertEqual((partial["documents"], partial["entries"], partial["arrayFields"]), (167, 167, []))
        self.store.delete_all()
        self.assertEqual([index["entries"] for index in self.store.indexes()], [0, 0])

    def test_a_document_with_too_many_keys_is_found(self) -> None:
        name = self.store.ensure_index(["tags"])
        self.store.put("many", json.dumps({"tags": list(range(2_000))}).encode())
        self.store.put("long", json.dumps({"tags": "t" * 2_000}).encode())
        self.store.put("few", b'{"tags":[1999]}')
        index = self.store.wait_for_index(name)
        self.assertEqual((index["documents"], index["overflowDocuments"]), (3, 2))
        self.assertEqual(self.keys({"tags": 1999}, index=name), ["few", "many"])
        self.assertEqual(self.keys({"tags": "t" * 2_000}, index=name), ["long"])

    def test_an_index_that_does_not_exist_or_serve(self) -> None:
        self.put_documents(20)
        self.store.wait_for_index(self.store.ensure_index(["age"]))
        for name in ("none", "a" * 1_000):
            with self.refuses(Code.illegalArgument):
                self.keys({"age": 3}, index=name)
        with self.refuses(Code.illegalArgument):
            self.keys({"name": "name1"}, index="age")
        self.assertEqual(self.keys({"age": 3}, index="age"), ["0003"])

    def test_a_find_examines_less_with_an_index(self) -> None:
        self.put_documents()
        selector = {"age": {"$gte": 10, "$lt": 12}}
        scan = self.store.find(selector)
        expected = [entry.key for entry in scan]
        self.assertEqual((scan.result.examined_documents, scan.result.examined_keys), (500, 0))
        self.assertEqual(self.store.explain(selector)["plan"]["kind"], "scan")
        self.store.wait_for_index(self.store.ensure_index(["age"]))
        found = self.store.find(selector)
        self.assertEqual([entry.key for entry in found], expected)
        self.assertLess(found.result.examined_documents, 200)
        self.assertGreater(found.result.examined_keys, 0)
        explanation = self.store.explain(selector)
        self.assertEqual((explanation["plan"]["kind"], explanation["plan"]["index"]), ("index", "age"))
        self.assertEqual(self.store.count_documents(selector), len(expected))

    def test_an_explanation_has_the_numbers_of_the_find(self) -> None:
        self.put_documents(50)
        body = wire.encode_find('{"age":{"$gte":40}}', limit=3, explain=True)
        (result,) = wire.decode_found(self.client.request(Operation.find, body, self.store.handle))
        self.assertEqual((result.revision, result.found), (1, 3))
        self.assertEqual(set(json.loads(result.text)) & {"selector", "plan", "candidates"}, {"selector", "plan", "candidates"})

    def test_finds_are_the_same_with_every_index(self) -> None:
        """Compares finds with those without indexes, while documents are changed and deleted."""
        seed = random.randrange(1 << 32)
        self.put_documents()
        queries: list[dict[str, Any]] = [
            {"selector": {"age": {"$gt": 10, "$lt": 20}}},
            {"selector": {"age": "old"}},
            {"selector": {"name": {"$in": ["name1", "name3", "none"]}}, "sort": [{"age": "desc"}], "limit": 7, "skip": 3},
            {"selector": {"name": {"$exists": False}}},
            {"selector": {"$or": [{"age": 3}, {"name": "name2", "pet.species": "cat"}]}},
            {"selector": {"name": {"$beginsWith": "name"}}, "sort": ["name", "age"], "limit": 20},
            {"selector": {"pet.species": "cat", "age": {"$gte": 45}}, "sort": ["age"]},
            {"selector": {"_id": {"$gt": "0100", "$lt": "0200"}}},
            {"sort": [{"age": "desc"}], "limit": 5},
        ]
        plain = self.client.open(self.create_store())
        indexed = self.store
        for fields, where in ((["age"], None), (["name", {"age": "desc"}], None), (["pet.species", "age"], None), (["age"], {"pet.species": "cat"})):
            indexed.ensure_index(fields, where)
        plain.put_many([Write(entry.key, entry.value) for entry in indexed.all()])
        for index in indexed.indexes():
            indexed.wait_for_index(index["name"])
        chooser = random.Random(seed)
        for step in range(40):
            for query in queries:
                with self.subTest(seed=seed, step=step, query=query):
                    results = [[(entry.key, entry.value) for entry in store.find(**query)] for store in (plain, indexed)]
                    self.assertEqual(*results)
            key, number = f"{chooser.randrange(500):04}", chooser.randrange(500)
            for store in (plain, indexed):
                store.delete(key) if step % 4 == 0 else store.put(key, json.dumps(document(number)).encode())

    def test_pages_of_an_index(self) -> None:
        self.put_documents(200)
        self.store.wait_for_index(self.store.ensure_index(["name", "age"]))
        expected = self.keys({"name": {"$exists": True}}, ["name", "age"])
        seen: list[str] = []
        bookmark = ""
        while True:
            page = self.store.find({"name": {"$exists": True}}, ["name", "age"], limit=33, bookmark=bookmark)
            seen += [entry.key for entry in page]
            bookmark = page.bookmark
            if not bookmark:
                break
        self.assertEqual(seen, expected)

    def test_dropping_a_store_drops_its_indexes(self) -> None:
        self.store.ensure_index(["age"])
        self.client.drop(self.store.name)
        with self.refuses(Code.storeUnknown):
            self.store.indexes()
        self.client.create(self.store.name)
        self.assertEqual(self.client.open(self.store.name).indexes(), [])

    def test_definitions_that_are_not_valid(self) -> None:
        definitions: list[Any] = [
            {},
            {"fields": []},
            {"fields": "age"},
            {"fields": [{"age": "desc", "name": "asc"}]},
            {"fields": [f"f{number}" for number in range(33)]},
            {"fields": ["age"], "where": {"$text": "cat"}},
            {"fields": ["age"], "where": []},
            {"fields": ["age"], "name": "a\nb"},
            {"fields": ["age"], "name": 5},
        ]
        for definition in definitions:
            with self.subTest(definition=definition), self.refuses(Code.illegalArgument):
                self.client.request(Operation.index_ensure, json.dumps(definition).encode(), self.store.handle)
        self.assertEqual(self.store.indexes(), [])
