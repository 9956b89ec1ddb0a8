"""Answers queries with reference.py.

Usage: python3 reference_queries.py INPUT OUTPUT. Each line of the input is {"documents": [[id, object]…], "queries":
[…]}; an object may be followed by a revision. The output has, for each query, a line {"ids": […], "documents": the
projections or null}, or {"error": true}.
"""
import functools, json, math, sys
import reference

sys.setrecursionlimit(10_000)
plain_operand = reference.operand


def truncated(number):
    """None for an infinity, which has no remainder."""
    number = reference.number(number)
    return None if isinstance(number, float) and math.isinf(number) else math.trunc(number)


def remainder(number, divisor):
    """Exact also beyond the integers that doubles have."""
    return None if number is None else int(math.copysign(1, number)) * (abs(number) % abs(divisor))


def operand(expression, document, context):
    """Divides and averages doubles, sums one by one, and leaves out what is not a number."""
    kind = expression[0]
    if kind == "$divide":
        lefts, rights = (
            [float(reference.number(value)) for value in reference.operand(part, document, context)
             if reference.isnum(value)]
            for part in expression[1:])
        results = [left / right for left in lefts for right in rights if right != 0]
    elif kind in ("$sum", "$avg"):
        elements = reference.elems(document, expression[1])
        numbers = [reference.number(element) for element in elements if reference.isnum(element)]
        total = reference.number(functools.reduce(lambda left, right: left + right, numbers, 0))
        results = [total] if kind == "$sum" else [float(total) / len(numbers)] if numbers else []
    else:
        results = plain_operand(expression, document, context)
    return [result for result in results if not (isinstance(result, float) and math.isnan(result))]


def outermost(fields):
    """Leaves out fields that are part of others."""
    paths = [reference.parse_path(field) for field in fields]
    return [field for field, path in zip(fields, paths)
            if not any(len(other) < len(path) and path[:len(other)] == other for other in paths)]


def answer(documents, query):
    query = {"selector": {}, **query}
    try:
        if isinstance(query.get("fields"), list):
            query["fields"] = outermost(query["fields"])
        ids, projections = reference.run(documents, query, {})
    except reference.QErr:
        return {"error": True}
    return {"ids": ids, "documents": projections}


reference.trunc, reference.crem, reference.operand = truncated, remainder, operand
with open(sys.argv[1], encoding="utf-8") as lines, open(sys.argv[2], "w", encoding="utf-8") as output:
    for line in lines:
        batch = json.loads(line)
        documents = [
            {**document, "_id": id, **{"_rev": revision for revision in revisions}}
            for id, document, *revisions in batch["documents"]
        ]
        for query in batch["queries"]:
            output.write(json.dumps(answer(documents, query)).replace("Infinity", "1e999") + "\n")
