// The plan of a find as a drawing.

import { button, h, region, svg, verbatim } from "./dom.js";
import { count, duration, things } from "./format.js";
import { nodeAt, parse } from "./json.js";
import { plain } from "./text.js";

/// The steps from the documents of the store to those that are found: `[name, what it does, number that goes on]`.
function steps({ explanation, found, examinedDocuments, examinedKeys }, hasSort) {
  const { plan, selector } = explanation;
  const steps = source(plan, examinedDocuments, examinedKeys);
  if (selector && Object.keys(selector).length > 0) steps.push({ name: "Filter", note: "by the selector", number: null });
  if (hasSort && !plan.ordered) steps.push({ name: "Sort", note: "in memory", number: null });
  steps.push({ name: "Result", note: things(found, "document"), number: null });
  return steps;
}

/// The steps that say where documents come from.
function source(plan, examinedDocuments, examinedKeys) {
  const documents = { name: "Documents", note: "read by their keys", number: examinedDocuments };
  switch (plan.kind) {
    case "scan": return [{ name: "Scan", note: "every document", number: examinedDocuments }];
    case "nothing": return [{ name: "Nothing", note: "no document can match", number: 0 }];
    case "ids": return [{ ...documents, number: examinedDocuments }];
    case "index": {
      const index = {
        name: "Index", object: plan.index, note: `${things(plan.rangeCount, "range")}${plan.reversed ? ", backward" : ""}`,
        number: examinedKeys,
      };
      return examinedDocuments === 0 ? [index] : [index, documents];
    }
    default: {
      // A union or an intersection of plans.
      const parts = plan.parts.map((part) => part.index ?? part.kind).join(plan.kind === "union" ? " + " : " ∩ ");
      const name = plan.kind === "union" ? "Union" : "Intersection";
      return [{ name, object: parts, note: "", number: examinedKeys }, documents];
    }
  }
}

function drawing(steps) {
  const [width, height, gap] = [150, 74, 74];
  const total = steps.length * width + (steps.length - 1) * gap;
  const description = steps.map(({ name, object, note, number }) =>
    [name, object, note, number === null ? "" : count(number)].filter(Boolean).join(" ")).join(", then ");
  const drawing = svg("svg", {
    viewBox: `0 0 ${total + 2} ${height + 2}`, class: "plan", role: "img", "aria-label": plain(`Plan: ${description}`),
  });
  drawing.style.maxWidth = `${total + 2}px`;
  steps.forEach(({ name, object, note, number }, index) => {
    const x = 1 + index * (width + gap);
    const text = (x, y, kind, content) =>
      svg("text", { x, y, class: kind, "text-anchor": "middle" }, shortened(plain(content), 22));
    const middle = x + width / 2;
    const kind = name === "Scan" ? "step costly" : "step";
    drawing.append(svg("rect", { x, y: 1, width, height, rx: 8, class: kind }), text(middle, object ? 24 : 32, "name", name));
    if (object) drawing.append(text(middle, 43, "object", object));
    if (note) drawing.append(text(middle, object ? 61 : 52, "note", note));
    if (index === steps.length - 1) return;
    const [start, end, y] = [x + width, x + width + gap, 1 + height / 2];
    drawing.append(svg("path", { d: `M${start + 4} ${y}H${end - 5}m-6 -5l6 5l-6 5`, class: "arrow" }));
    if (number !== null) drawing.append(text((start + end) / 2, y - 8, "note", count(number)));
  });
  return drawing;
}

const shortened = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/// - text: The response with the plan.
/// - hasSort: Whether the query has an order.
/// - createIndex: Called with the index that the server suggests; null if the user may create none.
export function planView(text, { hasSort, createIndex }) {
  const { result } = JSON.parse(text);
  const ranges = nodeAt(parse(text), "result", "explanation", "plan", "ranges")?.elements ?? [];
  const { explanation } = result;
  const { suggestion, candidates = [], plan } = explanation;
  const fields = suggestion?.fields.map(fieldName).join(", ");
  const order = plan.ordered && hasSort ? ", in the order of the index" : "";
  return h("div", { class: "plan-view" },
    region("Plan", drawing(steps(result, hasSort))),
    h("p", { class: "summary", role: "status" }, `Took ${duration(result.nanoseconds / 1e6)}${order}`),
    suggestion ? h("p", { class: "warning" },
      plan.kind === "scan" ? "No index helps with this query. " : "Another index would help more. ",
      createIndex ? button(["Create the index on ", verbatim(fields)], () => createIndex(suggestion), {
        class: "primary",
      }) : ["An administrator can create one on ", verbatim(fields), "."]) : null,
    ranges.length > 0 ? h("details", {}, h("summary", {}, "Ranges"),
      h("ul", {}, ranges.map(({ start, end }) => h("li", {}, verbatim(text.slice(start, end)))))) : null,
    candidates.length > 0 ? h("div", {}, h("h2", {}, "Indexes that are not used"), h("ul", {}, candidates.map(
      ({ index, reason }) => h("li", {}, verbatim(index, { class: "strong" }), ": ", verbatim(reason))))) : null);
}

export function fieldName(field) {
  if (typeof field === "string") return field;
  return Object.entries(field).map(([name, direction]) => `${name} (${direction})`).join(", ");
}
