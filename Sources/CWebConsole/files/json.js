// JSON with its places, and without loss: JavaScript can't count beyond 2^53, so numbers stay as they are written.

/// Why a text is not JSON, and where.
class JSONProblem extends Error {
  constructor(message, start, end) {
    super(message);
    this.start = start;
    this.end = end;
  }
}

/// Parses JSON into nodes: `{type, start, end}`, with `members` of an object (`{name, nameStart, nameEnd, value}`),
/// `elements` of an array, and `value` of a string, a Boolean or null. A number has its `text`.
export function parse(text) {
  let position = 0;

  const fail = (message, start = position, end = start + 1) => {
    throw new JSONProblem(message, Math.min(start, text.length), Math.min(Math.max(end, start + 1), text.length + 1));
  };
  const skip = () => {
    while (position < text.length && " \t\r\n".includes(text[position])) position += 1;
  };

  function string() {
    const start = position;
    position += 1;
    while (text[position] !== '"') {
      if (position >= text.length || text[position] === "\n") fail("this string has no closing quote", start, position);
      position += text[position] === "\\" ? 2 : 1;
    }
    position += 1;
    try {
      return JSON.parse(text.slice(start, position));
    } catch {
      return fail("this string has a wrong escape or a control character", start, position);
    }
  }

  /// Takes what is between an opening and a closing character, with commas between it.
  function items(end, name, take) {
    const taken = [];
    position += 1;
    skip();
    if (text[position] !== end) {
      taken.push(take());
      for (skip(); text[position] === ","; skip()) {
        position += 1;
        taken.push(take());
      }
      if (text[position] !== end) fail(`a comma or a closing ${name} is expected here`);
    }
    position += 1;
    return taken;
  }

  function member(depth) {
    skip();
    if (text[position] !== '"') fail("a name in double quotes is expected here");
    const nameStart = position;
    const name = string();
    const nameEnd = position;
    skip();
    if (text[position] !== ":") fail("a colon is expected here");
    position += 1;
    return { name, nameStart, nameEnd, value: value(depth + 1) };
  }

  /// Returns what a pattern matches here; undefined for nothing.
  function match(pattern) {
    pattern.lastIndex = position;
    return pattern.exec(text)?.[0];
  }

  function value(depth) {
    skip();
    if (depth > 200) fail("this is nested too deeply");
    const start = position;
    const character = text[position];
    if (character === "{") {
      const members = items("}", "brace", () => member(depth));
      return { type: "object", members, start, end: position };
    }
    if (character === "[") {
      const elements = items("]", "bracket", () => value(depth + 1));
      return { type: "array", elements, start, end: position };
    }
    if (character === '"') return { type: "string", value: string(), start, end: position };
    const word = match(/(?:true|false|null)\b/y);
    if (word) {
      position += word.length;
      return { type: word === "null" ? "null" : "boolean", value: JSON.parse(word), start, end: position };
    }
    const number = match(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    if (number) {
      position += number.length;
      return { type: "number", text: number, start, end: position };
    }
    if (character === undefined) fail("the text ends here too early");
    const wrong = match(/[^\s,:{}[\]"]+/y);
    return fail("a value is expected here: strings need double quotes", start, start + (wrong?.length ?? 1));
  }

  const root = value(0);
  skip();
  if (position < text.length) fail("nothing may follow the value", position, text.length);
  return root;
}

/// Returns the pieces of JSON as it is shown: `[class, text]`, with line breaks and indentation.
export function pieces(node, text, indent = "") {
  const deeper = `${indent}  `;
  const source = text.slice(node.start, node.end);
  if (node.type === "object" && node.members.length > 0) {
    return [
      ["", "{"],
      ...node.members.flatMap((member, index) => [
        ["", `${index ? "," : ""}\n${deeper}`], ["name", text.slice(member.nameStart, member.nameEnd)], ["", ": "],
        ...pieces(member.value, text, deeper),
      ]),
      ["", `\n${indent}}`],
    ];
  }
  if (node.type === "array" && node.elements.length > 0) {
    const isShort = node.elements.every((element) => !["object", "array"].includes(element.type)) && source.length < 80;
    const separator = isShort ? ", " : `,\n${deeper}`;
    return [
      ["", isShort ? "[" : `[\n${deeper}`],
      ...node.elements.flatMap((element, index) => [...(index ? [["", separator]] : []), ...pieces(element, text, deeper)]),
      ["", isShort ? "]" : `\n${indent}]`],
    ];
  }
  return [[node.type === "object" || node.type === "array" ? "" : node.type, source]];
}

export const formatted = (text) => pieces(parse(text), text).map(([, piece]) => piece).join("");

/// Finds the place that a path of the server such as `$.age.$gtt` or `$.sort[1]` names; null if it isn't in the text.
/// - Returns: The node, and the start and end of its name, or of itself.
export function placeOf(path, root) {
  let node = root;
  let place = { start: root.start, end: root.end };
  let rest = path.replace(/^\$/, "");
  while (rest) {
    const index = /^\[(\d+)\]/.exec(rest);
    if (index) {
      node = node?.elements?.[Number(index[1])];
      if (!node) return null;
      place = { start: node.start, end: node.end };
      rest = rest.slice(index[0].length);
      continue;
    }
    // A name may have dots in it.
    const members = node?.members ?? [];
    const member = members
      .filter(({ name }) => rest.startsWith(`.${name}`) && /^($|[.[])/.test(rest.slice(name.length + 1)))
      .sort((first, second) => second.name.length - first.name.length)[0];
    if (!member) return null;
    node = member.value;
    place = { start: member.nameStart, end: member.nameEnd };
    rest = rest.slice(member.name.length + 1);
  }
  return place;
}

/// Returns the node that names lead to; undefined if there is none.
export function nodeAt(root, ...names) {
  return names.reduce((node, name) => node?.members?.find((member) => member.name === name)?.value, root);
}

/// Returns the text of a string, or any other node as it is written; nothing for no node.
export function textOf(node, text) {
  if (!node) return "";
  return node.type === "string" ? node.value : text.slice(node.start, node.end);
}
