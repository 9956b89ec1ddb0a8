// What a query may consist of: `Protocol/documents.md` §3.

import { parse } from "./json.js";

const members = ["selector", "sort", "fields", "limit", "skip", "bookmark", "index", "count", "time"];

export const operators = [
  ["$eq", '"$eq": ', "equal"],
  ["$ne", '"$ne": ', "not equal"],
  ["$gt", '"$gt": ', "greater"],
  ["$gte", '"$gte": ', "greater or equal"],
  ["$lt", '"$lt": ', "less"],
  ["$lte", '"$lte": ', "less or equal"],
  ["$in", '"$in": []', "equal to one of these"],
  ["$nin", '"$nin": []', "equal to none of these"],
  ["$exists", '"$exists": true', "there is such a field"],
  ["$type", '"$type": "string"', "null, boolean, number, string, array or object"],
  ["$mod", '"$mod": [2, 0]', "divided by the first, leaves the second"],
  ["$beginsWith", '"$beginsWith": ""', "a string that begins with this"],
  ["$endsWith", '"$endsWith": ""', "a string that ends with this"],
  ["$contains", '"$contains": ""', "a string that contains this"],
  ["$like", '"$like": "*"', "a pattern: * for any text, ? for a character"],
  ["$regex", '"$regex": ""', "a regular expression"],
  ["$options", '"$options": "c"', "c ignores case, d ignores accents"],
  ["$size", '"$size": 1', "an array with this many elements"],
  ["$all", '"$all": []', "an array with all of these"],
  ["$elemMatch", '"$elemMatch": {}', "an array with a matching element"],
  ["$allMatch", '"$allMatch": {}', "an array whose elements all match"],
  ["$keyMapMatch", '"$keyMapMatch": {}', "an object with a matching name"],
  ["$not", '"$not": {}', "doesn't match"],
  ["$and", '"$and": []', "all of these match"],
  ["$or", '"$or": []', "one of these matches"],
  ["$nor", '"$nor": []', "none of these match"],
  ["$expr", '"$expr": {"$gt": [{"$field": ""}, {"$field": ""}]}', "compares fields with each other"],
].map(([name, usage, meaning]) => ({ name, usage, meaning }));

const names = new Set([...operators.map(({ name }) => name), "$text", "$search"]);
/// What may be in an operand of `$expr`, whose operators are not those of selectors.
const opaque = new Set(["$expr", "$eq", "$ne", "$in", "$nin", "$all", "$gt", "$gte", "$lt", "$lte"]);

/// Returns what is wrong with a query that can be known without the server, and where; null for nothing.
export function queryFlaw(text) {
  let root;
  try {
    root = parse(text);
  } catch (error) {
    return error;
  }
  if (root.type !== "object") return { message: "a query is an object with a selector", start: root.start, end: root.end };
  for (const { name, nameStart, nameEnd, value } of root.members) {
    if (!members.includes(name)) {
      return { message: `a query has no member "${name}": it has ${members.join(", ")}`, start: nameStart, end: nameEnd };
    }
    if (name === "selector") {
      if (value.type !== "object") return { message: "a selector is an object", start: value.start, end: value.end };
      const flaw = selectorFlaw(value);
      if (flaw) return flaw;
    }
  }
  return null;
}

function selectorFlaw(node) {
  if (node.type === "array") {
    for (const element of node.elements) {
      const flaw = selectorFlaw(element);
      if (flaw) return flaw;
    }
  }
  for (const { name, nameStart, nameEnd, value } of node.members ?? []) {
    if (name.startsWith("$") && !names.has(name)) {
      const other = nearest(name);
      const suggestion = other ? `; did you mean ${other}?` : "";
      return { message: `there is no operator ${name}${suggestion}`, start: nameStart, end: nameEnd };
    }
    if (opaque.has(name)) continue;
    const flaw = selectorFlaw(value);
    if (flaw) return flaw;
  }
  return null;
}

/// Returns the operator most like a name; undefined if none is.
function nearest(name) {
  const distances = [...names].map((other) => [distance(name.toLowerCase(), other.toLowerCase()), other]);
  const [least, other] = distances.sort(([first], [second]) => first - second)[0];
  return least <= 2 ? other : undefined;
}

/// The number of characters to insert, delete or replace.
function distance(first, second) {
  let row = Array.from({ length: second.length + 1 }, (_, index) => index);
  for (let i = 1; i <= first.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= second.length; j += 1) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (first[i - 1] === second[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[second.length];
}
