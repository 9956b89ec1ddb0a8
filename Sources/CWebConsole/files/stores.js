// The stores of the server.

import { get, pages, readValue, request, send, storePath } from "./api.js";
import {
  button, cell, dialog, field, figureTable, formDialog, h, numberCell, progressDialog, region, replace, report, rowHeading,
  save, say, table, verbatim,
} from "./dom.js";
import { base64, bytes, count, text, things } from "./format.js";
import { may } from "./rights.js";

const engines = [
  ["memory", "memory: as fast as possible; gone when the server ends"],
  ["log", "log: on the disk before each write is confirmed"],
  ["log?durability=interval:1s", "log, on the disk within a second"],
  ["directory", "directory: a file for each entry"],
];

/// Asks for a new store.
/// - Returns: Its name; undefined if there is none.
async function createStore() {
  const name = h("input", { required: true, pattern: "[A-Za-z0-9_][A-Za-z0-9._\\-]*", maxlength: 128, spellcheck: "false" });
  const engine = h("input", { required: true, value: "memory", list: "engines", spellcheck: "false" });
  const list = h("datalist", { id: "engines" }, engines.map(([value, label]) => h("option", { value }, label)));
  return formDialog("New store", [
    field("Name", name, "Letters, digits, dots, dashes and underscores"),
    field("Engine", engine, "memory, log or directory, with options such as ?durability=interval:1s"), list,
  ], "Create", async () => {
    await send("PUT", storePath(name.value), { engine: engine.value });
    return name.value;
  });
}

/// A button that makes a store, and opens it.
/// - open, storesDidChange: Called with the names of a page, and when there is another store.
export function newStoreButton({ open, storesDidChange }, kind) {
  return button("New store…", async () => {
    const name = await createStore();
    if (!name) return;
    await storesDidChange();
    open(["store", name, "entries"]);
  }, { class: kind });
}

/// Asks whether a store is to be dropped, whose name the user has to type.
function dropStore(name) {
  const input = h("input", { required: true, autocomplete: "off", spellcheck: "false" });
  return formDialog("Drop a store", [
    h("p", {}, "Everything in the store ", verbatim(name, { class: "strong" }), " will be gone. This can't be undone."),
    field("Type the name of the store", input),
  ], "Drop", async () => {
    if (input.value !== name) throw new Error("This is not the name of the store.");
    await request("DELETE", storePath(name));
  }, { danger: true });
}

/// The maximum size of a value in a list of entries, in bytes.
const maxListedSize = 4096;

/// Saves all entries below a prefix as lines that `larder load` reads.
export async function exportEntries(store, prefix) {
  const { count: total } = await get(storePath(store, "count"), { prefix });
  const blob = await progressDialog("Back up", async (show, signal) => {
    const parts = [];
    let done = 0;
    for await (const entries of pages(store, prefix, { values: true, signal })) {
      const lines = [];
      for (const entry of entries) {
        lines.push(`${await exportLine(store, entry, signal)}\n`);
        done += 1;
      }
      // A blob may be on the disk.
      parts.push(new Blob(lines));
      show(`${count(done)} of ${things(total, "entry", "entries")}`, total ? Math.min(1, done / total) : 1);
    }
    return new Blob(parts, { type: "application/x-ndjson" });
  });
  save(`${store}${prefix ? `-${prefix.replace(/[^A-Za-z0-9._-]/g, "_")}` : ""}.jsonl`, blob);
  say(`Saved ${bytes(blob.size)}. “larder load ${store} FILE” restores the entries.`);
}

async function exportLine(store, entry, signal) {
  const { key, revision, expiresInMilliseconds } = entry;
  const line = { key, revision, expiresInMilliseconds, value: entry.value, valueBase64: entry.valueBase64 };
  if (entry.isList) throw new Error(`The entry ${key} has a list of values, which “larder dump” can save.`);
  if (entry.value === undefined && entry.valueBase64 === undefined) {
    const { bytes } = await readValue(store, key, 0, undefined, signal);
    line.value = text(bytes) ?? undefined;
    if (line.value === undefined) line.valueBase64 = base64(bytes);
  }
  return JSON.stringify(line);
}

export function storesPage({ open, storesDidChange }) {
  const body = h("tbody");
  const load = async () => {
    const { stores } = await get("stores");
    if (stores.length === 0) {
      return replace(body, h("tr", {}, h("td", { colspan: 4 }, "There are no stores, or none that you may read.")));
    }
    replace(body, stores.map((store) => h(
      "tr", {},
      rowHeading(h("a", { href: `#/store/${encodeURIComponent(store.name)}/entries` }, verbatim(store.name))),
      cell(verbatim(store.engine)), numberCell(count(store.entries)),
      h("td", { class: "actions" },
        may("read", store.name) ? button("Details…", () => details(store.name), { "aria-label": `Details of ${store.name}` }) : null,
        may("read", store.name) ? button("Back up…", () => exportEntries(store.name, ""), { "aria-label": `Back up ${store.name}` }) : null,
        may("admin", store.name) ? button("Drop…", async () => {
          if (!(await dropStore(store.name))) return;
          say(`The store ${store.name} is gone.`);
          await Promise.all([load(), storesDidChange()]);
        }, { class: "danger", "aria-label": `Drop ${store.name}` }) : null))));
  };
  return {
    element: h("section", { class: "page" },
      h("div", { class: "heading" }, h("h1", {}, "Stores"),
        may("admin") ? newStoreButton({ open, storesDidChange }, "primary") : null),
      table("Stores", ["Name", "Engine", { number: "Entries" }, { hidden: "Actions" }], body),
      h("p", { class: "hint" }, "A backup has the entries as lines of JSON. Entries that are written meanwhile may or may ",
        "not be in it; “larder backup” saves one moment.")),
    didAppear: () => load().catch((error) => replace(body, h("tr", {}, h("td", { colspan: 4 }, verbatim(error.message))))),
  };
}

/// Shows the figures of a store.
async function details(name) {
  const { engine, figures } = await get(storePath(name));
  await dialog(name, (close) => [
    region("Figures", figureTable([["engine", engine], ...Object.entries(figures)].map(([key, value]) =>
      [key.replaceAll("_", " "), figure(key, value)]))),
    h("div", { class: "actions" }, button("Close", () => close())),
  ]);
}

function figure(name, value) {
  if (typeof value === "string") return verbatim(value);
  return name.endsWith("_bytes") ? bytes(value) : count(value);
}
