import { h } from "./dom.js";
import { pieces } from "./json.js";

/// Returns JSON with indentation, and its kinds of values in their colors.
export function highlighted(node, text, properties = {}) {
  const contents = pieces(node, text).map(([kind, piece]) => (kind ? h("span", { class: kind }, piece) : piece));
  return h("pre", { class: "value json", ...properties }, contents);
}
