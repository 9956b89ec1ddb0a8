// Elements of the page. Text from outside becomes text nodes only.

import { count } from "./format.js";
import { marked } from "./text.js";

const events = new Set(["click", "input", "change", "submit", "keydown", "scroll", "close"]);

/// Makes an element. A property is an event's listener, a property of the element, or an attribute; null and false leave it
/// out. Children are elements, texts, or arrays of them.
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  set(element, properties);
  element.append(...contents(children));
  return element;
}

/// Makes an element of a drawing.
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...contents(children));
  return element;
}

function contents(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

export function set(element, properties) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) {
      element.removeAttribute(key);
    } else if (events.has(key)) {
      // What a listener does later may fail, too.
      element.addEventListener(key, (event) => Promise.resolve(value(event)).catch(report));
    } else if (key === "value" || key === "checked" || key === "disabled" || key === "indeterminate") {
      element[key] = value;
    } else {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren(...contents(children));
  return element;
}

/// One line of text from outside, with marks on what can't be seen. Its direction doesn't leak into what is around it.
export function verbatim(text, properties = {}) {
  return h("bdi", { ...properties, class: `verbatim ${properties.class ?? ""}` }, marked(text));
}

/// Elements of which only some are made at once, so that there may be any number.
/// - make: Returns the element of an item.
export function inParts(items, size, make) {
  let end = 0;
  const more = button("", () => show(), { class: "more" });
  const element = h("div", {}, more);
  const show = () => {
    more.before(...items.slice(end, end + size).map(make));
    end = Math.min(items.length, end + size);
    if (end === items.length) more.remove();
    else replace(more, `Show more: ${count(items.length - end)} are left`);
  };
  show();
  return element;
}

/// A button. Its action may be asynchronous: it can't be started again meanwhile, and failures are reported.
export function button(label, action, properties = {}) {
  const element = h("button", { type: "button", ...properties }, label);
  element.addEventListener("click", async (event) => {
    event.preventDefault();
    // A disabled button would lose the focus.
    if (element.ariaBusy) return;
    element.ariaBusy = "true";
    try {
      await action(event);
    } catch (error) {
      report(error);
    } finally {
      element.ariaBusy = null;
    }
  });
  return element;
}

let idCount = 0;

/// An input with its label above it.
export function field(label, input, hint) {
  idCount += 1;
  input.id ||= `input-${idCount}`;
  const note = hint ? h("small", { id: `${input.id}-hint` }, hint) : null;
  if (note) input.setAttribute("aria-describedby", note.id);
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input, note);
}

export function select(options, selected, properties = {}) {
  return h(
    "select", properties,
    options.map(([value, label]) => h("option", { value, selected: value === selected }, label ?? value)));
}

// Tables

/// A part that scrolls on its own, also by keys.
export function region(label, ...children) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, children);
}

/// A table with a heading above each column: its name, `{number: NAME}` for a column of numbers, or `{hidden: NAME}`.
export function table(label, columns, body) {
  const headings = columns.map((column) => {
    if (column.number) return h("th", { class: "number" }, column.number);
    return h("th", {}, column.hidden ? h("span", { class: "hidden" }, column.hidden) : column);
  });
  return region(label, h("table", { class: "list" }, h("thead", {}, h("tr", {}, headings)), body));
}

/// A table of names and what they have.
export function figureTable(pairs) {
  const rows = pairs.map(([name, value]) => h("tr", {}, rowHeading(name), numberCell(value)));
  return h("table", { class: "figures" }, h("tbody", {}, rows));
}

export const rowHeading = (...children) => h("th", { scope: "row" }, children);
export const cell = (...children) => h("td", {}, children);
export const numberCell = (...children) => h("td", { class: "number" }, children);

// Messages

let messages = null;

/// The place of messages, which readers of screens announce.
export function messageArea() {
  messages = h("div", { class: "messages", role: "status", "aria-live": "polite" });
  return messages;
}

/// How long messages are shown, in milliseconds.
const lifetimes = { note: 6_000, error: 20_000 };

/// Removes the messages of a page that the user leaves.
export const clearMessages = () => messages?.replaceChildren();

export function say(text, kind = "note") {
  if (!messages) return;
  const message = h(
    "div", { class: `message ${kind}` }, verbatim(text),
    button("×", () => message.remove(), { class: "plain", "aria-label": "Close this message" }));
  messages.append(message);
  while (messages.children.length > 4) messages.firstChild.remove();
  setTimeout(() => message.remove(), lifetimes[kind]);
}

export function report(error) {
  if (error?.name === "AbortError") return;
  say(error?.message ?? String(error), "error");
}

// Dialogs

/// Asks for something in a dialog, until it is closed.
/// - content: Makes the contents, given a function that closes the dialog with a result.
/// - Returns: The result; undefined if the dialog was canceled.
export function dialog(title, content) {
  return new Promise((resolve) => {
    let result;
    const before = document.activeElement;
    idCount += 1;
    const element = h("dialog", {
      "aria-labelledby": `dialog-${idCount}`,
      input: () => (element.dataset.touched = ""),
      close: () => {
        element.remove();
        before?.isConnected && before.focus();
        resolve(result);
      },
    });
    const close = (value) => {
      result = value;
      element.close();
    };
    element.append(h("h2", { id: `dialog-${idCount}` }, title), ...contents([content(close)]));
    document.body.append(element);
    element.showModal();
  });
}

/// A form in a dialog.
/// - fields: Elements with what is asked.
/// - action: Called when the form is submitted; its failure is shown in the dialog.
export function formDialog(title, fields, label, action, properties = {}) {
  return dialog(title, (close) => {
    const failure = h("p", { class: "failure", role: "alert" });
    const submit = h("button", { type: "submit", class: properties.danger ? "danger" : "primary" }, label);
    return h(
      "form", {
        method: "dialog",
        submit: async (event) => {
          event.preventDefault();
          replace(failure);
          submit.disabled = true;
          try {
            close((await action()) ?? true);
          } catch (error) {
            replace(failure, verbatim(error.message));
            submit.disabled = false;
          }
        },
      },
      fields, failure,
      h("div", { class: "actions" }, button("Cancel", () => close()), submit));
  });
}

/// Whether something was typed into a dialog that is open.
export const hasTouchedDialog = () => document.querySelector("dialog[data-touched]") !== null;

/// Asks whether changes that were not saved may be lost.
export const mayDiscard = async () =>
  (await confirmation("Unsaved changes", "You have changed something that isn't saved. Leave, and lose it?", "Discard")) === true;

/// Asks whether something is to be done that can't be undone.
export function confirmation(title, text, label) {
  return formDialog(title, [h("p", {}, text)], label, () => true, { danger: true });
}

/// A dialog with the progress of something that can be stopped.
/// - action: Gets a function that shows text and a fraction, and a signal that says when to stop.
export async function progressDialog(title, action) {
  const controller = new AbortController();
  const text = h("p", { role: "status" }, "Starting…");
  const bar = h("progress", { max: 1, "aria-label": title });
  let close;
  const done = dialog(title, (closeDialog) => {
    close = closeDialog;
    return [text, bar, h("div", { class: "actions" }, button("Stop", () => controller.abort()))];
  });
  done.then(() => controller.abort());
  try {
    return await action((message, fraction) => {
      replace(text, message);
      if (fraction !== undefined) bar.value = fraction;
    }, controller.signal);
  } finally {
    close();
    await done;
  }
}

/// Saves something as a file of the browser's user.
export function save(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
