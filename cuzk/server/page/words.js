// Numbers as people read them, and elements made from plain values. Nothing here is ever parsed as HTML.

const $ = (selector, within = document) => within.querySelector(selector);

function element(tag, className = "", ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

// Writes only what changed: a screen reader is not told the same again, and a selection stays.
function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function attribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// Makes the children of a parent follow a list: the same key is the same element, moved and updated in place.
function follow(parent, items, keyOf, make, update) {
  const known = parent.known || (parent.known = new Map());
  const kept = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const node = known.get(key) || make(item);
    kept.set(key, node);
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
    update(node, item);
  }
  for (const [key, node] of known) if (!kept.has(key)) node.remove();
  parent.known = kept;
}

function threeDigits(value) {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${threeDigits(seconds)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  if (minutes < 60) return `${minutes} min ${String(Math.round(seconds) % 60).padStart(2, "0")} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${String(minutes % 60).padStart(2, "0")} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// Coarser, for ages that go on: no digit that changes faster than it is read.
function age(ms) {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  return seconds < 60 ? `${seconds} s` : duration(1000 * (seconds < 3600 ? seconds : 60 * Math.floor(seconds / 60)));
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  while (count >= 1024 && power < units.length - 1) { count /= 1024; power += 1; }
  return power ? `${threeDigits(count)} ${units[power]}` : `${count} B`;
}

function percent(part, whole) {
  return whole ? Math.min(100, Math.max(0, 100 * part / whole)) : 0;
}

function clockTime(date) {
  return date.toLocaleTimeString([], { hour12: false });
}

function many(count, one, more = `${one}s`) {
  return `${count} ${count === 1 ? one : more}`;
}
