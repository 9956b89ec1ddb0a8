import { button, cell, dialog, h, rowHeading } from "./dom.js";

const shortcuts = [
  ["1 … 6", "Go to the page in the row at the top"],
  ["/", "Go to the prefix, or to the query"],
  ["↑ ↓ Page Up Page Down Home End", "Move in a tree or table"],
  ["→ ←", "Open and close a folder of keys"],
  ["Enter", "Show what is selected"],
  ["Delete", "Delete what is selected, after a question"],
  ["Ctrl Enter", "Run a query, save a value"],
  ["Esc", "Close a dialog"],
  ["?", "Show this"],
];

export function shortcutsDialog() {
  return dialog("Keyboard shortcuts", (close) => [
    h("table", { class: "shortcuts" },
      h("tbody", {}, shortcuts.map(([keys, meaning]) => h("tr", {}, rowHeading(keys), cell(meaning))))),
    h("div", { class: "actions" }, button("Close", () => close())),
  ]);
}
