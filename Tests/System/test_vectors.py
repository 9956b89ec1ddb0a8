"""Checks the encoders and decoders of larder_wire.py against the golden vectors.

Run with `python3 test_vectors.py`.
"""

import json
import sys
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import larder_wire as wire
from brief_case import BriefCase, run
from larder_wire import Check, Code, Delete, Entry, FindResult, Operation, Outcome, Update, Write

Frame = dict[str, Any]
VECTORS = Path(__file__).resolve().parents[2] / "Protocol" / "vectors"


def read_vectors(name: str) -> list[dict[str, Any]]:
    return json.loads((VECTORS / name).read_text())


def operation_named(name: str) -> Operation:
    return Operation[name.replace("-", "_")]


def value_of(record: Frame) -> bytes | list[bytes]:
    if record["kind"] == "list":
        return [bytes.fromhex(element) for element in record["elementsHex"]]
    return bytes.fromhex(record["valueHex"])


def keys_of(frame: Frame) -> list[bytes]:
    return [bytes.fromhex(key) for key in frame["keysHex"]]


def writes_of(frame: Frame) -> list[Write]:
    return [
        Write(
            bytes.fromhex(record["keyHex"]),
            value_of(record),
            record.get("expireAfterMilliseconds"),
            record.get("ifAbsent", False),
            record.get("ifRevision"),
        )
        for record in frame["records"]
    ]


def operations_of(frame: Frame) -> list[Write | Delete | Update | Check]:
    return [operation_of(record) for record in frame["records"]]


def operation_of(record: Frame) -> Write | Delete | Update | Check:
    key, if_revision = bytes.fromhex(record["keyHex"]), record.get("ifRevision")
    match record["kind"]:
        case "delete":
            return Delete(key, if_revision)
        case "update":
            return Update(key, bytes.fromhex(record["valueHex"]), if_revision, record.get("create", False))
        case "check":
            return Check(key, record.get("ifAbsent", False), if_revision)
    return writes_of({"records": [record]})[0]


def range_of(frame: Frame) -> dict[str, Any]:
    return {
        "prefix": bytes.fromhex(frame["prefixHex"]),
        "cursor": bytes.fromhex(frame["cursorHex"]) if "cursorHex" in frame else None,
        "reverse": frame.get("reverse", False),
        "keys_only": frame.get("keysOnly", False),
    }


def encode_body(frame: Frame) -> bytes:
    """Encodes the body of a request."""
    match operation_named(frame["operation"]):
        case Operation.hello:
            return wire.encode_hello(
                frame["lowestVersion"], frame["highestVersion"], frame["credit"], frame["name"], frame["features"],
                frame.get("token", ""),
            )
        case Operation.credit:
            return wire.encode_credit(frame["credit"])
        case Operation.connections:
            return wire.encode_connections(frame["most"])
        case Operation.rules_check:
            return frame["question"].encode()
        case Operation.store_open | Operation.store_drop:
            return frame["name"].encode()
        case Operation.store_open_stale:
            return wire.encode_store_open_stale(frame["name"], frame["maxStaleness"])
        case Operation.store_move:
            return wire.encode_store_create(frame["name"], frame["node"])
        case Operation.store_create:
            return wire.encode_store_create(frame["name"], frame["specification"])
        case Operation.get:
            return bytes.fromhex(frame["keyHex"])
        case Operation.get_range:
            return wire.encode_range(bytes.fromhex(frame["keyHex"]), frame["offset"], frame["count"], frame.get("ifRevision"))
        case Operation.upload_part:
            return wire.encode_upload_part(frame["upload"], frame["offset"], bytes.fromhex(frame["bytesHex"]))
        case Operation.upload_put:
            return wire.encode_upload_put(frame["upload"], frame["size"], writes_of(frame)[0])
        case Operation.upload_discard:
            return wire.encode_upload_discard(frame["upload"])
        case Operation.get_many | Operation.delete_many:
            return wire.encode_keys(keys_of(frame))
        case Operation.put:
            return wire.encode_write(writes_of(frame)[0])
        case Operation.put_many:
            return wire.encode_writes(writes_of(frame))
        case Operation.delete:
            return wire.encode_delete(bytes.fromhex(frame["keyHex"]), frame.get("ifRevision"))
        case Operation.count:
            return bytes.fromhex(frame["prefixHex"])
        case Operation.page:
            return wire.encode_page(frame["limit"], frame["offset"], **range_of(frame))
        case Operation.all:
            return wire.encode_all(**range_of(frame))
        case Operation.watch:
            prefix, keys_only = bytes.fromhex(frame["prefixHex"]), frame.get("keysOnly", False)
            return wire.encode_watch(frame["from"], prefix, keys_only, frame.get("incarnation"))
        case Operation.find:
            texts = [frame[name] for name in ("selector", "sort", "fields", "bookmark")]
            flags = [frame.get(name, False) for name in ("countOnly", "explain")]
            return wire.encode_find(*texts, frame.get("limit"), frame["skip"], *flags, frame.get("index", ""), frame.get("time"))
        case Operation.aggregate:
            return wire.encode_aggregate(frame["selector"], frame["aggregation"], frame.get("time"), frame.get("explain", False))
        case Operation.change_matching:
            return wire.encode_change_matching(frame["selector"], frame.get("update"), frame.get("dryRun", False), frame.get("time"))
        case Operation.apply:
            return wire.encode_apply(operations_of(frame))
        case Operation.index_ensure:
            return frame["definition"].encode()
        case Operation.index_delete:
            return frame["name"].encode()
        case _:
            return b""


def hello_fields(body: bytes) -> Frame:
    hello = wire.decode_hello(body)
    return {
        "version": hello.version,
        "features": hello.features,
        "maxFrameSize": hello.max_frame_size,
        "maxValueSize": hello.max_value_size,
        "maxKeySize": hello.max_key_size,
        "maxOpenStores": hello.max_stores,
        "maxRequestsInFlight": hello.max_requests,
        "maxKeyCount": hello.max_keys,
        "name": hello.name,
    }


def record_fields(entry: Entry | None) -> Frame:
    if entry is None:
        return {"kind": "absent"}
    fields: Frame = {"keyHex": entry.key.encode().hex(), "revision": entry.revision}
    if isinstance(entry.value, list):
        fields |= {"kind": "list", "elementsHex": [element.hex() for element in entry.value]}
        fields["valueHex"] = wire.encode_list(entry.value).hex()
    else:
        fields |= {"kind": "single", "valueHex": entry.value.hex()}
    if entry.expire_after_milliseconds is not None:
        fields["expireAfterMilliseconds"] = entry.expire_after_milliseconds
    return fields


def reply_fields(body: bytes) -> Frame:
    return {"records": [record_fields(entry) for entry in wire.decode_records(body)]}


def range_fields(body: bytes) -> Frame:
    found = wire.decode_range(body)
    record = record_fields(Entry("", found.value, found.revision, found.expire_after_milliseconds))
    return {"size": found.size, "records": [record]}


def change_fields(change: wire.Change) -> Frame:
    fields: Frame = {"kind": change.kind.name.replace("_", "-"), "keyHex": change.key.encode().hex()}
    fields |= {"valueHex": change.value.hex(), "revision": change.revision}
    if change.expire_after_milliseconds is not None:
        fields["expireAfterMilliseconds"] = change.expire_after_milliseconds
    if change.only_expiry:
        fields["onlyExpiry"] = True
    return fields


def watch_fields(body: bytes) -> Frame:
    through, changes = wire.decode_changes(body)
    return {"through": through, "changes": [change_fields(change) for change in changes]}


def result_fields(result: FindResult) -> Frame:
    names = ("revision", "examinedDocuments", "examinedKeys", "found", "nanoseconds", "text")
    return {"kind": "result"} | dict(zip(names, vars(result).values(), strict=True))


def found_fields(body: bytes) -> Frame:
    records = wire.decode_found(body)
    return {"records": [result_fields(found) if isinstance(found, FindResult) else record_fields(found) for found in records]}


def changed_fields(body: bytes) -> Frame:
    names = ("matched", "changed", "revision", "examinedDocuments", "examinedKeys", "nanoseconds")
    return {"changed": dict(zip(names, vars(wire.decode_document_changes(body)).values(), strict=True))}


def index_ensure_fields(body: bytes) -> Frame:
    created, name = wire.decode_index_ensure(body)
    return {"created": created, "name": name}


def nothing(body: bytes) -> Frame:
    wire.decode_nothing(body)
    return {}


def slow_log_fields(body: bytes) -> Frame:
    names = ("millisecondsAgo", "nanoseconds", "receivedBytes", "requests", "operations", "name")
    return {"slow": [dict(zip(names, vars(entry).values(), strict=True)) for entry in wire.decode_slow_log(body)]}


def connection_fields(body: bytes) -> Frame:
    names = ("number", "openMilliseconds", "requests", "requestsPerSecond", "receivedBytes", "sentBytes", "waitingBytes")
    names += ("process", "user", "address", "command", "client")
    return {"connections": [dict(zip(names, vars(found).values(), strict=True)) for found in wire.decode_connections(body)]}


def store_open_fields(body: bytes) -> Frame:
    handle, engine = wire.decode_store_open(body)
    return {"handle": handle, "engine": engine}


def revision_fields(body: bytes) -> Frame:
    return {"revision": wire.decode_revision(body)}


def integer_named(name: str) -> Callable[[bytes], Frame]:
    return lambda body: {name: wire.decode_integer(body)}


DECODERS: dict[Operation, Callable[[bytes], Frame]] = {
    Operation.hello: hello_fields,
    Operation.stats: lambda body: {"figures": [{"name": name, "value": value} for name, value in wire.decode_stats(body).items()]},
    Operation.slow_log: slow_log_fields,
    Operation.connections: connection_fields,
    Operation.store_open: store_open_fields,
    Operation.store_open_stale: store_open_fields,
    Operation.store_list: lambda body: {"stores": [vars(store) for store in wire.decode_store_list(body)]},
    Operation.get: reply_fields,
    Operation.get_range: range_fields,
    Operation.get_many: reply_fields,
    Operation.page: reply_fields,
    Operation.all: reply_fields,
    Operation.watch: watch_fields,
    Operation.find: found_fields,
    Operation.aggregate: found_fields,
    Operation.change_matching: changed_fields,
    Operation.index_ensure: index_ensure_fields,
    Operation.index_list: lambda body: {"indexes": body.decode()},
    Operation.whoami: lambda body: {"identity": body.decode()},
    Operation.token_list: lambda body: {"tokens": body.decode()},
    Operation.cluster: lambda body: {"cluster": body.decode()},
    Operation.console_link: lambda body: {"console": body.decode()},
    Operation.rules_check: lambda body: {"decisions": body.decode()},
    Operation.put: revision_fields,
    Operation.put_many: revision_fields,
    Operation.apply: revision_fields,
    Operation.upload_begin: integer_named("upload"),
    Operation.upload_put: revision_fields,
    Operation.delete: integer_named("count"),
    Operation.delete_many: integer_named("count"),
    Operation.delete_all: integer_named("count"),
    Operation.count: integer_named("count"),
}


def decode_frame(to: str, frame_bytes: bytes) -> Frame:
    """Decodes the fields of a reply to the operation `to`."""
    received = bytearray(frame_bytes)
    reply = wire.take_reply(received)
    assert reply is not None and not received, "not one whole frame"
    frame: Frame = {"to": to, "outcome": int(reply.outcome), "more": reply.more, "id": reply.id}
    if reply.outcome != Outcome.done:
        return frame | {"code": reply.code.name, "message": reply.message}
    return frame | DECODERS.get(operation_named(to), nothing)(reply.body)


class RequestVectorTests(BriefCase):
    """One test per vector, added below."""

    def check(self, vector: dict[str, Any]) -> None:
        frame = vector["frame"]
        encoded = wire.encode_frame(operation_named(frame["operation"]), frame["id"], encode_body(frame), frame["store"])
        self.assertEqual(encoded.hex(), vector["hex"])


class ReplyVectorTests(BriefCase):
    """One test per vector, added below."""

    def check(self, vector: dict[str, Any]) -> None:
        whole = bytes.fromhex(vector["hex"])
        self.assertEqual(decode_frame(vector["frame"]["to"], whole), vector["frame"])
        for size in range(len(whole)):
            self.assertIsNone(wire.take_reply(bytearray(whole[:size])), f"an incomplete frame of {size} bytes was accepted")


class MalformedVectorTests(BriefCase):
    """One test per vector, added below. session.py checks a server's replies to them."""

    def check(self, vector: dict[str, Any]) -> None:
        answer = vector["answer"]
        self.assertIn(answer["code"], Code.__members__)
        self.assertIn(answer["outcome"], (Outcome.not_executed, Outcome.rejected, Outcome.unknown))
        self.assertIsInstance(answer["closes"], bool)
        self.assertEqual(bytes.fromhex(vector["hex"]).hex(), vector["hex"])


def changed_bodies(body: bytes) -> Iterator[bytes]:
    yield body + b"\0"
    for offset in range(min(len(body), 128)):
        yield body[:offset]
        for size in (1, 2, 4, 8):
            for number in (0, 1, (1 << 8 * size - 1) - 1, 1 << 8 * size - 1, (1 << 8 * size) - 1):
                yield body[:offset] + number.to_bytes(size, "little") + body[offset + size :]


def numbers_in(fields: Any) -> Iterator[tuple[str, int]]:
    """Returns the numbers among the fields of a frame, with their names."""
    for name, value in fields.items():
        if isinstance(value, list):
            for element in value:
                if isinstance(element, dict):
                    yield from numbers_in(element)
        elif isinstance(value, dict):
            yield from numbers_in(value)
        elif isinstance(value, int):
            yield name, value


class VectorTests(BriefCase):
    def test_names_are_unique(self) -> None:
        for file in ("requests.json", "replies.json", "malformed.json"):
            names = [vector["name"] for vector in read_vectors(file)]
            self.assertEqual(len(set(names)), len(names), file)

    def test_a_reply_with_other_numbers_decodes_in_range_or_is_refused(self) -> None:
        """A server can send anything: numbers at the limits in place of the fields, cut or extended bodies."""
        for vector in read_vectors("replies.json"):
            whole = bytes.fromhex(vector["hex"])
            for body in changed_bodies(whole[wire.FRAME.size :]):
                header = wire.FRAME.unpack_from(whole)[1:]
                try:
                    fields = decode_frame(vector["frame"]["to"], wire.FRAME.pack(wire.FRAME.size - 4 + len(body), *header) + body)
                except (wire.WireError, UnicodeDecodeError):
                    continue
                for name, number in numbers_in(fields):
                    if name in ("revision", "through"):
                        self.assertLess(number, 1 << 63, f"{vector['name']}: {body.hex()}")

    def test_every_code_has_the_same_outcome_everywhere(self) -> None:
        outcomes: dict[str, int] = {}
        errors = [vector["frame"] for vector in read_vectors("replies.json") if vector["frame"]["outcome"]]
        for error in errors + [vector["answer"] for vector in read_vectors("malformed.json")]:
            self.assertEqual(error["outcome"], outcomes.setdefault(error["code"], error["outcome"]), error["code"])
        self.assertEqual(set(outcomes), set(Code.__members__))

    def test_outcomes_and_codes_of_later_versions(self) -> None:
        reply = wire.take_reply(bytearray(bytes.fromhex("080000000900e80305000000")))
        assert reply is not None
        self.assertEqual((reply.outcome, reply.code, reply.code.name), (Outcome.unknown, 1000, "code1000"))


def check_of(vector: dict[str, Any]) -> Callable[[Any], None]:
    return lambda self: self.check(vector)


def add_tests(case: type[BriefCase], vectors: list[dict[str, Any]]) -> None:
    for vector in vectors:
        setattr(case, f"test_{vector['name']}", check_of(vector))


add_tests(RequestVectorTests, [vector for vector in read_vectors("requests.json") if not vector.get("decodeOnly")])
add_tests(ReplyVectorTests, read_vectors("replies.json"))
add_tests(MalformedVectorTests, read_vectors("malformed.json"))


def main() -> int:
    passed, failed = run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
