// The indexes of a store, with the progress of those that are being built.

import { get, request, send, storePath } from "./api.js";
import {
  button, cell, confirmation, field, formDialog, h, numberCell, replace, report, rowHeading, say, table, verbatim,
} from "./dom.js";
import { bytes, count } from "./format.js";
import { fieldName } from "./plan.js";
import { may } from "./rights.js";
import { plain } from "./text.js";

/// How often the progress is asked for, in milliseconds.
const interval = 1000;
const columns = ["Name", "Fields", "State", { number: "Entries" }, { number: "Memory" }, { hidden: "Actions" }];

function newIndex(store) {
  const fields = h("input", { required: true, spellcheck: "false", placeholder: "year, -rating" });
  const name = h("input", { spellcheck: "false" });
  const where = h("textarea", { rows: 3, spellcheck: "false", placeholder: '{"type": "film"}' });
  return formDialog("New index", [
    field("Fields", fields, "Paths with commas between them; - before a field is for descending order."),
    field("Name", name, "Empty for one that follows from the fields"),
    field("Only documents that match", where, "A selector; empty for all documents"),
  ], "Create", async () => {
    const index = {
      fields: fields.value.split(",").map((text) => text.trim()).filter(Boolean)
        .map((text) => (text.startsWith("-") ? { [text.slice(1)]: "desc" } : text)),
    };
    if (name.value) index.name = name.value;
    if (where.value.trim()) index.where = JSON.parse(where.value);
    return (await send("POST", storePath(store, "indexes"), index)).name;
  });
}

/// The state of an index, and how much of it is built.
function stateOf({ name, state, progress = 0, reason }) {
  if (state !== "building") return [state, reason ? [": ", verbatim(reason)] : null];
  return [h("progress", { max: 1, value: progress, "aria-label": `Building ${name}` }), ` ${Math.floor(progress * 100)} %`];
}

export function indexesPage({ store }) {
  const body = h("tbody");
  const mayChange = may("admin", store);
  let timer = null;
  let isClosed = false;

  async function load() {
    clearTimeout(timer);
    const { indexes } = await get(storePath(store, "indexes"));
    if (isClosed) return;
    if (indexes.length === 0) {
      replace(body, h("tr", {}, h("td", { colspan: 6 }, "There are no indexes: each find reads all documents.")));
    } else {
      replace(body, indexes.map(row));
    }
    if (indexes.some(({ state }) => state === "building")) timer = setTimeout(() => load().catch(report), interval);
  }

  function row(index) {
    return h("tr", {},
      rowHeading(verbatim(index.name)),
      cell(verbatim(index.fields.map(fieldName).join(", ")),
        index.where ? [" where ", verbatim(JSON.stringify(index.where))] : null),
      cell(stateOf(index)), numberCell(count(index.entries ?? 0)), numberCell(bytes(index.memoryBytes ?? 0)),
      h("td", { class: "actions" }, !mayChange ? null : button("Delete…", async () => {
        const consequence = ["Finds that use the index ", verbatim(index.name), " will read more documents."];
        if (!(await confirmation("Delete an index", consequence, "Delete"))) return;
        // A proxy may change a name in a path.
        await request("DELETE", storePath(store, "indexes"), { query: { name: index.name } });
        say(`The index ${index.name} is gone.`);
        await load();
      }, { class: "danger", "aria-label": `Delete ${plain(index.name)}` })));
  }

  return {
    element: h("section", { class: "page" },
      h("div", { class: "heading" }, h("h1", {}, "Indexes of ", verbatim(store)),
        !mayChange ? null : button("New index…", async () => {
          const name = await newIndex(store);
          if (!name) return;
          say(`The index ${name} is being built.`);
          await load();
        }, { class: "primary" })),
      table("Indexes", columns, body)),
    didAppear: () => load().catch((error) => replace(body, h("tr", {}, h("td", { colspan: 6 }, verbatim(error.message))))),
    close: () => {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
