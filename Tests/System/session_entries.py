"""Entries: Protocol/wire.md §4 and §6.4, in replies of one frame."""

import random
import threading
import time

import larder_wire as wire
from larder import Write
from larder_wire import Code, Operation
from session_case import Case

PAST = 0.25  # Seconds after which an entry that expires in 150 milliseconds has certainly expired.


class EntryChecks(Case):
    def test_put_and_get(self) -> None:
        for value in (b"value", b"", bytes(range(256)), b"\0" * 100_000):
            revision = self.store.put("key", value)
            entry = self.store.get("key")
            self.assertEqual((entry.value, entry.revision, entry.expire_after_milliseconds), (value, revision, None))
        self.assertIsNone(self.store.get("Key"))

    def test_lists(self) -> None:
        for value in ([b"a", b"", b"ccc"], [], [b""], [b"x" * 70_000, b"y"], [bytes([number % 256]) for number in range(3000)]):
            self.store.put("key", value)
            self.assertEqual(self.store.get("key").value, value)
            self.assertEqual(next(self.store.all()).value, value)

    def test_ranges(self) -> None:
        value = random.Random(1).randbytes(300_000)
        revision = self.store.put("key", value)
        for offset, count in ((0, 300_000), (0, 0), (1, 1), (65_535, 65_537), (299_999, 5), (300_000, 1), (2**64 - 1, 2**32 - 1)):
            for condition in (None, revision):
                found = self.store.get_range("key", offset, count, condition)
                self.assertEqual((found.value, found.size), (value[offset : offset + count], len(value)))
                self.assertEqual((found.revision, found.expire_after_milliseconds), (revision, None))
        with self.refuses(Code.conditionFailed):
            self.store.get_range("key", 0, 1, revision + 1)
        self.assertIsNone(self.store.get_range("none", 0, 1))
        with self.refuses(Code.conditionFailed):
            self.store.get_range("none", 0, 1, revision)
        self.store.put("list", [b"a"])
        with self.refuses(Code.illegalArgument):
            self.store.get_range("list", 0, 1)

    def test_uploads(self) -> None:
        part = random.Random(2).randbytes(100_000)
        revision = self.store.put_chunks("key", [part, b"", part[:7], part])
        entry = self.store.get("key")
        self.assertEqual((entry.value, entry.revision), (part + part[:7] + part, revision))
        self.assertEqual(self.store.put_chunks("empty", []), revision + 1)
        self.assertEqual(self.store.get("empty").value, b"")
        with self.refuses(Code.conditionFailed):
            self.store.put_chunks("key", [part], if_absent=True)
        with self.refuses(Code.conditionFailed):
            self.store.put_chunks("key", [part], if_revision=revision + 1)
        self.assertEqual(self.store.put_chunks("key", [part], 60_000, if_revision=revision), revision + 2)
        self.assertGreater(self.store.get("key").expire_after_milliseconds, 50_000)
        with self.refuses(Code.valueTooLarge):
            self.store.put_chunks("key", [bytes(1 << 20)] * 16)
        self.assertEqual(self.store.get("key").value, part)

    def test_uploads_of_other_connections_are_unknown(self) -> None:
        upload = wire.decode_integer(self.client.request(Operation.upload_begin, store=self.store.handle))
        other = self.second_client()
        for operation, body in (
            (Operation.upload_part, wire.encode_upload_part(upload, 0, b"part")),
            (Operation.upload_discard, wire.encode_upload_discard(upload)),
        ):
            with self.refuses(Code.uploadUnknown):
                other.request(operation, body)
        self.client.request(Operation.upload_part, wire.encode_upload_part(upload, 0, b"part"))
        with self.refuses(Code.illegalArgument):
            self.client.request(Operation.upload_part, wire.encode_upload_part(upload, 0, b"part"))
        write = Write("key", b"")
        with self.refuses(Code.illegalArgument):
            self.client.request(Operation.upload_put, wire.encode_upload_put(upload, 5, write), self.store.handle)
        self.assertIsNone(self.store.get("key"))
        self.client.request(Operation.upload_put, wire.encode_upload_put(upload, 4, write), self.store.handle)
        self.assertEqual(self.store.get("key").value, b"part")
        with self.refuses(Code.uploadUnknown):
            self.client.request(Operation.upload_put, wire.encode_upload_put(upload, 4, write), self.store.handle)

    def test_revisions_count_requests_that_change_the_store(self) -> None:
        first = self.store.put("a", b"1")
        self.assertEqual(first, 1)
        self.assertEqual(self.store.put("a", b"1"), first + 1)
        self.assertEqual(self.store.put_many([Write("a", b"2"), Write("b", b"2"), Write("c", b"2")]), first + 2)
        self.assertEqual([entry.revision for entry in self.store.all()], [first + 2] * 3)
        self.assertTrue(self.store.delete("c"))
        self.assertEqual(self.store.put("d", b"4"), first + 4)
        self.assertEqual(self.store.stats()["revision"], first + 4)
        self.assertEqual(self.store.delete_all(), 3)
        self.assertEqual(self.store.put("a", b"6"), first + 6)

    def test_requests_that_change_nothing_do_not_count(self) -> None:
        revision = self.store.put("a", b"1")
        self.assertEqual(self.store.put_many([]), 0)
        self.assertFalse(self.store.delete("b"))
        self.assertEqual(self.store.delete_many([]), 0)
        self.assertEqual(self.store.delete_many(["b", "c"]), 0)
        with self.refuses(Code.conditionFailed):
            self.store.put("a", b"2", if_absent=True)
        with self.refuses(Code.conditionFailed):
            self.store.delete("a", if_revision=revision + 1)
        self.assertEqual(self.store.put("a", b"3", expire_after_milliseconds=1), revision + 1)
        time.sleep(0.05)
        self.assertEqual((self.store.count(), self.store.delete_all()), (0, 0))
        self.assertEqual(self.store.put("a", b"4"), revision + 2)
        self.assertEqual(self.store.delete_many(["a", "a"]), 1)
        self.assertEqual(self.store.put("a", b"5"), revision + 4)

    def test_conditions_of_put(self) -> None:
        first = self.store.put("key", b"1", if_absent=True)
        with self.refuses(Code.conditionFailed):
            self.store.put("key", b"2", if_absent=True)
        for other in (0, first + 1, 2**64 - 1):
            with self.refuses(Code.conditionFailed):
                self.store.put("key", b"2", if_revision=other)
        with self.refuses(Code.conditionFailed):
            self.store.put("absent", b"2", if_revision=0)
        second = self.store.put("key", b"2", if_revision=first)
        with self.refuses(Code.conditionFailed):
            self.store.put("key", b"3", if_revision=first)
        entry = self.store.get("key")
        self.assertEqual((entry.value, entry.revision), (b"2", second))

    def test_conditions_of_delete(self) -> None:
        revision = self.store.put("key", b"1")
        for key, other in (("key", revision + 1), ("key", 0), ("absent", revision)):
            with self.refuses(Code.conditionFailed):
                self.store.delete(key, if_revision=other)
        self.assertTrue(self.store.delete("key", if_revision=revision))
        self.assertFalse(self.store.delete("key"))
        with self.refuses(Code.conditionFailed):
            self.store.delete("key", if_revision=revision)

    def test_put_many_writes_all_or_nothing(self) -> None:
        revision = self.store.put("b", b"1")
        for failing in (Write("b", b"2", if_absent=True), Write("b", b"2", if_revision=revision + 1), Write("c", b"", if_revision=1)):
            with self.refuses(Code.conditionFailed):
                self.store.put_many([Write("a", b"2"), failing, Write("z", b"2")])
            self.assertEqual([(entry.key, entry.revision) for entry in self.store.all()], [("b", revision)])
        both = self.store.put_many([Write("a", b"3", if_absent=True), Write("b", b"3", if_revision=revision)])
        self.assertEqual([(entry.key, entry.value, entry.revision) for entry in self.store.all()], [("a", b"3", both), ("b", b"3", both)])

    def test_put_many_checks_conditions_against_the_previous_state(self) -> None:
        self.store.put_many([Write("a", b"1", if_absent=True), Write("a", b"2", if_absent=True), Write("a", b"3")])
        self.assertEqual((self.store.get("a").value, self.store.count()), (b"3", 1))
        with self.refuses(Code.conditionFailed):
            self.store.put_many([Write("b", b"1"), Write("b", b"2", if_revision=self.store.get("a").revision + 1)])
        self.assertIsNone(self.store.get("b"))

    def test_get_many(self) -> None:
        self.store.put("a", b"1")
        self.store.put("b", [b"2"])
        entries = self.store.get_many(["b", "absent", "a", "b"])
        self.assertEqual([entry and (entry.key, entry.value) for entry in entries], [("b", [b"2"]), None, ("a", b"1"), ("b", [b"2"])])
        self.assertEqual(self.store.get_many([]), [])

    def test_delete_many_and_delete_all(self) -> None:
        self.store.put_many([Write(key, b"") for key in "abcde"])
        self.assertEqual(self.store.delete_many(["a", "absent", "c", "a"]), 2)
        self.assertEqual([entry.key for entry in self.store.all()], ["b", "d", "e"])
        self.assertEqual(self.store.delete_all(), 3)
        self.assertEqual((self.store.count(), self.store.delete_all()), (0, 0))

    def test_count(self) -> None:
        self.store.put_many([Write(key, b"") for key in ("a", "aa", "ab", "b", "é", "è")])
        counts = {"": 6, "a": 3, "aa": 1, "aaa": 0, "c": 0, b"\xc3": 2, b"\xff": 0, b"a" * 4096: 0}
        self.assertEqual({prefix: self.store.count(prefix) for prefix in counts}, counts)

    def test_multi_key_requests_are_atomic(self) -> None:
        """One connection always writes the same value to two keys while another reads both."""
        other = self.second_client().open(self.store.name)
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                value = str(number).encode()
                other.put_many([Write("a", value), Write("b", value)])

        writer = threading.Thread(target=write)
        writer.start()
        try:
            deadline = time.monotonic() + 0.3
            while time.monotonic() < deadline:
                a, b = self.store.get_many(["a", "b"])
                self.assertEqual(a and a.value, b and b.value)
                self.assertIn(len({(entry.value, entry.revision) for entry in self.store.page(limit=2)}), (0, 1))
        finally:
            stop.set()
            writer.join()


class ExpiryChecks(Case):
    def test_an_expired_entry_is_absent_from_every_request(self) -> None:
        revision = self.store.put("key", b"value", expire_after_milliseconds=150)
        entry = self.store.get("key")
        self.assertIn(entry.expire_after_milliseconds, range(1, 151))
        self.assertEqual(self.store.count(), 1)
        with self.refuses(Code.conditionFailed):
            self.store.put("key", b"other", if_absent=True)
        time.sleep(PAST)
        self.assertIsNone(self.store.get("key"))
        self.assertEqual(self.store.get_many(["key"]), [None])
        self.assertEqual((self.store.count(), self.store.count("k"), self.store.stats()["entries"]), (0, 0, 0))
        self.assertEqual((list(self.store.all()), list(self.store.page(limit=10))), ([], []))
        self.assertIn(wire.StoreDescription(self.store.name, "memory", 0), self.client.stores())
        with self.refuses(Code.conditionFailed):
            self.store.put("key", b"other", if_revision=revision)
        with self.refuses(Code.conditionFailed):
            self.store.delete("key", if_revision=revision)
        self.assertFalse(self.store.delete("key"))
        self.assertEqual((self.store.delete_many(["key"]), self.store.delete_all()), (0, 0))
        self.store.put("key", b"other", if_absent=True)
        self.assertEqual(self.store.get("key").value, b"other")

    def test_expired_entries_are_left_out_of_pages(self) -> None:
        self.store.put_many([Write(f"{number}", b"", expire_after_milliseconds=150 if number % 2 else None) for number in range(10)])
        self.assertEqual([entry.key for entry in self.store.page(limit=3, offset=3)], ["3", "4", "5"])
        time.sleep(PAST)
        self.assertEqual([entry.key for entry in self.store.page(limit=3, offset=3)], ["6", "8"])
        self.assertEqual([entry.key for entry in self.store.page(limit=9, offset=1, reverse=True)], ["6", "4", "2", "0"])

    def test_a_write_replaces_the_expiry(self) -> None:
        self.store.put("key", b"1", expire_after_milliseconds=150)
        self.store.put("key", b"2")
        self.store.put("later", b"1", expire_after_milliseconds=150)
        self.store.put("later", b"2", expire_after_milliseconds=60_000)
        time.sleep(PAST)
        self.assertEqual((self.store.get("key").value, self.store.get("key").expire_after_milliseconds), (b"2", None))
        self.assertIn(self.store.get("later").expire_after_milliseconds, range(50_000, 60_001))

    def test_the_shortest_and_longest_expiry(self) -> None:
        self.store.put("short", b"", expire_after_milliseconds=1)
        self.store.put("long", b"", expire_after_milliseconds=2**53)
        time.sleep(0.05)
        (entry,) = self.store.all()
        self.assertEqual(entry.key, "long")
        self.assertIn(entry.expire_after_milliseconds, range(2**53 - 60_000, 2**53 + 1))

    def test_invalid_expiries(self) -> None:
        for milliseconds in (0, 2**53 + 1, 2**64 - 1):
            with self.subTest(milliseconds), self.refuses(Code.illegalArgument):
                self.store.put("key", b"", expire_after_milliseconds=milliseconds)
        self.assertEqual(self.store.count(), 0)


class KeyChecks(Case):
    keys = [
        *("\0", "\0\0", "\x01", " ", ".", "..", "../..", "/", "/etc/passwd", "a", "a\0", "a\0b", "a/", "a/b", "aa", "A", "\n", "*"),
        *("é", "e\u0301", "ß", "\x7f", "\x80", "\ud7ff", "\ue000", "\uffff", "\U00010000", "😀", "👩‍👩‍👧", "\U0010ffff", "%2e", "\ufeff"),
        *("k" * 4095, "k" * 4096, "k" * 4095 + "l", "😀" * 1024, "\0" * 4096),
    ]

    def test_keys_are_literal(self) -> None:
        for number, key in enumerate(self.keys):
            self.store.put(key, str(number).encode(), if_absent=True)
        self.assertEqual(self.store.count(), len(self.keys))
        for number, key in enumerate(self.keys):
            self.assertEqual(self.store.get(key).value, str(number).encode())
        self.assertEqual([entry.key for entry in self.store.get_many(self.keys)], self.keys)

    def test_keys_are_ordered_by_their_bytes(self) -> None:
        self.store.put_many([Write(key, b"") for key in self.keys])
        in_order = sorted(self.keys, key=str.encode)
        self.assertEqual([entry.key for entry in self.store.all()], in_order)
        self.assertEqual([entry.key for entry in self.store.page(limit=1000, reverse=True)], in_order[::-1])
        for index, key in enumerate(in_order):
            after, before = self.store.page(limit=2, cursor=key), self.store.page(limit=1, cursor=key, reverse=True)
            self.assertEqual([entry.key for entry in after], in_order[index + 1 : index + 3])
            self.assertEqual([entry.key for entry in before], in_order[max(index - 1, 0) : index])
        self.assertEqual(self.store.delete_many(self.keys), len(self.keys))

    def test_a_prefix_or_cursor_longer_than_a_key(self) -> None:
        with self.refuses(Code.illegalArgument):
            self.store.count("k" * 4097)
        for size in (4097, 65_535):
            for arguments in ({"prefix": b"k" * size}, {"cursor": b"k" * size}):
                with self.refuses(Code.illegalArgument):
                    next(self.store.page(limit=1, **arguments), None)
                with self.refuses(Code.illegalArgument):
                    next(self.store.all(**arguments), None)


class PageChecks(Case):
    """Compares pages with the same slices of a Python list."""

    prefixes = ["", "0", "01", "014", "zz", "é", b"\xc3", b"\xff\xff", "0" * 4096]
    cursors = [None, "", "0", "0100", "0100\0", "0299", "é", b"\xff", b"\0", "0" * 4096]

    def setUp(self) -> None:
        super().setUp()
        self.keys = sorted([f"{number:04}" for number in range(300)] + ["é", "è", "ê", "\U0010ffff"], key=str.encode)
        self.revision = self.store.put_many([Write(key, key.encode() * 2) for key in self.keys])

    def expected(self, prefix: wire.Key, cursor: wire.Key | None, reverse: bool) -> list[str]:
        keys = [key for key in self.keys if key.encode().startswith(wire.encode_key(prefix))]
        if cursor is not None:
            after = wire.encode_key(cursor)
            keys = [key for key in keys if (key.encode() < after if reverse else key.encode() > after)]
        return keys[::-1] if reverse else keys

    def check(self, entries: list[wire.Entry | None], keys: list[str], keys_only: bool) -> None:
        values = [b"" if keys_only else key.encode() * 2 for key in keys]
        self.assertEqual([(entry.key, entry.value) for entry in entries], list(zip(keys, values)))
        self.assertLessEqual({entry.revision for entry in entries}, {self.revision})

    def test_pages(self) -> None:
        seed = random.randrange(10_000)
        choose = random.Random(seed).choice
        for _ in range(400):
            prefix, cursor, reverse, keys_only = choose(self.prefixes), choose(self.cursors), choose([False, True]), choose([False, True])
            offset, limit = choose([0, 0, 1, 50, 299, 303, 304, 305, 2**32, 2**64 - 1]), choose([0, 1, 7, 304, 2**32 - 1])
            arguments = (limit, offset, prefix, cursor, reverse, keys_only)
            with self.subTest(seed=seed, arguments=arguments):
                page = list(self.store.page(*arguments))
                self.check(page, self.expected(prefix, cursor, reverse)[offset : offset + limit], keys_only)

    def test_all(self) -> None:
        for prefix in self.prefixes:
            for cursor in self.cursors:
                for reverse, keys_only in ((False, False), (True, True)):
                    with self.subTest(prefix=prefix, cursor=cursor, reverse=reverse, keys_only=keys_only):
                        entries = list(self.store.all(prefix, cursor, reverse, keys_only))
                        self.check(entries, self.expected(prefix, cursor, reverse), keys_only)

    def test_walking_by_cursor(self) -> None:
        for reverse in (False, True):
            walked: list[str] = []
            while page := [entry.key for entry in self.store.page(7, cursor=walked[-1] if walked else None, reverse=reverse)]:
                walked += page
            self.assertEqual(walked, self.keys[::-1] if reverse else self.keys)

    def test_keys_only_of_a_list(self) -> None:
        self.store.put("list", [b"a", b"b"], expire_after_milliseconds=60_000)
        (entry,) = self.store.page(1, prefix="list", keys_only=True)
        self.assertEqual((entry.key, entry.value), ("list", []))
        self.assertIsNotNone(entry.expire_after_milliseconds)


class LargeValueChecks(Case):
    def test_values_up_to_the_maximum_size(self) -> None:
        max_size = self.client.hello.max_value_size
        for size in (65_535, 65_536, 65_537, max_size // 2, max_size):
            value = (b"%08d" % size) * (size // 8) + b"x" * (size % 8)
            self.store.put("large", value)
            self.assertTrue(self.store.get("large").value == value, f"a value of {size} bytes differs")
        self.store.put("after", b"small")
        sizes = [(entry.key, len(entry.value)) for entry in self.store.all()]
        self.assertEqual(sizes, [("after", 5), ("large", max_size)])
        self.assertTrue(self.store.get_many(["large"])[0].value == value)

    def test_the_maximum_value_with_the_longest_key(self) -> None:
        """It fits into every frame together with every optional field."""
        key, value = "k" * 4096, bytes(self.client.hello.max_value_size)
        revision = self.store.put(key, value, expire_after_milliseconds=60_000, if_absent=True)
        both = self.store.put_many([Write(key, value, 60_000, if_revision=revision)])
        for entry in (self.store.get(key), *self.store.get_many([key]), *self.store.all(), *self.store.page(limit=1)):
            self.assertEqual((entry.key, entry.value, entry.revision), (key, value, both))

    def test_a_value_over_the_maximum_size(self) -> None:
        value = bytes(self.client.hello.max_value_size + 1)
        with self.refuses(Code.valueTooLarge):
            self.store.put("key", value)
        with self.refuses(Code.valueTooLarge):
            self.store.put_many([Write("a", b""), Write("key", value)])
        self.client.ping()
        self.assertEqual(self.store.count(), 0)

    def test_the_maximum_number_of_keys(self) -> None:
        max_keys = self.client.hello.max_keys
        keys = [f"{number:x}" for number in range(max_keys + 1)]
        writes = wire.encode_writes(Write(key, b"") for key in keys)
        if len(writes) + 8 > self.client.hello.max_frame_size:
            self.skipTest("a frame has no room for so many keys")
        for refused in (self.store.get_many, self.store.delete_many):
            with self.refuses(Code.illegalArgument):
                refused(keys)
        with self.refuses(Code.illegalArgument):
            self.client.request(Operation.put_many, writes, self.store.handle)
        self.client.ping()
        keys.pop()
        self.assertEqual(self.store.count(), 0)
        self.store.put_many(Write(key, key.encode()) for key in keys)
        self.assertEqual([entry.value.decode() for entry in self.store.get_many(keys)], keys)
        self.assertEqual(self.store.delete_many(keys), max_keys)

    def test_a_request_of_the_maximum_frame_size(self) -> None:
        raw = self.raw()
        id = raw.send_request(Operation.ping, bytes(raw.limits.max_frame_size - 8))
        self.assert_error(raw.reply(), id, Code.malformed)
        self.assert_usable(raw)
