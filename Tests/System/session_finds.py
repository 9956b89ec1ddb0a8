"""Finding documents: Protocol/wire.md §6.7."""

import json

import larder_wire as wire
from larder import FoundDocuments, Write
from larder_wire import Code, FindResult, Operation
from session_case import Case

PEOPLE = {
    "ada": {"name": "Ada", "age": 36, "pets": ["cat", "dog"]},
    "bob": {"name": "Bob", "age": 12, "pets": ["cat"]},
    "cleo": {"name": "Cleo", "age": 40, "pets": []},
    "dan": {"name": "Dan"},
}


class FindChecks(Case):
    def setUp(self) -> None:
        super().setUp()
        writes = [Write(key, json.dumps(person).encode()) for key, person in PEOPLE.items()]
        writes += [Write("array", b"[{}]"), Write("cut", b'{"age":'), Write("list", [b"{}"]), Write("text", b"age")]
        self.revision = self.store.put_many(writes)

    def keys(self, found: FoundDocuments) -> list[str]:
        return [entry.key for entry in found]

    def result(self, found: FoundDocuments) -> FindResult:
        list(found)
        self.assertIsNotNone(found.result, "the reply has no result")
        return found.result

    def test_the_hello_announces_documents(self) -> None:
        self.assertEqual(self.client.hello.features, wire.FEATURES)

    def test_whole_documents_are_the_stored_bytes(self) -> None:
        found = [(entry.key, entry.value, entry.revision) for entry in self.store.find()]
        self.assertEqual(found, [(key, json.dumps(person).encode(), self.revision) for key, person in PEOPLE.items()])

    def test_selectors(self) -> None:
        self.assertEqual(self.keys(self.store.find({"age": {"$gt": 12}})), ["ada", "cleo"])
        self.assertEqual(self.keys(self.store.find({"pets": "cat", "_id": {"$ne": "bob"}})), ["ada"])
        self.assertEqual(self.keys(self.store.find({"_rev": self.revision + 1})), [])

    def test_sorts(self) -> None:
        self.assertEqual(self.keys(self.store.find(sort=["age"])), ["dan", "bob", "ada", "cleo"])
        self.assertEqual(self.keys(self.store.find(sort=[{"age": "desc"}])), ["cleo", "ada", "bob", "dan"])

    def test_fields(self) -> None:
        found = [json.loads(entry.value) for entry in self.store.find({"age": 12}, fields=["_id", "age", "none"])]
        self.assertEqual(found, [{"_id": "bob", "age": 12}])

    def test_pages(self) -> None:
        seen: list[str] = []
        bookmark = ""
        while True:
            found = self.store.find(sort=["age"], limit=1, bookmark=bookmark)
            seen += self.keys(found)
            bookmark = found.bookmark
            if not bookmark:
                break
        self.assertEqual(seen, ["dan", "bob", "ada", "cleo"])
        self.assertEqual(self.keys(self.store.find(limit=2, skip=1)), ["bob", "cleo"])
        self.assertEqual(self.keys(self.store.find(limit=0)), [])
        self.assertEqual(self.keys(self.store.find(skip=2**64 - 1)), [])

    def test_results(self) -> None:
        result = self.result(self.store.find({"age": {"$exists": True}}))
        self.assertEqual((result.revision, result.examined_documents, result.found, result.text), (self.revision, 7, 3, ""))
        self.assertGreater(result.nanoseconds, 0)
        none = self.result(self.store.find({"age": 99}))
        self.assertEqual((none.examined_documents, none.found, none.text), (7, 0, ""))

    def test_counts(self) -> None:
        self.assertEqual(self.store.count_documents(), 4)
        self.assertEqual(self.store.count_documents({"pets": "cat"}), 2)
        body = wire.encode_find('{"age":{"$exists":true}}', limit=1, skip=2, count_only=True)
        (result,) = wire.decode_found(self.client.request(Operation.find, body, self.store.handle))
        self.assertEqual((result.found, result.text), (3, ""))

    def test_texts_that_are_not_valid(self) -> None:
        bodies = [
            wire.encode_find("{"),
            wire.encode_find("[]"),
            wire.encode_find('{"age": {"$gth": 1}}'),
            wire.encode_find('{"$text": "cat"}'),
            wire.encode_find(sort='"age"'),
            wire.encode_find(sort='["a..b"]'),
            wire.encode_find(fields='{"age": 1}'),
            wire.encode_find(bookmark="AAAA"),
        ]
        selector = b'{"a":"\xff"}'
        bodies.append(wire.pack("IIQIIII", 0, 0, 0, len(selector), 0, 0, 0) + selector)
        for body in bodies:
            with self.subTest(body=body), self.refuses(Code.illegalArgument):
                self.client.request(Operation.find, body, self.store.handle)
        self.client.ping()

    def test_the_bookmark_of_another_query(self) -> None:
        bookmark = self.result(self.store.find(limit=1)).text
        self.assertTrue(bookmark)
        with self.refuses(Code.illegalArgument):
            list(self.store.find(sort=["age"], bookmark=bookmark))

    def test_later_writes_do_not_appear(self) -> None:
        documents = [(f"{number:03}", json.dumps({"n": number, "text": "t" * 10_000}).encode()) for number in range(40)]
        revision = self.store.put_many([Write(key, value) for key, value in documents])
        raw = self.raw(credit=1)
        id = raw.send_request(Operation.find, wire.encode_find('{"n":{"$gte":0}}'), raw.open(self.store.name))
        frames = [raw.done(id)]
        self.assertTrue(frames[0].more)
        self.store.delete_all()
        self.store.put("000", b'{"n":0}')
        raw.send(wire.encode_frame(Operation.credit, id, wire.encode_credit(1 << 30)))
        while frames[-1].more:
            frames.append(raw.done(id))
        *found, result = [record for frame in frames for record in wire.decode_found(frame.body)]
        self.assertEqual([(entry.key, entry.value, entry.revision) for entry in found], [(*pair, revision) for pair in documents])
        self.assertEqual((result.revision, result.found), (revision, 40))

    def test_a_cancelled_find(self) -> None:
        documents = [Write(f"{number:03}", json.dumps({"text": "t" * 10_000}).encode()) for number in range(40)]
        self.store.put_many(documents)
        raw = self.raw(credit=1)
        id = raw.send_request(Operation.find, wire.encode_find(), raw.open(self.store.name))
        self.assertTrue(raw.done(id).more)
        raw.send(wire.encode_frame(Operation.cancel, id))
        self.assert_error(raw.reply(), id, Code.cancelled)
        self.assertEqual(self.store.stats()["snapshots"], 0)
