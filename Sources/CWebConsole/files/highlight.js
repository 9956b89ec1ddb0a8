import { h } from "./dom.js";
import { pieces } from "./json.js";
import { marked } from "./text.js";

/// Returns JSON with indentation, its kinds of values in their colors, and marks on what can't be seen.
export function highlighted(node, text, properties = {}) {
  const contents = pieces(node, text).map(([kind, piece]) => {
    const shown = marked(piece, false);
    return kind ? h("span", { class: kind }, shown) : shown;
  });
  return h("pre", { class: "value json", ...properties }, contents);
}
