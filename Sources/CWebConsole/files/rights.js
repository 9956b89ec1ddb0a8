// What the user may do, as the server says. It decides what the pages offer; the server decides what happens.

const levels = ["nothing", "read", "write", "admin"];

let rights = [];

/// - all: The rights that the server has named.
export function setRights(all) {
  rights = all;
}

const onStore = (store) => rights.filter((right) => right.store === undefined || right.store === store);

/// Whether the user has a right to all of a store or, with a key, to the entries whose keys begin with it. Without a store:
/// to the server.
export function may(level, store, key = "") {
  return onStore(store).some((right) =>
    levels.indexOf(right.right) >= levels.indexOf(level) && key.startsWith(right.keyPrefix ?? ""));
}

/// What the keys begin with that the user may read; empty for all keys.
export function readablePrefix(store) {
  const some = onStore(store);
  return some.some((right) => right.keyPrefix === undefined) ? "" : some[0]?.keyPrefix ?? "";
}
