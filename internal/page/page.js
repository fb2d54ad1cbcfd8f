import { begin, bytes, byId, count, days, duration, element, flag, link, linkTo, load, pairs, put, say, table, wanted, when } from "/view/parts.js";
import { showBoard } from "/view/shards.js";

const pageSize = 50;
let offset = 0;
let shownRoute = "";

function endpoints(s) {
  if (s.all === 0) return flag("none", "bad");
  const parts = [s.usable + " of " + s.all + " up"];
  if (s.down) parts.push(s.down + " down");
  if (s.ejected) parts.push(s.ejected + " ejected");
  if (s.idle) parts.push(s.idle + " idle");
  return flag(parts.join(", "), s.usable === 0 ? "bad" : s.down || s.ejected ? "warn" : "good");
}

const routeColumns = [
  ["Route", (r) => link(r.namespace, r.name, r.kind)],
  ["Host and path", (r) => r.host + (r.path || "") + (r.hosts ? " and " + (r.hosts - 1) + " more" : "")],
  ["TLS", (r) => r.termination],
  ["State", (r) => r.admitted ? (r.notes ? flag("served, " + r.notes + " notes", "warn") : flag("served", "good")) : flag(r.reason || "waiting", "bad")],
  ["Per second", (r) => count(r.rate), true],
  ["Requests", (r) => count(r.requests), true],
  ["Errors", (r) => r.errors ? flag(count(r.errors), "warn") : "0", true],
  ["Mean", (r) => duration(r.meanSeconds), true],
  ["p99", (r) => duration(r.p99Seconds), true],
  ["Sessions", (r) => count(r.sessions), true],
  ["Queue", (r) => count(r.queued), true],
  ["Endpoints", (r) => ["Gateway", "ListenerSet"].includes(r.kind) ? "" : endpoints(r.servers)],
];

function showOverview(o) {
  const over = o.seconds ? "last " + Math.round(o.seconds) + " s" : "since the start";
  byId("version").textContent = o.version || "";
  byId("shards-link").hidden = !o.router;
  const figures = [
    ["Requests per second", o.seconds ? count(o.traffic.requestsPerSecond) : "–"],
    ["Failed per second", o.seconds ? count(o.traffic.failedPerSecond) : "–"],
    ["p50, " + over, duration(o.latency.p50Seconds)],
    ["p99, " + over, duration(o.latency.p99Seconds)],
    ["In", bytes(o.traffic.bytesInPerSecond) + "/s"],
    ["Out", bytes(o.traffic.bytesOutPerSecond) + "/s"],
    ["Running", count(o.traffic.running)],
    ["Connections", count(o.traffic.connections)],
    ["Requests since the start", count(o.traffic.requests)],
    ["Routes", count(o.routes)],
    ["Rejected routes", count(o.rejected)],
    ["Table", "no. " + o.generation],
  ];
  byId("figures").replaceChildren(...figures.map(([title, value]) => element("div", {}, element("dt", {}, title), element("dd", {}, value))));
  const wrong = Object.entries(o.problemCounts).filter(([, n]) => n > 0).map(([kind, n]) => n + " " + kind);
  const alarm = wrong.length ? "Problems: " + wrong.join(", ") : "No problems.";
  say("alarm", alarm);
  put("problems", table("What is wrong now, the first " + o.problems.length, [
    ["Kind", (p) => flag(p.kind, p.kind === "note" ? "warn" : "bad")],
    ["What", (p) => p.text],
    ["Where", (p) => {
      const [namespace, name, more] = (p.route || "").split(/[/,]/);
      const object = p.file ? undefined : linkTo(p.object);
      if (object) return object;
      const at = [p.service, p.server, p.file, p.object].filter(Boolean).join(" ");
      return name ? element("span", {}, link(namespace, name), more === undefined ? "" : ", …", at ? " " + at : "") : at;
    }],
    ["Reason", (p) => p.reason || ""],
    ["Since", (p) => when(p.since)],
  ], o.problems, "There are no problems."));
  put("reasons", table("How requests failed", [
    ["Reason", (r) => r.reason], ["Recent (" + over + ")", (r) => count(r.recent), true], ["Since the start", (r) => count(r.total), true],
  ], o.reasons, "No request has failed."));
  put("servers", table("Endpoints of all routes", [
    ["State", (r) => r[0]], ["Endpoints", (r) => r[2] && r[1] ? flag(count(r[1]), r[2]) : count(r[1]), true],
  ], [["all", o.servers.all], ["may be chosen", o.servers.usable, "good"], ["down: checks fail", o.servers.down, "bad"],
    ["ejected: requests failed", o.servers.ejected, "bad"], ["idle: weight 0", o.servers.idle]], ""));
  put("top", table("Routes with the most requests", routeColumns, o.top, "No route has had a request."));
  put("certificates", table("Certificates of routes that end first", [
    ["Route", (c) => link(c.namespace, c.name)], ["Host", (c) => c.host], ["Ends", (c) => when(c.notAfter)], ["Left", (c) => days(c.daysLeft)],
  ], o.certificates, "No route has a certificate of its own."));
  put("changes", table("What was changed, the latest first", [
    ["Live", (c) => when(c.live)], ["Table", (c) => count(c.generation), true],
    ["What", (c) => element("span", {}, ...c.changed.flatMap((i) => [i.what + " ", i.object.includes("/") ? link(...i.object.split("/")) : i.object,
      i.by ? " by " + i.by : "", element("br", {})]), c.more ? "and " + count(c.more) + " more" : "")],
  ], o.changes.slice(0, 20), "The table has not changed."));
}

async function showRoutes() {
  const query = new URLSearchParams({ q: byId("q").value, order: byId("order").value, offset, limit: pageSize });
  try {
    const page = await load("/view/routes?" + query);
    if (!page) return;
    put("list", page.total ? table("Routes", routeColumns, page.routes, "") : unknown(query.get("q").trim()));
    const last = page.offset + page.routes.length;
    const found = page.total === 0 ? "No route matches." : "Routes " + count(page.offset + 1) + " to " + count(last) + " of " + count(page.total);
    say("found", found);
    byId("previous").disabled = page.offset === 0;
    byId("next").disabled = last >= page.total;
  } catch (e) {
    byId("found").textContent = "Cannot load routes: " + e.message;
  }
}

// unknown says where a route may be that is not in the list: only those are that the router selects.
function unknown(text) {
  const place = text.split(/\s+/).find((word) => /^https?:\/\/./.test(word) || /^[^/]+\.[^/]/.test(word));
  if (!place) return element("p", {}, text ? "Routes of namespaces and with labels that this router does not select are not in this list. Search for the host to find out." : "There are no routes.");
  const url = place.includes("://") ? place : "http://" + place;
  return element("p", {}, "It may be a route that this router does not select. ", element("a", { href: "#/explain/" + encodeURIComponent(url) }, "Explain a request for " + url));
}

// gatewayParts is what an object of the Gateway API has besides.
function gatewayParts(r, part) {
  const g = r.gateway;
  const parts = [part(g.kind, pairs("As it is written, and where it is", [["Listeners", (g.listeners || []).join("; ")], ["Attached to", (g.parents || []).join(", ")],
    ["Host names", (g.hosts || []).join(", ")], ["Addresses", (g.addresses || []).join(", ")]]))];
  parts.push(part("Status", table("Conditions, as this router says them", [
    ["Condition", (c) => c.type], ["Of", (c) => c.of || ""], ["Status", (c) => c.status], ["Reason", (c) => c.reason], ["Message", (c) => c.message],
  ], g.conditions, "Nothing is said of it.")));
  if (r.rules) {
    parts.push(part("Rules", table("What is served, by listener and host name", [
      ["Listener", (x) => x.listener], ["Host", (x) => x.host], ["Takes", (x) => (x.asks || ["everything"]).join(", ")], ["Backends", (x) => (x.backends || []).join(", ")],
      ["Requests", (x) => count(x.requests), true], ["Errors", (x) => count(x.errors), true],
    ], r.rules, ""), r.moreRules ? element("p", {}, "and " + count(r.moreRules) + " more") : ""));
  }
  return parts;
}

function routeBody(r) {
  const report = r.report;
  const part = (title, ...content) => element("section", { "aria-label": title }, element("h2", {}, title), ...content);
  const body = element("div", {});
  const state = r.admitted ? flag("served", "good") : flag("not served: " + (r.reason || "waiting"), "bad");
  body.append(element("p", {}, state, report.message ? " " + report.message : ""));
  if (r.gateway) body.append(...gatewayParts(r, part));
  if (report.notes && report.notes.length) body.append(part("Notes", element("ul", {}, ...report.notes.map((n) => element("li", {}, n)))));
  const b = report.shard;
  if (b) {
    body.append(part("Shard", pairs("How the route is found", [
      ["Router", b.leaving ? b.router + ", which it leaves: another one serves it from now on" : b.router], ["DNS name", b.dns],
      ["Point a domain of your own to (CNAME)", b.target],
    ])));
  }
  body.append(part("Traffic", pairs("Since the route is there", [
    ["Per second", count(r.rate)], ["Requests", count(r.requests)], ["Errors", count(r.errors)], ["Ended without an attempt", count(r.unserved)],
    ["Retries", count(r.retries)], ["Sessions", count(r.sessions)], ["Queue", count(r.queued)], ["Mean", duration(r.meanSeconds)], ["p99", duration(r.p99Seconds)],
    ...Object.entries(r.answers || {}).map(([c, n]) => ["Answers " + c, count(n)]),
  ])));
  body.append(part("Endpoints", table("Endpoints" + (r.balance ? ", chosen by " + r.balance : ""), [
    ["Address", (s) => s.address], ["Pod", (s) => s.pod || ""], ["Service", (s) => s.service],
    ["State", (s) => flag(s.state, { up: "good", idle: "faint" }[s.state] || "bad")], ["Check", (s) => s.check === "fails" ? flag("fails", "bad") : s.check],
    ["Ejected", (s) => s.ejected ? flag("yes", "bad") : "no"], ["Weight", (s) => s.weight + " (" + s.share + " %)", true],
    ["Sessions", (s) => count(s.sessions), true], ["Requests", (s) => count(s.requests), true], ["5xx", (s) => count(s.serverErrors), true],
    ["No connection", (s) => count(s.failures), true], ["Broken answers", (s) => count(s.errors), true], ["Mean", (s) => duration(s.meanSeconds), true],
  ], r.endpoints, "The route has no endpoints."), r.more ? element("p", {}, "and " + count(r.more) + " more") : ""));
  if (report.check) {
    const c = report.check;
    body.append(part("Health checks", pairs("How endpoints are checked", [["Kind", c.kind], ["Running", c.running ? "yes" : "no: fewer than two endpoints could be chosen"],
      ["Interval", c.interval], ["Path", c.path], ["Host", c.host], ["Statuses", c.statuses], ["Down", (c.down || []).join(", ")]])));
  }
  body.append(part("Settings", table("Settings in effect, and what decided so", [["Setting", (s) => s.name], ["Value", (s) => s.value], ["From", (s) => s.from]],
    report.settings, "The route is not served.")));
  const c = report.certificate;
  if (!r.gateway) body.append(part("Certificate", c ? pairs("What clients see", [["From", c.source], ["Subject", c.subject], ["Issuer", c.issuer], ["Serial", c.serial],
    ["Names", (c.names || []).join(", ")], ["Not before", when(c.notBefore)], ["Not after", when(c.notAfter)], ["Left", days(c.daysLeft)],
    ["Warnings", (c.warnings || []).join("; ")]]) : element("p", { class: "faint" }, "Clients see no certificate of the router.")));
  if (r.gateway) {
    const origin = report.origin;
    if (origin) body.append(element("p", { class: "faint" }, "From " + origin));
    return body;
  }
  const url = (r.termination === "http" ? "http://" : "https://") + r.host + (r.path || "/");
  if (r.host) body.append(element("p", {}, element("a", { href: "#/explain/" + encodeURIComponent(url) }, "Explain a request for " + url)));
  const origin = [report.ingress && "Ingress " + report.ingress, report.origin].filter(Boolean).join(", ");
  if (origin) body.append(element("p", { class: "faint" }, "From " + origin));
  return body;
}

async function showRoute(name) {
  try {
    const [namespace, route, kind] = name.split("/");
    const r = await load("/view/routes/" + namespace + "/" + route + (kind ? "?kind=" + kind : ""));
    if (r) put("route-body", routeBody(r));
  } catch (e) {
    put("route-body", element("p", { class: "bad" }, "Cannot load the route: " + e.message));
  }
}

async function showSettings() {
  try {
    const list = await load("/view/settings");
    if (!list) return;
    put("settings-body", table("Options of the router, and what decided about them", [
      ["Option", (s) => "--" + s.flag], ["Variable", (s) => s.env || ""], ["Value", (s) => s.value], ["From", (s) => s.from === "default" ? flag("default", "faint") : s.from], ["About", (s) => s.group || ""],
    ], list, "Nothing is known."));
  } catch (e) {
    put("settings-body", element("p", { class: "bad" }, "Cannot load settings: " + e.message));
  }
}

async function showShards() {
  try {
    const board = await load("/view/shards");
    if (board) showBoard(board);
  } catch (e) {
    say("shards-alarm", "Cannot load shards: " + e.message);
  }
}

async function ask() {
  const query = new URLSearchParams({ url: byId("url").value, o: "text" });
  if (byId("client").value) query.set("client", byId("client").value);
  const mine = begin();
  byId("asked").textContent = "asking";
  try {
    const response = await fetch("/explain?" + query);
    const text = await response.text();
    if (!wanted(mine)) return;
    byId("explanation").hidden = false;
    byId("explanation").textContent = text;
    byId("asked").textContent = response.ok ? "Explained." : "This cannot be explained.";
  } catch (e) {
    byId("asked").textContent = "Cannot ask: " + e.message;
  }
}

// go shows what the address says: #/, #/routes, #/routes/NAMESPACE/NAME, #/routes/NAMESPACE/NAME/KIND, #/explain, #/explain/URL, #/settings, #/shards.
function go() {
  const [page, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const detail = page === "routes" && (rest.length === 2 || rest.length === 3);
  const shown = detail ? "route" : ["routes", "explain", "settings", "shards"].includes(page) ? page : "overview";
  for (const id of ["overview", "routes", "route", "explain", "settings", "shards"]) byId(id).hidden = id !== shown;
  for (const a of document.querySelectorAll("header nav a")) {
    if (a.dataset.page === (detail ? "routes" : shown)) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  begin();
  shownRoute = detail ? rest.join("/") : "";
  let title = { overview: "Overview", routes: "Routes", explain: "Explain", settings: "Settings", shards: "Shards" }[shown];
  if (detail) {
    const [namespace, name, kind] = rest.map(decodeURIComponent);
    title = (kind ? kind + " " : "") + namespace + "/" + name;
    byId("route-title").textContent = title;
    byId("route-body").replaceChildren();
    showRoute(shownRoute);
  }
  document.title = title + " · Turnout";
  if (shown === "routes") showRoutes();
  if (shown === "settings") showSettings();
  if (shown === "shards") showShards();
  if (shown === "explain" && rest.length) {
    byId("url").value = decodeURIComponent(rest.join("/"));
    ask();
  }
  return shown;
}

let typed = 0;
byId("q").addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(() => { offset = 0; showRoutes(); }, 200);
});
byId("order").addEventListener("change", () => { offset = 0; showRoutes(); });
byId("search").addEventListener("submit", (e) => { e.preventDefault(); offset = 0; showRoutes(); });
byId("previous").addEventListener("click", () => { offset = Math.max(0, offset - pageSize); showRoutes(); });
byId("next").addEventListener("click", () => { offset += pageSize; showRoutes(); });
byId("ask").addEventListener("submit", (e) => { e.preventDefault(); ask(); });
document.querySelector(".skip").addEventListener("click", (e) => { e.preventDefault(); byId("main").focus(); });
addEventListener("hashchange", () => { offset = 0; byId(go() + "-title").focus(); });

// listen shows each snapshot. The server ends a stream after a while, and a browser comes back by itself; it does not when there was no place for it.
function listen() {
  const events = new EventSource("/view/events");
  events.onmessage = (e) => {
    showOverview(JSON.parse(e.data));
    say("connection", "live");
    if (!byId("routes").hidden) showRoutes();
    if (!byId("shards").hidden) showShards();
    if (shownRoute) showRoute(shownRoute);
  };
  let gone = 0;
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) {
      say("connection", "no updates; trying again");
      setTimeout(listen, 5000);
      return;
    }
    clearTimeout(gone);
    gone = setTimeout(() => { if (events.readyState !== EventSource.OPEN) say("connection", "no connection to the router"); }, 3000);
  };
}

go();
listen();
