// The frame of the console: who the user is, the stores, and the page that the address names.

import { get, onUnauthorized, request, send, storePath, token } from "./api.js";
import {
  button, clearMessages, field, h, hasTouchedDialog, mayDiscard, messageArea, replace, report, select, verbatim,
} from "./dom.js";
import { count } from "./format.js";
import { browsePage } from "./browse.js";
import { findPage } from "./find.js";
import { indexesPage } from "./indexes.js";
import { livePage } from "./live.js";
import { may, readablePrefix, setRights } from "./rights.js";
import { shortcutsDialog } from "./shortcuts.js";
import { newStoreButton, storesPage } from "./stores.js";
import { plain } from "./text.js";
import { watchPage } from "./watch.js";

const pagesOfStores = [
  ["entries", "Entries", browsePage],
  ["find", "Find", findPage],
  ["indexes", "Indexes", indexesPage],
  ["watch", "Watch", watchPage],
];
const pagesOfServer = [
  ["stores", "Stores", storesPage],
  ["live", "Live", livePage],
];

const main = h("main", { id: "main", tabindex: "-1" });
const tabs = h("nav", { class: "tabs", "aria-label": "Pages" });
const storeList = h("ul", { class: "stores" });
const storeMenu = h("select", {
  class: "store-menu", "aria-label": "Store", change: () => open(["store", storeMenu.value, "entries"]),
});
const who = h("span", { class: "who" });
let identity = {};
let stores = [];
let page = null;
/// The names of what is shown.
let shown = [];
/// The number of the entry in the browser's history that is shown.
let step = history.state?.step ?? 0;
/// Whether the browser is on its way back to what is shown, and whether the user is being asked whether to leave it.
let [isReturning, isAsking] = [false, false];

/// The names in the address: `stores`, `live`, or `store`, a name, and a page with what it shows.
function names() {
  return location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map((name) => {
    try {
      return decodeURIComponent(name);
    } catch {
      return name;
    }
  });
}

function address(names) {
  return `#/${names.map(encodeURIComponent).join("/")}`;
}

function open(names) {
  location.hash = address(names);
}

/// Keeps what a page shows in the address, without a new page.
/// - isStep: Whether the browser's history gets another entry.
function remember(names, isStep) {
  shown = names;
  if (location.hash === address(names)) return;
  if (isStep) step += 1;
  history[isStep ? "pushState" : "replaceState"]({ step }, "", address(names));
}

/// Shows what the address names after it has changed, unless the user wants to keep what was changed and not saved.
async function arrive() {
  if (isReturning || isAsking) {
    isReturning = false;
    return;
  }
  if (page?.hasChanges) {
    isAsking = true;
    const mayLeave = await mayDiscard();
    isAsking = false;
    if (!mayLeave) {
      // A link has made an entry without a number.
      const distance = step - (history.state?.step ?? step + 1);
      isReturning = distance !== 0;
      if (isReturning) history.go(distance);
      return;
    }
  }
  step = history.state?.step ?? step + 1;
  history.replaceState({ step }, "");
  clearMessages();
  const [next, previous] = [names(), shown];
  const isSamePage = next.length > 1 && page?.go && [0, 1, 2].every((index) => next[index] === previous[index]);
  if (!isSamePage) return show();
  shown = next;
  page.go(next.slice(3));
}

async function loadStores() {
  const list = await get("stores");
  stores = list.stores;
  showStores();
}

function showStores() {
  const [kind, current] = names();
  const isCurrent = (name) => kind === "store" && name === current;
  replace(storeList, stores.map((store) => h(
    "li", {}, h(
      "a", { href: address(["store", store.name, "entries"]), "aria-current": isCurrent(store.name) ? "true" : null },
      verbatim(store.name), h("span", { class: "count" }, count(store.entries))))));
  replace(storeMenu, kind === "store" ? null : h("option", { value: "" }, "Choose a store"),
    stores.map((store) => h("option", { value: store.name, selected: isCurrent(store.name) }, store.name)));
}

function link(names, label, isCurrent) {
  return h("a", { href: address(names), "aria-current": isCurrent ? "page" : null }, label);
}

/// Makes a page that says why there is no other.
const failurePage = (message) => ({
  element: h("section", { class: "page" }, h("p", { role: "alert", class: "failure" }, verbatim(message))),
});

/// Returns why a store can't be shown; null if it can.
async function flawOf(store) {
  try {
    await loadStores();
    // Not every store that can be used is in the list.
    if (!stores.some(({ name }) => name === store)) await get(storePath(store));
    return null;
  } catch (error) {
    return error.code === "storeUnknown" || error.status === 404 ? `There is no store with the name ${store}.` : error.message;
  }
}

/// Shows the page that the address names.
async function show() {
  page?.close?.();
  page = null;
  shown = names();
  const mine = shown;
  const [kind = "stores", store, part = "entries", ...rest] = shown;
  replace(tabs,
    pagesOfServer.map(([name, label]) => link([name], label, kind === name)),
    kind === "store" ? pagesOfStores.map(([name, label]) => link(["store", store, name], label, part === name)) : null);
  showStores();
  const listed = kind === "store"
    ? pagesOfStores.find(([name]) => name === part)
    : pagesOfServer.find(([name]) => name === kind);
  if (!listed) return open(["stores"]);
  document.title = kind === "store" ? `${plain(store)} – Larder` : `${listed[1]} – Larder`;
  if (kind === "store" && !stores.some(({ name }) => name === store)) {
    replace(main);
    const flaw = await flawOf(store);
    if (mine !== shown) return;
    if (flaw) {
      page = failurePage(flaw);
      return replace(main, page.element);
    }
  }
  page = listed[2]({
    store,
    prefix: readablePrefix(store),
    rest,
    open,
    storesDidChange: loadStores,
    remember: (rest, isStep) => remember(["store", store, part, ...rest], isStep),
  });
  replace(main, page.element);
  page.didAppear?.();
}

// Themes

const themes = [["", "As the system"], ["light", "Light"], ["dark", "Dark"]];

function useTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function themeMenu() {
  const menu = select(themes, localStorage.getItem("larder-theme") ?? "", {
    "aria-label": "Colors",
    change: () => {
      localStorage.setItem("larder-theme", menu.value);
      useTheme(menu.value);
    },
  });
  return menu;
}

// Starting

async function start() {
  useTheme(localStorage.getItem("larder-theme") ?? "");
  try {
    await openLink();
    identity = await get("whoami");
    setRights(identity.rights);
    showConsole();
    await loadStores();
    history.replaceState({ step }, "");
    window.addEventListener("hashchange", arrive);
    await show();
  } catch (error) {
    if (error.status !== 401) showFailure(error);
  }
}

/// Begins the session of the link in the address, if there is one. The link works once.
async function openLink() {
  const link = /^#link=(.+)$/.exec(location.hash)?.[1];
  if (!link) return;
  history.replaceState(null, "", `${location.pathname}${location.search}`);
  token.set("");
  token.set((await send("POST", "session", { link })).token);
}

async function logOut() {
  if (page?.hasChanges && !(await mayDiscard())) return;
  await request("DELETE", "session");
  token.set("");
  location.reload();
}

function showFailure(error) {
  replace(document.body, h(
    "div", { class: "login" }, h("h1", {}, "Larder"), h("p", { role: "alert" }, verbatim(error.message)),
    button("Try again", () => location.reload(), { class: "primary" })));
}

/// Asks for a token.
function showLogin(reason) {
  if (page?.hasChanges) return report(new Error("You are logged out: copy what you have changed, then load the page again."));
  page?.close?.();
  page = null;
  window.removeEventListener("hashchange", arrive);
  const input = h("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  replace(document.body, h(
    "form", {
      class: "login",
      submit: (event) => {
        event.preventDefault();
        token.set(input.value.trim());
        start();
      },
    },
    h("h1", {}, "Larder"),
    reason ? h("p", { role: "alert", class: "failure" }, verbatim(reason)) : null,
    field("Token", input, "It stays in this tab. Or open the link that “larder console” prints."),
    h("button", { type: "submit", class: "primary" }, "Log in")));
  input.focus();
}

function showConsole() {
  const name = identity.principal ?? (identity.user === undefined ? "" : `uid ${identity.user}`);
  replace(who, name ? verbatim(name) : null);
  const skip = (event) => {
    event.preventDefault();
    main.focus();
  };
  replace(
    document.body, h("a", { class: "skip", href: "#main", click: skip }, "Skip to the contents"),
    h("header", {},
      h("a", { class: "brand", href: address(["stores"]) }, "Larder"), storeMenu, tabs,
      h("div", { class: "tools" },
        who, themeMenu(), button("?", shortcutsDialog, { class: "plain", "aria-label": "Keyboard shortcuts" }),
        token.get() ? button("Log out", logOut, { class: "plain" }) : null)),
    h("div", { class: "columns" },
      h("aside", { "aria-label": "Stores" },
        h("h2", {}, "Stores"), storeList,
        may("admin") ? newStoreButton({ open, storesDidChange: loadStores }, "plain") : null),
      main),
    messageArea());
}

// Keys that work everywhere, unless something is being typed.
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "?") {
    shortcutsDialog();
  } else if (event.key === "/") {
    document.querySelector("[data-shortcut='/']")?.focus();
  } else if (/^[1-6]$/.test(event.key)) {
    tabs.children[Number(event.key) - 1]?.click();
  } else {
    return;
  }
  event.preventDefault();
});

// The browser asks before it loads another page, or this one again.
window.addEventListener("beforeunload", (event) => {
  if (page?.hasChanges || hasTouchedDialog()) event.preventDefault();
});
window.addEventListener("unhandledrejection", (event) => report(event.reason));
onUnauthorized(showLogin);
start();
