"""The documents of a crash test, the indexes of them, and what finds must find according to the executable reference."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from larder_wire import Entry

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "DocumentsTests" / "Selectors"))
import reference  # noqa: E402

Document = dict[str, Any]
Selector = dict[str, Any]

SPECIES = ("cat", "dog", "fish")


def random_document(rng: random.Random, size: int) -> Document:
    """Returns a document with fields that are missing, or have arrays, in some documents, and a text of `size` characters."""
    document: Document = {"age": rng.choices((rng.randrange(100), "old", [rng.randrange(100), "old"]), weights=(18, 1, 1))[0]}
    if rng.random() < 0.9:
        document["name"] = f"name{rng.randrange(30)}"
    pets = [{"species": rng.choice(SPECIES)} for _ in range(rng.choice((1, 1, 1, 0, 2)))]
    document["pet"] = pets[0] if len(pets) == 1 else pets
    # An index has a single key for a document with too many.
    document["tags"] = [rng.randrange(20) for _ in range(rng.randrange(4))] if rng.random() < 0.99 else list(range(1_100))
    if rng.random() < 0.05:
        del document["age"]
    document["text"] = "x" * size
    return document


def encode(document: Document) -> bytes:
    """Returns the text of a document; an update of the server makes the same one."""
    return json.dumps(document, separators=(",", ":")).encode()


def decode(key: str, value: object, revision: int) -> Document | None:
    """Returns what selectors see of an entry, or None if it is not a document."""
    try:
        document = json.loads(value) if isinstance(value, bytes) else None
    except ValueError:
        return None
    return {**document, "_id": key, "_rev": revision} if isinstance(document, dict) else None


def decode_all(entries: Iterable[Entry | None]) -> list[Document]:
    documents = (decode(entry.key, entry.value, entry.revision) for entry in entries if entry)
    return [document for document in documents if document is not None]


def matching(selector: Selector, documents: list[Document]) -> list[Document]:
    tree = reference.compile_sel(selector)
    return [document for document in documents if reference.test(tree, document, {})]


@dataclass(frozen=True)
class Index:
    fields: list[Any]
    # Returns selectors that the index serves: for all of its keys, and for some.
    selectors: Callable[[random.Random], list[Selector]]
    where: Selector | None = None

    def definition(self, name: str) -> dict[str, Any]:
        definition = {"name": name, "fields": self.fields, "where": self.where}
        return {member: value for member, value in definition.items() if value is not None}


def by_age(rng: random.Random) -> list[Selector]:
    first = rng.randrange(100)
    conditions: list[Any] = [
        {"$exists": True}, {"$exists": False}, {"$gte": first, "$lt": first + 10}, first, {"$in": [first, first + 1, "old"]}
    ]
    return [{"age": condition} for condition in conditions]


def by_age_and_name(rng: random.Random) -> list[Selector]:
    age, name = rng.randrange(100), f"name{rng.randrange(30)}"
    return [{"age": {"$exists": True}}, {"age": {"$lte": age}}, {"age": {"$in": [age, age + 1]}, "name": {"$gte": name}}]


def by_name(rng: random.Random) -> list[Selector]:
    name = f"name{rng.randrange(30)}"
    return [{"name": condition} for condition in ({"$exists": True}, {"$exists": False}, name, {"$gt": name}, {"$beginsWith": "name1"})]


def by_species(rng: random.Random) -> list[Selector]:
    species, age = rng.choice(SPECIES), rng.randrange(100)
    field = "pet.species"
    return [{field: {"$exists": True}}, {field: {"$exists": False}}, {field: species}, {field: species, "age": {"$lt": age}}]


def by_tags(rng: random.Random) -> list[Selector]:
    tag = rng.randrange(20)
    conditions: list[Any] = [{"$exists": True}, tag, {"$elemMatch": {"$gte": tag, "$lt": tag + 2}}, {"$all": [tag, tag + 1]}]
    return [{"tags": condition} for condition in conditions]


def by_age_of_cats(rng: random.Random) -> list[Selector]:
    age = rng.randrange(100)
    return [{"pet.species": "cat"}, {"pet.species": "cat", "age": age}, {"pet.species": "cat", "age": {"$gte": age, "$lt": age + 20}}]


def by_revision(rng: random.Random) -> list[Selector]:
    revision = rng.randrange(100_000)
    return [{"_rev": {"$exists": True}}, {"_rev": {"$gt": revision}}, {"_rev": {"$gt": revision, "$lte": revision + 5_000}}]


INDEXES = {
    "age": Index(["age"], by_age),
    "age and name": Index([{"age": "desc"}, "name"], by_age_and_name),
    "name": Index(["name"], by_name),
    "species": Index(["pet.species", {"age": "desc"}], by_species),
    "tags": Index(["tags"], by_tags),
    "cats": Index(["age"], by_age_of_cats, {"pet.species": "cat"}),
    "revision": Index(["_rev"], by_revision),
}
