"""Watches of a store: Protocol/wire.md §6.5."""

import larder_wire as wire
from larder import LarderError, Watch, Write
from larder_wire import Change, ChangeKind, Code, Operation
from session_case import Case


class WatchChecks(Case):
    def changes(self, watch: Watch, count: int) -> list[Change]:
        seen: list[Change] = []
        while len(seen) < count:
            seen += watch.next_changes()
        return seen

    def test_changes_arrive_as_they_are_made(self) -> None:
        self.store.put("before", b"")
        watch = self.second_client().open(self.store.name).watch()
        self.assertEqual(watch.through, 1)
        self.store.put("a", b"1")
        self.store.put_many([Write("b", [b"x"]), Write("c", b"")])
        self.store.delete("a")
        self.store.delete("a")
        self.store.delete_many(["b", "c", "d"])
        self.store.delete_all()
        self.store.put("a", b"2", expire_after_milliseconds=60_000)
        seen = self.changes(watch, 8)
        self.assertEqual(
            [(change.kind.name, change.key, change.value, change.revision) for change in seen],
            [
                ("single", "a", b"1", 2),
                ("list", "b", wire.encode_list([b"x"]), 3),
                ("single", "c", b"", 3),
                ("deleted", "a", b"", 4),
                ("deleted", "b", b"", 5),
                ("deleted", "c", b"", 5),
                ("all_deleted", "", b"", 6),
                ("single", "a", b"2", 7),
            ],
        )
        self.assertEqual(watch.through, 7)
        self.assertTrue(50_000 < (seen[-1].expire_after_milliseconds or 0) <= 60_000)
        watch.cancel()
        self.assertEqual(self.store.stats()["watches"], 0)

    def test_from_a_revision_with_a_prefix(self) -> None:
        other = self.second_client().open(self.store.name)
        with other.watch():
            for key in ("a1", "b1", "a2", "a3"):
                self.store.put(key, b"value")
        with other.watch(from_revision=2, prefix="a", keys_only=True) as watch:
            self.assertEqual(watch.through, 1)
            seen = self.changes(watch, 2)
            self.assertEqual([(change.key, change.value, change.revision) for change in seen], [("a2", b"", 3), ("a3", b"", 4)])

    def test_changes_that_are_no_longer_available(self) -> None:
        self.store.put("a", b"")
        self.store.put("a", b"")
        for start in (1, 2, 4, 2**64 - 1):
            raw = self.raw()
            id = raw.send_request(Operation.watch, wire.encode_watch(start), raw.open(self.store.name))
            through, changes = wire.decode_changes(raw.done(id).body)
            self.assertEqual((through, changes), (min(start - 1, 2**63 - 1), [Change(ChangeKind.lost, "", b"", 2)]))
            self.assert_error(raw.reply(), id, Code.changesLost)
            self.assert_usable(raw)

    def test_a_watch_that_begins_too_late_says_so_at_once(self) -> None:
        self.store.put("a", b"")
        for start in (1, 7):
            watch = self.second_client().open(self.store.name).watch(from_revision=start)
            self.assertEqual((watch.lost, watch.through), (1, start - 1))
            with self.refuses(Code.changesLost):
                watch.next_changes()
        self.assertIsNone(self.second_client().open(self.store.name).watch(from_revision=2).lost)

    def test_a_watch_follows_one_incarnation(self) -> None:
        other = self.second_client()
        first = other.open(self.store.name).watch()
        self.store.put("a", b"1")
        self.assertEqual([change.key for change in self.changes(first, 1)], ["a"])
        self.assertEqual(first.incarnation, self.store.stats()["incarnation"])
        again = self.second_client().open(self.store.name).watch(first.through + 1, incarnation=first.incarnation)
        self.assertEqual((again.lost, again.incarnation), (None, first.incarnation))
        again.cancel()
        self.client.drop(self.store.name)
        self.client.create(self.store.name)
        self.store = self.client.open(self.store.name)
        # The new store has the revisions that the first watch expects, and keeps their changes.
        kept = self.second_client().open(self.store.name).watch()
        for key in ("b", "c", "d"):
            self.store.put(key, b"2")
        lost = self.second_client().open(self.store.name).watch(first.through + 1, incarnation=first.incarnation)
        self.assertEqual((lost.lost, lost.incarnation), (3, kept.incarnation))
        self.assertNotEqual(lost.incarnation, first.incarnation)
        with self.assertRaises(LarderError) as raised:
            lost.next_changes()
        self.assertIn("not the store that was watched", raised.exception.message)

    def test_frames_need_credit(self) -> None:
        raw = self.raw(credit=1)
        id = raw.send_request(Operation.watch, wire.encode_watch(), raw.open(self.store.name))
        self.assertEqual(raw.done(id).body, bytes(8))
        self.store.put("a", b"")
        self.assert_quiet(raw)
        raw.send(wire.encode_frame(Operation.credit, id, wire.encode_credit(1000)))
        self.assertEqual([change.key for change in wire.decode_changes(raw.done(id).body)[1]], ["a"])

    def test_through_marks_complete_commits(self) -> None:
        raw = self.raw()
        id = raw.send_request(Operation.watch, wire.encode_watch(), raw.open(self.store.name))
        raw.done(id)
        self.store.put_many([Write(f"{number:03}", bytes(1_000)) for number in range(300)])
        frames = [wire.decode_changes(raw.done(id).body) for _ in range(5)]
        self.assertEqual([through for through, _ in frames], [0, 0, 0, 0, 1])
        self.assertEqual([change.key for _, changes in frames for change in changes], [f"{number:03}" for number in range(300)])

    def test_a_key_that_is_written_twice_in_one_request(self) -> None:
        watch = self.second_client().open(self.store.name).watch()
        self.store.put_many([Write("a", b"1"), Write("b", b"2"), Write("a", b"3")])
        seen = self.changes(watch, 3)
        self.assertEqual([(change.key, change.value, change.revision) for change in seen], [("a", b"1", 1), ("b", b"2", 1), ("a", b"3", 1)])

    def test_dropping_the_store_ends_the_watch_without_credit(self) -> None:
        raw = self.raw(credit=1)
        id = raw.send_request(Operation.watch, wire.encode_watch(), raw.open(self.store.name))
        raw.done(id)
        self.client.drop(self.store.name)
        self.assert_error(raw.reply(), id, Code.storeUnknown)
        self.assert_usable(raw)
