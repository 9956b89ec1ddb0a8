"""Checks the checker of histories: it accepts what a store may do, and notices when something is changed in a history.

    python3 linearizability_test.py [--seed N]
"""

from __future__ import annotations

import argparse
import copy
import itertools
import random
import sys
import time
import unittest
from dataclasses import replace

import brief_case
from history_recorder import KEYS, Requests
from larder_wire import Change, ChangeKind, Code, Operation, Write
from linearizability import Epoch, Violation, Watched, check, written_revision
from store_model import EMPTY, Apply, Call, ChangeMatching, Remove, Request, State, content, document
from store_reads import Find, Get, GetMany, Page, Revision, Seen

MILLISECOND = 1_000_000


def put(revision: int | Code | None, tag: str, *keys: str, at: int, to: int | None = None, **options: object) -> Call:
    """Returns a put of some keys; times are in milliseconds."""
    writes = tuple(Write(key, document(tag, 0, 0), **options) for key in keys)
    request = Apply(writes, Operation.put_many, tag=tag)
    return Call(request, at * MILLISECOND, (at + 1 if to is None else to) * MILLISECOND, revision)


def get(key: str, tag: str | None, revision: int = 0, *, at: int, to: int | None = None) -> Call:
    result = Seen("", content(document(tag, 0, 0)), revision) if tag else Code.notFound
    return Call(Get(key), at * MILLISECOND, (at + 1 if to is None else to) * MILLISECOND, result)


def remove(key: str, count: int | None, *, at: int, to: int | None = None) -> Call:
    return Call(Remove((key,), tag=f"remove {at}"), at * MILLISECOND, (at + 1 if to is None else to) * MILLISECOND, count)


def watched(start: int, through: int, *puts: tuple[int, str, str]) -> Watched:
    changes = [Change(ChangeKind.single, key, document(tag, 0, 0), revision) for revision, key, tag in puts]
    return Watched(start, through, changes)


class HistoryTests(brief_case.BriefCase):
    """Small histories: each list is a connection, and each tuple a server's life."""

    def accept(self, *epochs: tuple[list[Call], ...], watched: list[Watched] = []) -> None:
        check(self.history(epochs, watched), survives=True)

    def reject(self, *epochs: tuple[list[Call], ...], watched: list[Watched] = []) -> None:
        self.assertRaises(Violation, check, self.history(epochs, watched), survives=True)

    def history(self, epochs: tuple[tuple[list[Call], ...], ...], watched: list[Watched]) -> list[Epoch]:
        return [Epoch(list(connections), watched if number == 0 else []) for number, connections in enumerate(epochs)]

    def test_overlapping_calls_have_any_order(self) -> None:
        self.accept(([put(2, "x", "a", at=0, to=9)], [put(1, "y", "a", at=0, to=9), get("a", "x", 2, at=10)]))
        self.reject(([put(2, "x", "a", at=0, to=4)], [put(1, "y", "a", at=5, to=9)]))

    def test_a_stale_read(self) -> None:
        writes = [put(1, "x", "a", at=0), put(2, "y", "a", at=2)]
        self.accept((writes, [get("a", "x", 1, at=1, to=3)]))
        self.reject((writes, [get("a", "x", 1, at=5)]))
        self.reject((writes, [get("a", None, at=5)]))

    def test_a_value_that_is_not_yet_written(self) -> None:
        self.reject(([put(1, "x", "a", at=5)], [get("a", "x", 1, at=0)]))

    def test_two_reads_go_back(self) -> None:
        write = put(1, "x", "a", at=0, to=20)
        self.accept(([write], [get("a", None, at=1), get("a", "x", 1, at=4)]))
        self.reject(([write], [get("a", "x", 1, at=1), get("a", None, at=4)]))

    def test_a_revision_is_given_twice_or_left_out(self) -> None:
        self.reject(([put(1, "x", "a", at=0)], [put(1, "y", "b", at=0)]))
        self.reject(([put(1, "x", "a", at=0), put(3, "y", "a", at=2)],))

    def test_conditions(self) -> None:
        first = put(1, "x", "a", at=0)
        self.accept(([first, put(Code.conditionFailed, "y", "a", "b", at=2, if_absent=True), get("b", None, at=4)],))
        self.reject(([first, put(2, "y", "a", at=2, if_absent=True)],))
        self.reject(([first, put(Code.conditionFailed, "y", "b", at=2, if_absent=True)],))
        self.reject(([first, put(2, "y", "a", at=2, if_revision=7)],))

    def test_many_keys_are_written_in_one_step(self) -> None:
        def both(tags: list[str | None]) -> Call:
            return Call(GetMany(("a", "b")), MILLISECOND, 3 * MILLISECOND, [tag and get("a", tag, 1, at=0).result for tag in tags])

        write = put(1, "x", "a", "b", at=0, to=9)
        self.accept(([write], [both(["x", "x"])]))
        self.accept(([write], [both([None, None])]))
        self.reject(([write], [both(["x", None])]))

    def test_an_update_leaves_only_documents_that_others_have_put_meanwhile(self) -> None:
        keys = [f"a{number:02}" for number in range(60)]
        before, meanwhile = put(1, "x", *keys, at=0), put(2, "y", "b", at=2, to=9)
        unanswered = Call(ChangeMatching("", False, tag="z"), 3 * MILLISECOND, 9 * MILLISECOND)

        def found(updated: set[str]) -> Call:
            def entry(key: str, tag: str, revision: int) -> Seen:
                if key in updated:
                    return Seen(key, content(document("z", 1, 0)), 3)
                return Seen(key, content(document(tag, 0, 0)), revision)

            entries = [*(entry(key, "x", 1) for key in keys), entry("b", "y", 2)]
            return Call(Page(), 10 * MILLISECOND, 11 * MILLISECOND, entries)

        none, most, every = set(), {*keys}, {*keys, "b"}
        for answer, expected in (None, [none, most, every]), ((60, 60, 3), [most]), ((61, 61, 3), [every]):
            for updated in none, {"b"}, {*keys[1:], "b"}, most, every:
                verify = self.accept if updated in expected else self.reject
                verify(([before, replace(unanswered, result=answer)], [meanwhile]), ([found(updated)],))

    def test_writes_without_a_reply_survive_or_not(self) -> None:
        lost = put(None, "x", "a", "b", at=0)
        self.accept(([lost],), ([get("a", None, at=10), get("b", None, at=12)],))
        self.accept(([lost],), ([get("a", "x", 1, at=10), get("b", "x", 1, at=12)],))
        self.reject(([lost],), ([get("a", "x", 1, at=10), get("b", None, at=12)],))
        self.reject(([lost],), ([get("a", None, at=10), get("a", "x", 1, at=12)],))

    def test_an_acknowledged_write_is_lost(self) -> None:
        self.accept(([put(1, "x", "a", at=0)],), ([get("a", "x", 1, at=10)],))
        self.reject(([put(1, "x", "a", at=0)],), ([get("a", None, at=10)],))

    def test_an_acknowledged_deletion_is_lost(self) -> None:
        first = [put(1, "x", "a", at=0), remove("a", 1, at=2)]
        self.accept((first,), ([get("a", None, at=10), put(3, "y", "a", at=12)],))
        self.reject((first,), ([get("a", "x", 1, at=10)],))
        self.reject((first,), ([get("a", None, at=10), put(2, "y", "a", at=12)],))

    def test_what_was_read_is_lost(self) -> None:
        first = [put(None, "x", "a", at=0, to=5)], [get("a", "x", 1, at=1)]
        self.accept(first, ([get("a", "x", 1, at=10)],))
        self.reject(first, ([get("a", None, at=10)],))

    def test_what_a_refusal_showed_is_lost(self) -> None:
        first = [put(None, "x", "a", at=0, to=5)], [put(Code.conditionFailed, "y", "a", at=1, if_absent=True)]
        self.accept(first, ([get("a", "x", 1, at=10)],))
        self.reject(first, ([get("a", None, at=10)],))

    def test_what_was_watched_is_lost(self) -> None:
        first = ([put(None, "x", "a", at=0, to=5)],)
        self.accept(first, ([get("a", "x", 1, at=10)],), watched=[watched(0, 1, (1, "a", "x"))])
        self.reject(first, ([get("a", None, at=10)],), watched=[watched(0, 1, (1, "a", "x"))])
        self.reject(first, ([get("a", None, at=10)],), watched=[watched(1, 1)])

    def test_a_watch_with_gaps_and_repetitions(self) -> None:
        writes = ([put(1, "x", "a", at=0), put(2, "y", "a", at=2)],)
        one, two = (1, "a", "x"), (2, "a", "y")
        self.accept(writes, watched=[watched(0, 2, one, two)])
        for wrong in (one,), (two,), (two, one), (one, one, two), (one, (2, "b", "y")), (one, two, (3, "a", "z")):
            self.reject(writes, watched=[watched(0, 2, *wrong)])

    def test_a_lost_revision_that_was_shown(self) -> None:
        first = ([put(None, "x", "a", at=0, to=5)], [Call(Revision(), MILLISECOND, 2 * MILLISECOND, 1)])
        self.reject(first, ([Call(Revision(), 10 * MILLISECOND, 11 * MILLISECOND, 0)],))

    def test_an_entry_expires(self) -> None:
        first = put(1, "x", "a", at=0, expire_after_milliseconds=50)

        def page(present: bool, left: int, at: int) -> Call:
            entries = [Seen("a", content(document("x", 0, 0)), 1, left)] if present else []
            return Call(Page(), at * MILLISECOND, (at + 1) * MILLISECOND, entries)

        self.accept(([first, page(True, 10, at=40), get("a", None, at=60)],))
        self.reject(([first, page(True, 10, at=10)],))
        self.reject(([first, get("a", None, at=20)],))
        self.reject(([first, page(True, 1, at=60)],))
        self.accept(([first],), ([get("a", None, at=60), put(2, "y", "a", at=62, if_absent=True)],))
        self.reject(([first],), ([get("a", None, at=50), page(True, 1, at=52)],))

        def find(present: bool, at: int, to: int) -> Call:
            documents = [("a", content(document("x", 0, 0)), 1)] if present else []
            return Call(Find(0), at * MILLISECOND, to * MILLISECOND, (1, documents))

        # A document that expires while the reply is sent is omitted.
        self.accept(([first, find(False, at=20, to=60), page(True, 20, at=30)],))
        self.reject(([first, find(False, at=20, to=30)],))


class MutationTests(brief_case.BriefCase):
    """Changes long histories that the model itself has made."""

    seed = 0

    def test_mutations(self) -> None:
        for number in range(40):
            rng = random.Random(f"{self.seed} {number}")
            epochs = simulated(rng, 200)
            check(epochs, survives=True)
            for mutate in (change_value, change_revision, drop_write, swap_writes, show_older, lose_last_write):
                changed = copy.deepcopy(epochs)
                with self.subTest(mutation=mutate.__name__, seed=self.seed, history=number):
                    mutate(rng, changed)
                    self.assertRaises(Violation, check, changed, survives=True)


def simulated(rng: random.Random, count: int) -> list[Epoch]:
    """Returns the history of two servers, whose calls take place at some time after their invocation and before their return."""
    requests, state, now = Requests(rng, expiring=0), EMPTY, 0
    epochs = []
    for _ in range(2):
        connections: list[list[Call]] = [[] for _ in range(4)]
        initial = [execute(request, state, now + step, now + step) for step, request in enumerate((Revision(), Page()))]
        connections[0] += [call for call, _ in initial]
        for _ in range(count):
            now += 1_000
            calls = rng.choice([calls for calls in connections if not calls or calls[-1].returned < now])
            earliest = calls[-1].returned + 1 if calls else 0
            call, state = execute(requests.next(), state, max(earliest, now - rng.randrange(5_000)), now + rng.randrange(3_000))
            requests.revisions |= {key: entry.revision for key, entry in state.entries.items()}
            calls.append(call)
        now += 10_000
        epochs.append(Epoch(connections))
    epochs[-1].connections.append([execute(request, state, now, now + 1)[0] for request in (Revision(), Page())])
    return epochs


def execute(request: Request, state: State, invoked: int, returned: int) -> tuple[Call, State]:
    call = Call(request, invoked, returned)
    outcome = next(request.outcomes(state, call, 0))
    call.result = outcome.result
    return call, outcome.state


def writes(epochs: list[Epoch]) -> list[tuple[list[Call], Call]]:
    """Returns the calls that have a revision, with their connections, by revision."""
    found = [(calls, call) for epoch in epochs for calls in epoch.connections for call in calls]
    return sorted((write for write in found if written_revision(write[1])), key=lambda write: written_revision(write[1]))


def reads(epochs: list[Epoch]) -> list[Call]:
    found = [call for epoch in epochs for calls in epoch.connections for call in calls]
    return [call for call in found if isinstance(call.result, Seen) and call.result.content]


def change_value(rng: random.Random, epochs: list[Epoch]) -> None:
    call = rng.choice(reads(epochs))
    call.result = call.result._replace(content=content(document("nobody", 1, 10)))


def change_revision(rng: random.Random, epochs: list[Epoch]) -> None:
    call = rng.choice(reads(epochs))
    call.result = call.result._replace(revision=call.result.revision + 1)


def drop_write(rng: random.Random, epochs: list[Epoch]) -> None:
    calls, call = rng.choice(writes(epochs)[:-1])
    calls.remove(call)


def swap_writes(rng: random.Random, epochs: list[Epoch]) -> None:
    """Swaps the results of two writes that did not overlap: those that did may have had any order."""
    pairs = itertools.combinations((call for _, call in writes(epochs)), 2)
    first, second = rng.choice([(first, second) for first, second in pairs if first.returned < second.invoked])
    first.result, second.result = second.result, first.result


def show_older(rng: random.Random, epochs: list[Epoch]) -> None:
    """Adds a read at the end that has what a key had before its last write."""
    last = epochs[-1].connections[-1][-1]
    key = rng.choice([entry.key for entry in last.result] or [KEYS[0]])
    entry = next((entry for entry in last.result if entry.key == key), None)
    older = Code.notFound if entry else Seen("", content(document("t1", 0, 0)), 1)
    epochs[-1].connections[-1].append(Call(Get(key), last.returned + 1, last.returned + 2, older))


def lose_last_write(rng: random.Random, epochs: list[Epoch]) -> None:
    """Makes the second server start with one revision less than the first one had."""
    first = epochs[1].connections[0][0]
    first.result -= 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the checker of histories.")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    MutationTests.seed = parser.parse_args().seed
    loader = unittest.defaultTestLoader
    passed, failed = brief_case.run(*(loader.loadTestsFromTestCase(case) for case in (HistoryTests, MutationTests)))
    print(f"seed {MutationTests.seed}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
