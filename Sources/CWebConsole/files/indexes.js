// The indexes of a store, with the progress of those that are being built.

import { get, request, send, storePath } from "./api.js";
import { button, confirmation, field, formDialog, h, replace, report, say, verbatim } from "./dom.js";
import { bytes, count } from "./format.js";
import { fieldName } from "./plan.js";

/// How often the progress is asked for, in milliseconds.
const interval = 1000;

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

export function indexesPage({ store }) {
  const body = h("tbody");
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
      h("th", { scope: "row" }, verbatim(index.name)),
      h("td", {}, verbatim(index.fields.map(fieldName).join(", ")), index.where ? [" where ", verbatim(JSON.stringify(index.where))] : null),
      h("td", {}, index.state === "building"
        ? [h("progress", { max: 1, value: index.progress ?? 0, "aria-label": `Building ${index.name}` }), ` ${Math.floor((index.progress ?? 0) * 100)} %`]
        : [index.state, index.reason ? [": ", verbatim(index.reason)] : null]),
      h("td", { class: "number" }, count(index.entries ?? 0)),
      h("td", { class: "number" }, bytes(index.memoryBytes ?? 0)),
      h("td", { class: "actions" }, button("Delete…", async () => {
        if (!(await confirmation("Delete an index", `Finds that use the index ${index.name} will read more documents.`, "Delete"))) return;
        await request("DELETE", storePath(store, "indexes", encodeURIComponent(index.name)));
        say(`The index ${index.name} is gone.`);
        await load();
      }, { class: "danger", "aria-label": `Delete ${index.name}` })));
  }

  return {
    element: h("section", { class: "page" },
      h("div", { class: "heading" }, h("h1", {}, "Indexes of ", verbatim(store)),
        button("New index…", async () => {
          const name = await newIndex(store);
          if (!name) return;
          say(`The index ${name} is being built.`);
          await load();
        }, { class: "primary" })),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Indexes" },
        h("table", { class: "list" },
          h("thead", {}, h("tr", {}, ["Name", "Fields", "State"].map((name) => h("th", {}, name)),
            h("th", { class: "number" }, "Entries"), h("th", { class: "number" }, "Memory"), h("th", {}, h("span", { class: "hidden" }, "Actions")))),
          body))),
    didAppear: () => load().catch(report),
    close: () => {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
