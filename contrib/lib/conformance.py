"""Prints a table of sources and facts from the event stream of the conformance suite. See contrib/conformance."""

import json
import re
import sys

# The facts that are not tested for some sources, with the reasons.
NOT_TESTED = {
    "48": "only for sources that encode values themselves: elsewhere the compiler rejects other types",
    "50": "only for sources that use a server",
    "51": "Void refuses everything, so no other fact applies to it",
    "61–71": "only for key-value sources; 64–67 if they have revisions, otherwise 68; 69 and 70 if they can be watched, "
    "otherwise 71",
}


def facts(title):
    """Returns the fact numbers at the start of a test's name."""
    numbers = re.match(r"([\d, ]+):", title)
    return [int(number) for number in numbers[1].split(",")] if numbers else []


def read(lines):
    """Returns each source's facts, and whether each passed, in the order of the run; and the highest number of a fact."""
    titles, table = {}, {}
    for line in lines:
        record = json.loads(line)
        payload = record["payload"]
        if record["kind"] == "test":
            titles[payload["id"]] = payload.get("displayName", payload["name"])
            continue
        title = titles.get(payload.get("testID"), "")
        if payload["kind"] not in ("testStarted", "testCaseStarted", "issueRecorded") or not facts(title):
            continue
        passed = payload["kind"] != "issueRecorded"
        for source in sources(payload, title):
            row = table.setdefault(source, {})
            for fact in facts(title):
                row[fact] = row.get(fact, True) and passed
    return table, max((fact for title in titles.values() for fact in facts(title)), default=0)


def sources(payload, title):
    """Returns the sources that an event concerns; none for an event of a whole test."""
    for message in payload["messages"]:
        found = re.search(r'1 argument subject → (.*?)(?: to "| at |: |$)', message["text"])
        if found:
            return [found[1]]
    return ["Void"] if 51 in facts(title) else []


def sign(row, fact):
    return "·" if fact not in row else "✓" if row[fact] else "✗"


def line(signs):
    """Joins signs in groups of ten."""
    signs = "".join(signs)
    return " ".join(signs[start : start + 10] for start in range(0, len(signs), 10))


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        table, count = read(stream)
    numbers = range(1, count + 1)
    width = max((len(source) for source in table), default=0)
    print(" " * width, line(str(number // 10) if number % 10 == 0 else " " for number in numbers))
    print(" " * width, line(str(number % 10) for number in numbers))
    for source, row in table.items():
        print(source.ljust(width), line(sign(row, number) for number in numbers))

    untested = [number for number in numbers if not any(number in row for row in table.values())]
    failed = sum(not passed for row in table.values() for passed in row.values())
    total = sum(len(row) for row in table.values())
    print("\n✓ holds   ✗ does not hold   · not tested:")
    for numbers, reason in NOT_TESTED.items():
        print(f"  {numbers}: {reason}")
    print(f"{len(table)} sources, {total} facts, {failed} failed")
    if untested:
        print("no test covers fact", ", ".join(map(str, untested)))
    return 1 if failed or untested else 0


sys.exit(main())
