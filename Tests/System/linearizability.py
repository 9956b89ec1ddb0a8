"""Checks that a recorded history of a store has an order in which the reference (`store_model.py`) gives the same replies.

The order must respect time: a call that returned before another one was invoked comes first. The calls of one connection
are in the order in which they were sent. A call without a reply took place before its server ended, or never. What had
taken place when the server ended is what the next one starts with, if the store survives.

The search is that of Wing and Gong with Lowe's memory of states. Every write takes the next revision, and most replies
tell revisions, so there is rarely more than one call that can be the next to change the store.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from larder_wire import Change, ChangeKind, Code, decode_list
from store_model import EMPTY, Apply, Call, ChangeMatching, Changes, Content, Outcome, State, content, tag_of
from store_reads import Find, GetMany, Page, Revision, seen_entries, times_agree

# The server's clock may be late by a millisecond, and it counts in milliseconds.
SLACK = 4_000_000
# Most histories have a thousand or two. Only one that is too ambiguous to decide has this many.
MAX_OUTCOMES = 1_000_000


@dataclass
class Watched:
    """What a watch has delivered: all changes after the revision `start` up to `through`, and maybe some of the next."""

    start: int
    through: int
    changes: list[Change] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The last revision that it has shown."""
        return max(self.through, self.changes[-1].revision if self.changes else 0)


@dataclass
class Epoch:
    """The calls on a store between a start and the end of a server, by connection, and what watches delivered."""

    connections: list[list[Call]]
    watched: list[Watched] = field(default_factory=list)


class Violation(Exception):
    """A history that no order explains."""


class Undecided(Exception):
    """A history that is too ambiguous to decide."""


class Facts:
    """What replies and watches tell about revisions: who made them, and what changed."""

    def __init__(self, epochs: list[Epoch]) -> None:
        self.revisions: dict[str, int] = {}
        self._tags: dict[int, str] = {}
        self._changes: dict[int, Changes] = {}
        shown = [(-math.inf, 0)]
        for epoch in epochs:
            for call in itertools.chain(*epoch.connections):
                for tag, revision in seen_entries(call):
                    self._learn(tag, revision)
                    shown.append((call.returned, revision))
                if revision := written_revision(call):
                    self._learn(call.request.tag, revision)
                    shown.append((call.returned, revision))
            for watched in epoch.watched:
                self._watch(watched)
        shown.sort()
        # When a reply told a revision, and the greatest revision that replies had told by then.
        self._times = [time for time, _ in shown]
        self._greatest = list(itertools.accumulate((revision for _, revision in shown), max))

    def _learn(self, tag: str, revision: int) -> None:
        if self.revisions.setdefault(tag, revision) != revision:
            raise Violation(f"request {tag} has the revisions {self.revisions[tag]} and {revision}")
        if self._tags.setdefault(revision, tag) != tag:
            raise Violation(f"the requests {tag} and {self._tags[revision]} have the same revision {revision}")

    def _watch(self, watched: Watched) -> None:
        changes: dict[int, Changes] = {revision: [] for revision in range(watched.start + 1, watched.through + 1)}
        last = watched.start
        for change in watched.changes:
            if change.revision < last:
                raise Violation(f"a watch delivered revision {change.revision} after {last}")
            last = change.revision
            value = written_content(change)
            changes.setdefault(change.revision, []).append((change.key, value))
            if value:
                self._learn(tag_of(value), change.revision)
        for revision, known in changes.items():
            if revision > watched.through:
                # The rest of the last request may be missing.
                continue
            if not known:
                raise Violation(f"a watch from {watched.start} to {watched.through} has nothing for revision {revision}")
            if self._changes.setdefault(revision, known) != known:
                raise Violation(f"two watches differ in revision {revision}: {known} and {self._changes[revision]}")

    def least_revision(self, time: int) -> int:
        """Returns a revision that the store had before this time."""
        return self._greatest[bisect.bisect_left(self._times, time) - 1]

    def allow(self, call: Call, outcome: Outcome) -> bool:
        """Returns whether the call may be the one that made this revision."""
        revision, tag = outcome.state.revision, call.request.tag
        if self._tags.get(revision, tag) != tag or self.revisions.get(tag, revision) != revision:
            return False
        known = self._changes.get(revision)
        if known is None:
            return True
        if isinstance(call.request, ChangeMatching):
            return sorted(known) == sorted(outcome.changes)
        return known == outcome.changes


def written_content(change: Change) -> Content | None:
    match change.kind:
        case ChangeKind.single:
            return content(change.value)
        case ChangeKind.list:
            return content(decode_list(change.value))
    return None


def written_revision(call: Call) -> int | None:
    """Returns the revision of a write, if its reply tells it and it has changed anything."""
    match call.request, call.result:
        case Apply(), int(revision) if not isinstance(call.result, Code):
            return revision or None
        case ChangeMatching(), (_, _, revision):
            return revision or None
    return None


@dataclass(frozen=True)
class Place:
    """How far a history is explained: the epoch, and how many calls of each connection are in order."""

    epoch: int
    positions: tuple[int, ...]

    def after(self, connection: int) -> Place:
        positions = list(self.positions)
        positions[connection] += 1
        return Place(self.epoch, tuple(positions))


class Search:
    def __init__(self, epochs: list[Epoch]) -> None:
        self.epochs = epochs
        self.facts = Facts(epochs)
        # For each call, the time before which it took place, because a later one of the connection returned then.
        self.deadlines = [[deadlines(connection) for connection in epoch.connections] for epoch in epochs]
        # The revision that the store must at least have at the end of each epoch, and the one that it had if that is known.
        self.least = [max((watched.last for watched in epoch.watched), default=0) for epoch in epochs]
        self.last = [*map(first_revision, epochs[1:]), None]
        self.visited: set[object] = set()
        self.outcome_count = 0
        self.furthest: tuple[int, int, Place, State] = (0, -1, Place(0, ()), EMPTY)

    def run(self) -> None:
        """Raises an error unless there is an order."""
        stack = [self.start(0, EMPTY)]
        while stack:
            place, state = stack.pop()
            if place.epoch == len(self.epochs):
                return
            self.furthest = max(self.furthest, (place.epoch, sum(place.positions), place, state), key=lambda found: found[:2])
            following = self.successors(place, state)
            if len(following) > 1:
                entries = frozenset((key, entry.content, entry.revision, entry.since) for key, entry in state.entries.items())
                key = (place, state.revision, entries)
                if key in self.visited:
                    continue
                self.visited.add(key)
            stack += reversed(following)
        raise Violation(self.describe())

    def start(self, epoch: int, state: State) -> tuple[Place, State]:
        return Place(epoch, (0,) * len(self.epochs[epoch].connections) if epoch < len(self.epochs) else ()), state

    def successors(self, place: Place, state: State) -> list[tuple[Place, State]]:
        """Returns what can come next, the likeliest first."""
        branches = []
        for connection, call in self.ready(place):
            after = place.after(connection)
            if not call.is_answered and not call.request.tag:
                return [(after, state)]
            for outcome, shows_expiry in self.outcomes(call, state):
                if not outcome.changes and not shows_expiry and call.is_answered:
                    # A call that changes nothing and fits here needs no other place.
                    return [(after, outcome.state)]
                if not outcome.changes or self.allows(place.epoch, call, outcome):
                    branches.append((after, outcome.state))
            if not call.is_answered and self.deadline(place, connection) < math.inf:
                # It had no effect that survived, but a later call of the connection was answered.
                branches.append((after, state))
        if self.may_end(place, state):
            branches.append(self.start(place.epoch + 1, state))
        return branches

    def ready(self, place: Place) -> list[tuple[int, Call]]:
        """Returns the calls that may be next: those that were invoked before any other one was done."""
        connections = self.epochs[place.epoch].connections
        following = enumerate(zip(connections, place.positions))
        heads = [(number, calls[position]) for number, (calls, position) in following if position < len(calls)]
        limit = min((self.deadline(place, number) for number, _ in heads), default=math.inf)
        return [(number, call) for number, call in heads if call.invoked <= limit]

    def deadline(self, place: Place, connection: int) -> float:
        deadlines, position = self.deadlines[place.epoch][connection], place.positions[connection]
        return deadlines[position] if position < len(deadlines) else math.inf

    def may_end(self, place: Place, state: State) -> bool:
        if any(self.deadline(place, number) < math.inf for number in range(len(place.positions))):
            return False
        return state.revision >= self.least[place.epoch] and self.last[place.epoch] in (None, state.revision)

    def allows(self, epoch: int, call: Call, outcome: Outcome) -> bool:
        last = self.last[epoch]
        return (last is None or outcome.state.revision <= last) and self.facts.allow(call, outcome)

    def outcomes(self, call: Call, state: State) -> Iterator[tuple[Outcome, bool]]:
        """Returns what the call can do, and whether it shows that an entry has expired."""
        expiring = [(key, entry.expiry) for key, entry in state.entries.items() if entry.expiry and call.request.touches(key)]
        expired = [key for key, (_, latest) in expiring if call.invoked > latest + SLACK]
        may = [key for key, (earliest, _) in expiring if key not in expired and call.returned >= earliest - SLACK]
        least = self.facts.least_revision(call.invoked)
        for count in range(len(may) + 1):
            for early in itertools.combinations(may, count):
                world = without(state, [*expired, *early])
                for outcome in call.request.outcomes(world, call, least):
                    self.outcome_count += 1
                    if self.outcome_count > MAX_OUTCOMES:
                        raise Undecided(f"after {MAX_OUTCOMES} outcomes: {self.describe()}")
                    if not call.is_answered or (accepts(call, outcome, may) and times_agree(call, world.entries, SLACK)):
                        yield outcome, world is not state

    def describe(self) -> str:
        epoch, _, place, state = self.furthest
        lines = [f"no order explains what follows in epoch {epoch}, with the store at revision {state.revision}:"]
        for key, entry in sorted(state.entries.items()):
            lines.append(f"  has {key}: {entry}")
        for connection, call in self.ready(place):
            lines.append(f"  connection {connection}: {call}")
        return "\n".join(line[:400] for line in lines)


def without(state: State, keys: list[str]) -> State:
    return State(state.revision, {key: entry for key, entry in state.entries.items() if key not in keys}) if keys else state


def accepts(call: Call, outcome: Outcome, may: list[str]) -> bool:
    if type(outcome.result) is not type(call.result):
        # An error's code is also an integer.
        return False
    if outcome.result == call.result:
        return True
    if isinstance(call.request, Page) and isinstance(call.result, list):
        # Entries of the snapshot that expire while it is sent are omitted.
        keys = {entry.key for entry in call.result}
        return [entry for entry in outcome.result if entry.key in keys or entry.key not in may] == call.result
    if isinstance(call.request, Find) and isinstance(call.result, tuple):
        revision, documents = call.result
        keys = {key for key, _, _ in documents}
        expected = [document for document in outcome.result[1] if document[0] in keys or document[0] not in may]
        return (outcome.result[0], expected) == (revision, documents)
    if isinstance(call.request, GetMany) and isinstance(call.result, list):
        rows = zip(call.request.keys, outcome.result, call.result)
        return all(entry == found or (found is None and key in may) for key, entry, found in rows)
    return False


def deadlines(connection: list[Call]) -> list[float]:
    ends, end = [], math.inf
    for call in reversed(connection):
        end = min(end, call.returned if call.is_answered else math.inf)
        ends.append(end)
    return ends[::-1]


def first_revision(epoch: Epoch) -> int | None:
    """Returns the revision that the server told first, before anything could change."""
    for calls in epoch.connections:
        if calls and isinstance(calls[0].request, Revision) and calls[0].is_answered:
            return calls[0].result
    return None


def check(epochs: list[Epoch], survives: bool) -> None:
    """Raises `Violation` unless the history of a store is linearizable."""
    if survives:
        Search(epochs).run()
    else:
        for epoch in epochs:
            Search([epoch]).run()
