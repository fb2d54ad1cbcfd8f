// What all pages are made of.

export const byId = (id) => document.getElementById(id);

// element makes one; texts are always text and never markup.
export function element(name, attributes, ...content) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== "") e.setAttribute(key, value);
  }
  e.append(...content.filter((c) => c !== undefined && c !== null));
  return e;
}

// table shows rows; a column is [title, value of a row, is a number]. The first one names the row.
export function table(caption, columns, rows, empty) {
  if (!rows || rows.length === 0) return element("p", { class: "faint" }, empty);
  const head = element("tr", {}, ...columns.map(([title, , number]) => element("th", { scope: "col", class: number ? "number" : "" }, title)));
  const body = rows.map((row) => element("tr", {}, ...columns.map(([, value, number], i) =>
    element(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : "", class: number ? "number" : "" }, value(row)))));
  const whole = element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, whole);
}

// put replaces what is in a place if it is another, and leaves the focus where it is.
export function put(id, content) {
  const place = byId(id);
  const old = place.firstElementChild;
  if (old && place.childElementCount === 1 && old.isEqualNode(content)) return;
  const active = document.activeElement;
  let refind = null;
  if (active && active !== place && place.contains(active)) {
    const href = active.getAttribute("href");
    refind = href ? (c) => [...c.querySelectorAll("a")].find((a) => a.getAttribute("href") === href) : (c) => c.matches("[tabindex]") ? c : c.querySelector("[tabindex]");
  }
  const scrolled = old ? old.scrollLeft : 0;
  place.replaceChildren(content);
  content.scrollLeft = scrolled;
  const again = refind && refind(content);
  if (again) again.focus({ preventScroll: true });
}

export const count = (n) => Number(n || 0).toLocaleString("en");
export const bytes = (n) => {
  const units = ["B", "KiB", "MiB", "GiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i === 0 ? Math.round(n) : n.toFixed(1)) + " " + units[i];
};
export const duration = (s) => !s ? "–" : s < 0.001 ? Math.round(s * 1e6) + " µs" : s < 1 ? (s * 1000).toFixed(s < 0.01 ? 1 : 0) + " ms" : s.toFixed(2) + " s";
export const when = (text) => element("time", { datetime: text }, text.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC"));
export const flag = (text, kind) => element("span", { class: kind }, text);
export const path = (namespace, name) => encodeURIComponent(namespace) + "/" + encodeURIComponent(name);
// link leads to what there is to know of a route, or of another object that stands among routes.
export function link(namespace, name, kind) {
  if (!kind || kind === "Route") return element("a", { href: "#/routes/" + path(namespace, name) }, namespace + "/" + name);
  return element("a", { href: "#/routes/" + path(namespace, name) + "/" + encodeURIComponent(kind) }, kind + " " + namespace + "/" + name);
}
// linkTo is link for an object that is called "KIND NAMESPACE/NAME"; undefined for anything else.
export function linkTo(object) {
  const found = /^((?:HTTP|GRPC|TLS|TCP|UDP)Route|Gateway|ListenerSet) ([^/ ]+)\/([^/ ]+)$/.exec(object || "");
  return found ? link(found[2], found[3], found[1]) : undefined;
}

export function days(n) {
  if (n < 0) return flag("expired", "bad");
  return flag(n + (n === 1 ? " day" : " days"), n < 7 ? "bad" : n < 30 ? "warn" : "good");
}

export function pairs(caption, list) {
  return table(caption, [["Name", (p) => p[0]], ["Value", (p) => p[1]]], list.filter((p) => p[1] !== undefined && p[1] !== ""), "Nothing is known.");
}

// say shows a text where it is read out, if it is another one.
export function say(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

let latest = null; // request whose answer is wanted: answers to older ones are dropped

// begin forgets what was asked before.
export function begin() {
  latest = {};
  return latest;
}

export const wanted = (mine) => mine === latest;

// load gets JSON for what is shown now; an answer for what was shown before is dropped.
export async function load(url) {
  const mine = begin();
  const response = await fetch(url, { headers: { Accept: "application/json" } });
  if (!wanted(mine)) return null;
  if (!response.ok) throw new Error((await response.text()).trim() || "status " + response.status);
  const value = await response.json();
  return wanted(mine) ? value : null;
}
