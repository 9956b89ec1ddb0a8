// The changes of a store while they happen.

import { lines, request, storePath } from "./api.js";
import { button, h, replace, verbatim } from "./dom.js";
import { bytes, count, duration } from "./format.js";

/// The maximum number of changes that are shown.
const maxRows = 500;
/// The pauses before a new attempt to connect, in milliseconds.
const pauses = [500, 1000, 2000, 5000];

export function watchPage({ store }) {
  const body = h("tbody");
  const state = h("p", { class: "summary", role: "status" });
  const prefix = h("input", { type: "search", placeholder: "Prefix", "aria-label": "Prefix of keys", spellcheck: "false", "data-shortcut": "/", change: () => restart() });
  const toggle = h("button", { type: "button", class: "primary", click: () => (isPaused ? resume() : pause()) }, "Pause");
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
        const response = await request("GET", storePath(store, "changes"), { query: { prefix: prefix.value, values: 1, ...place }, signal: mine.signal });
        replace(state, "Watching.");
        for await (const line of lines(response)) {
          attempt = 0;
          take(JSON.parse(line));
        }
      } catch (error) {
        if (mine.signal.aborted) return;
        if (error.status >= 400 && error.status < 500) return replace(state, verbatim(error.message));
        replace(state, `${error.message} Trying again.`);
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
    const value = line.value ?? (line.valueBase64 === undefined ? "" : `(binary) ${line.valueBase64}`);
    addRow(h("tr", {},
      h("td", { class: "number" }, line.revision), h("td", {}, line.change),
      h("th", { scope: "row" }, verbatim(line.key ?? "")), h("td", { class: "number" }, line.size === undefined ? "" : bytes(line.size)),
      h("td", {}, verbatim(value.slice(0, 300), { class: "faint" }), line.expiresInMilliseconds ? ` · expires in ${duration(line.expiresInMilliseconds)}` : null)));
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
    watch();
  }

  function restart() {
    controller?.abort();
    place = {};
    replace(body);
    total = 0;
    if (!isPaused) watch();
  }

  return {
    element: h("section", { class: "page" },
      h("h1", {}, "Changes of ", verbatim(store)),
      h("div", { class: "toolbar" }, prefix, toggle, state),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Changes" },
        h("table", { class: "list" },
          h("thead", {}, h("tr", {}, h("th", { class: "number" }, "Revision"), h("th", {}, "Change"), h("th", {}, "Key"), h("th", { class: "number" }, "Size"), h("th", {}, "Value"))),
          body))),
    didAppear: () => {
      watch();
    },
    close: () => controller?.abort(),
  };
}
