// The changes of a store while they happen.

import { lines, request, storePath } from "./api.js";
import { button, cell, h, numberCell, replace, rowHeading, table, verbatim } from "./dom.js";
import { bytes, count, duration, valueText } from "./format.js";

/// The maximum number of changes that are shown.
const maxRows = 500;
/// The pauses before a new attempt to connect, in milliseconds.
const pauses = [500, 1000, 2000, 5000];

export function watchPage({ store, prefix: readablePrefix }) {
  const body = h("tbody");
  const state = h("p", { class: "summary", role: "status" });
  const prefix = h("input", {
    type: "search", value: readablePrefix, placeholder: "Prefix", "aria-label": "Prefix of keys", spellcheck: "false",
    "data-shortcut": "/",
    change: () => restart(),
  });
  const toggle = button("Pause", () => (isPaused ? resume() : pause()), { class: "primary" });
  let controller = null;
  let isPaused = false;
  /// Where the watch goes on: the store's incarnation, and the first revision that wasn't seen.
  let place = {};
  let total = 0;

  async function watch() {
    const mine = new AbortController();
    controller = mine;
    for (let attempt = 0; !mine.signal.aborted; attempt += 1) {
      try {
        const query = { prefix: prefix.value, values: 1, ...place };
        const response = await request("GET", storePath(store, "changes"), { query, signal: mine.signal });
        replace(state, "Watching.");
        for await (const line of lines(response)) {
          attempt = 0;
          take(JSON.parse(line));
        }
      } catch (error) {
        if (mine.signal.aborted) return;
        if (error.status >= 400 && error.status < 500) return replace(state, verbatim(error.message));
        replace(state, verbatim(error.message), " Trying again.");
      }
      await new Promise((resolve) => setTimeout(resolve, pauses[Math.min(attempt, pauses.length - 1)]));
    }
  }

  function take(line) {
    if (line.incarnation) place = { ...place, incarnation: line.incarnation };
    if (line.error) {
      // What is lost can't be shown: go on with what comes.
      place = {};
      addRow(h("tr", { class: "warning" }, h("td", { colspan: 5 }, verbatim(line.error.detail))));
    }
    if (line.through) place = { ...place, from: String(BigInt(line.through) + 1n) };
    if (!line.change) return;
    total += 1;
    const expiry = line.expiresInMilliseconds ? ` · expires in ${duration(line.expiresInMilliseconds)}` : null;
    addRow(h("tr", {},
      numberCell(line.revision), cell(line.change), rowHeading(verbatim(line.key ?? "")),
      numberCell(line.size === undefined ? "" : bytes(line.size)),
      cell(verbatim(valueText(line, 300), { class: "faint" }), expiry)));
    replace(state, `Watching: ${count(total)} ${total === 1 ? "change" : "changes"}.`);
  }

  function addRow(row) {
    body.prepend(row);
    while (body.children.length > maxRows) body.lastChild.remove();
  }

  function pause() {
    controller?.abort();
    isPaused = true;
    replace(toggle, "Resume");
    replace(state, "Paused. Nothing is missed: the watch goes on where it stopped, if the server still has the changes.");
  }

  function resume() {
    isPaused = false;
    replace(toggle, "Pause");
    void watch();
  }

  function restart() {
    controller?.abort();
    place = {};
    replace(body);
    total = 0;
    if (!isPaused) void watch();
  }

  return {
    element: h("section", { class: "page" },
      h("h1", {}, "Changes of ", verbatim(store)),
      h("div", { class: "toolbar" }, prefix, toggle, state),
      table("Changes", [{ number: "Revision" }, "Change", "Key", { number: "Size" }, "Value"], body)),
    didAppear: () => void watch(),
    close: () => controller?.abort(),
  };
}
