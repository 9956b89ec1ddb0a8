"""Random requests on entries with conditions and ranges, against a model that is written from RFC 9110, sections 13 and 14,
apart from the server's code."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

from http_case import HTTPCase

Tag = tuple[bool, str]  # Whether it is weak, and what is between the quotation marks.


@dataclass
class Request:
    """A request as the model understands it, and the fields in which the server reads it."""

    method: str
    if_match: list[Tag] | str | None = None
    if_none_match: list[Tag] | str | None = None
    if_range: Tag | str | None = None
    unit: str = "bytes"
    ranges: list[tuple[int | None, int | None]] | None = None
    unsupported: int | None = None
    fields: dict[str, str] = field(default_factory=dict)


@dataclass
class Entry:
    revision: str
    value: bytes


def has_tag(condition: list[Tag] | str, entry: Entry | None, weakly: bool) -> bool:
    if condition == "*":
        return entry is not None
    return entry is not None and any(text == entry.revision and (weakly or not weak) for weak, text in condition)


def part(request: Request, entry: Entry) -> tuple[int, bytes]:
    """The status and the body of a GET whose conditions hold."""
    size = len(entry.value)
    if request.ranges is None or request.unit.lower() != "bytes":
        return 200, entry.value
    if request.if_range is not None and request.if_range != (False, entry.revision):
        return 200, entry.value
    if len(request.ranges) != 1:
        return 416, b""
    first, last = request.ranges[0]
    if first is None:
        if last == 0:
            return 416, b""
        return (206, entry.value[-last:]) if size else (200, b"")
    if first >= size or (last is not None and last < first):
        return 416, b""
    return 206, entry.value[first:] if last is None else entry.value[first : last + 1]


def expected(request: Request, entry: Entry | None) -> tuple[int, bytes]:
    """The status and the body of a response. Problems have no body here."""
    if request.unsupported is not None:
        return request.unsupported, b""
    if request.method in ("PUT", "DELETE") and request.ranges is not None:
        return 400, b""
    if "malformed" in (request.if_match, request.if_none_match):
        return 400, b""
    if entry is None and request.method != "PUT":
        return 404, b""
    if request.if_match is not None and not has_tag(request.if_match, entry, weakly=False):
        return 412, b""
    if request.if_none_match is not None and has_tag(request.if_none_match, entry, weakly=True):
        return (304 if request.method in ("GET", "HEAD") else 412), b""
    if request.method == "GET":
        assert entry is not None
        return part(request, entry)
    return (200 if request.method == "HEAD" else 204), b""


class HTTPConditions(HTTPCase):
    def tags(self, rng: random.Random, revision: str) -> list[Tag]:
        others = ["1", "999999", "0" + revision, "", "a,b", "W/", "*", "18446744073709551616", "-1", "é"]
        choices = [revision] * 8 + others
        return [(rng.random() < 0.3, rng.choice(choices)) for _ in range(rng.choice([1, 1, 1, 2, 5]))]

    def condition(self, rng: random.Random, revision: str) -> tuple[list[Tag] | str, str]:
        kind = rng.random()
        if kind < 0.15:
            return "*", "*"
        if kind < 0.25:
            return "malformed", rng.choice([revision, '"', f'"{revision}', f'"{revision}" "1"', f'w/"{revision}"', ",",
                                            f'W"{revision}"', f'"{revision}";', '*, "1"', '"a b"', f"'{revision}'"])  # fmt: skip
        tags = self.tags(rng, revision)
        texts = ["W/" * weak + f'"{text}"' for weak, text in tags]
        if rng.random() < 0.2:
            texts.insert(rng.randrange(len(texts) + 1), "")
        return tags, rng.choice([",", ", ", " ,\t"]).join(texts)

    def position(self, rng: random.Random, size: int) -> int:
        return rng.choice([0, 1, size // 2, size - 1, size, size + 1, 2**32 - 2, 2**32 - 1, 2**32, 2**63, 2**64, 10**30]) if (
            rng.random() < 0.7) else rng.randrange(size + 10)  # fmt: skip

    def range(self, rng: random.Random, size: int) -> tuple[int | None, int | None]:
        kind = rng.random()
        first, last = max(0, self.position(rng, size)), max(0, self.position(rng, size))
        return (None, last) if kind < 0.25 else (first, None) if kind < 0.5 else (first, last)

    def request(self, rng: random.Random, entry: Entry | None) -> Request:
        request = Request(rng.choice(["GET", "GET", "GET", "HEAD", "PUT", "DELETE"]))
        revision, size = (entry.revision, len(entry.value)) if entry else ("5", 10)
        if rng.random() < 0.3:
            request.if_match, request.fields["If-Match"] = self.condition(rng, revision)
        if rng.random() < 0.3:
            request.if_none_match, request.fields["If-None-Match"] = self.condition(rng, revision)
        if rng.random() < (0.6 if request.method == "GET" else 0.2):
            request.unit = rng.choice(["bytes"] * 8 + ["Bytes", "lines", "byte"])
            request.ranges = [self.range(rng, size) for _ in range(rng.choice([1] * 9 + [2]))]
            texts = [f"{'' if first is None else first}-{'' if last is None else last}" for first, last in request.ranges]
            if rng.random() < 0.1:
                request.ranges = []
                texts = [rng.choice(["-", "", "x-", "1", "1-2-3", "+1-2", "1-+2", "0x1-", "1 -2", "--1", "é-"])]
            request.fields["Range"] = f"{request.unit}={rng.choice([',', ' , ', ',,']).join(texts)}"
        if rng.random() < 0.3:
            tag = self.tags(rng, revision)[0]
            request.if_range, request.fields["If-Range"] = rng.choice(
                [(tag, "W/" * tag[0] + f'"{tag[1]}"'), ("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("other", revision)]
            )  # fmt: skip
        if rng.random() < 0.05:
            request.unsupported, name, value = rng.choice([
                (400, "Content-Range", "bytes 0-4/10"), (400, "If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"),
                (415, "Content-Encoding", "gzip"),
            ])  # fmt: skip
            request.fields[name] = value
        if rng.random() < 0.05:
            request.fields["If-Modified-Since"] = "Sun, 06 Nov 1994 08:49:37 GMT"
        if request.method in ("PUT", "DELETE"):
            request.fields["X-Larder"] = "1"
        return request

    def check_store(self, store: str, seed: int, count: int) -> None:
        rng = random.Random(seed)
        connection = self.connect()
        paths = [f"/v1/stores/{store}/entries/conditions", f"/v1/stores/{store}/entry?key=conditions"]
        entry: Entry | None = None
        for number in range(count):
            request = self.request(rng, entry)
            value = rng.randbytes(rng.choice([0, 1, 10, 10, 1_000, 40_000, 200_000])) if request.method == "PUT" else None
            fields = {name: text.encode("latin-1") for name, text in request.fields.items()}
            connection.request(request.method, rng.choice(paths), body=value, headers=fields)
            response = connection.getresponse()
            body = response.read()
            seen = response.status, body if response.status in (200, 206) and request.method == "GET" else b""
            case = f"seed {seed}, request {number}: {request.method} {request.fields} of {entry and (entry.revision, len(entry.value))}"
            self.assertEqual(seen, expected(request, entry), case)
            if response.status in (200, 206, 304):
                self.assertEqual(response.headers["ETag"], f'"{entry.revision}"', case)
            if response.status in (206, 416):
                size = len(entry.value)
                start = entry.value.find(body) if response.status == 206 else None
                text = response.headers["Content-Range"]
                if start is None:
                    self.assertEqual(text, f"bytes */{size}", case)
                else:
                    first = int(text.split()[1].split("-")[0])
                    self.assertEqual(text, f"bytes {first}-{first + len(body) - 1}/{size}", case)
                    self.assertEqual(entry.value[first : first + len(body)], body, case)
            if response.status == 200 and request.method == "HEAD":
                self.assertEqual(response.headers["Content-Length"], str(len(entry.value)), case)
            if response.status == 204:
                entry = None if request.method == "DELETE" else Entry(response.headers["ETag"].strip('"'), value or b"")

    def test_conditions_and_ranges(self) -> None:
        """Requests have the outcome that RFC 9110 gives them, whatever their conditions and ranges are."""
        for store in ["films", "disk"]:
            seed = int(os.environ.get("LARDER_SEED", random.randrange(2**32)))
            with self.subTest(store=store, seed=seed):
                self.check_store(store, seed, 3_000)
