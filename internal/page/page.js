"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const pageSize = 50;
  let offset = 0;
  let latest = null; // request whose answer is wanted: answers to older ones are dropped
  let shownRoute = "";

  // element makes one; texts are always text and never markup.
  function element(name, attributes, ...content) {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== undefined && value !== "") e.setAttribute(key, value);
    }
    e.append(...content.filter((c) => c !== undefined && c !== null));
    return e;
  }

  // table shows rows; a column is [title, value of a row, is a number]. The first one names the row.
  function table(caption, columns, rows, empty) {
    if (!rows || rows.length === 0) return element("p", { class: "faint" }, empty);
    const head = element("tr", {}, ...columns.map(([title, , number]) => element("th", { scope: "col", class: number ? "number" : "" }, title)));
    const body = rows.map((row) => element("tr", {}, ...columns.map(([, value, number], i) =>
      element(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : "", class: number ? "number" : "" }, value(row)))));
    const whole = element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body));
    return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, whole);
  }

  // put replaces what is in a place if it is another, and leaves the focus where it is.
  function put(id, content) {
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

  const count = (n) => Number(n || 0).toLocaleString("en");
  const bytes = (n) => {
    const units = ["B", "KiB", "MiB", "GiB"];
    let i = 0;
    for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
    return (i === 0 ? Math.round(n) : n.toFixed(1)) + " " + units[i];
  };
  const duration = (s) => !s ? "–" : s < 0.001 ? Math.round(s * 1e6) + " µs" : s < 1 ? (s * 1000).toFixed(s < 0.01 ? 1 : 0) + " ms" : s.toFixed(2) + " s";
  const when = (text) => element("time", { datetime: text }, text.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC"));
  const flag = (text, kind) => element("span", { class: kind }, text);
  const path = (namespace, name) => encodeURIComponent(namespace) + "/" + encodeURIComponent(name);
  const link = (namespace, name) => element("a", { href: "#/routes/" + path(namespace, name) }, namespace + "/" + name);

  function days(n) {
    if (n < 0) return flag("expired", "bad");
    return flag(n + (n === 1 ? " day" : " days"), n < 7 ? "bad" : n < 30 ? "warn" : "good");
  }

  function endpoints(s) {
    if (s.all === 0) return flag("none", "bad");
    const parts = [s.usable + " of " + s.all + " up"];
    if (s.down) parts.push(s.down + " down");
    if (s.ejected) parts.push(s.ejected + " ejected");
    if (s.idle) parts.push(s.idle + " idle");
    return flag(parts.join(", "), s.usable === 0 ? "bad" : s.down || s.ejected ? "warn" : "good");
  }

  const routeColumns = [
    ["Route", (r) => link(r.namespace, r.name)],
    ["Host and path", (r) => r.host + (r.path || "")],
    ["TLS", (r) => r.termination],
    ["State", (r) => r.admitted ? (r.notes ? flag("served, " + r.notes + " notes", "warn") : flag("served", "good")) : flag(r.reason || "waiting", "bad")],
    ["Per second", (r) => count(r.rate), true],
    ["Requests", (r) => count(r.requests), true],
    ["Errors", (r) => r.errors ? flag(count(r.errors), "warn") : "0", true],
    ["Mean", (r) => duration(r.meanSeconds), true],
    ["p99", (r) => duration(r.p99Seconds), true],
    ["Sessions", (r) => count(r.sessions), true],
    ["Queue", (r) => count(r.queued), true],
    ["Endpoints", (r) => endpoints(r.servers)],
  ];

  function showOverview(o) {
    const over = o.seconds ? "last " + Math.round(o.seconds) + " s" : "since the start";
    byId("version").textContent = o.version || "";
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
    if (byId("alarm").textContent !== alarm) byId("alarm").textContent = alarm;
    put("problems", table("What is wrong now, the first " + o.problems.length, [
      ["Kind", (p) => flag(p.kind, p.kind === "note" ? "warn" : "bad")],
      ["What", (p) => p.text],
      ["Where", (p) => {
        const [namespace, name, more] = (p.route || "").split(/[/,]/);
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

  // load gets JSON for what is shown now; an answer for what was shown before is dropped.
  async function load(url) {
    const mine = latest = {};
    const response = await fetch(url, { headers: { Accept: "application/json" } });
    if (mine !== latest) return null;
    if (!response.ok) throw new Error((await response.text()).trim() || "status " + response.status);
    const value = await response.json();
    return mine === latest ? value : null;
  }

  async function showRoutes() {
    const query = new URLSearchParams({ q: byId("q").value, order: byId("order").value, offset, limit: pageSize });
    try {
      const page = await load("/view/routes?" + query);
      if (!page) return;
      put("list", page.total ? table("Routes", routeColumns, page.routes, "") : unknown(query.get("q").trim()));
      const last = page.offset + page.routes.length;
      const found = page.total === 0 ? "No route matches." : "Routes " + count(page.offset + 1) + " to " + count(last) + " of " + count(page.total);
      if (byId("found").textContent !== found) byId("found").textContent = found;
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

  function pairs(caption, list) {
    return table(caption, [["Name", (p) => p[0]], ["Value", (p) => p[1]]], list.filter((p) => p[1] !== undefined && p[1] !== ""), "Nothing is known.");
  }

  function routeBody(r) {
    const report = r.report;
    const part = (title, ...content) => element("section", { "aria-label": title }, element("h2", {}, title), ...content);
    const body = element("div", {});
    const state = r.admitted ? flag("served", "good") : flag("not served: " + (r.reason || "waiting"), "bad");
    body.append(element("p", {}, state, report.message ? " " + report.message : ""));
    if (report.notes && report.notes.length) body.append(part("Notes", element("ul", {}, ...report.notes.map((n) => element("li", {}, n)))));
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
    body.append(part("Certificate", c ? pairs("What clients see", [["From", c.source], ["Subject", c.subject], ["Issuer", c.issuer], ["Serial", c.serial],
      ["Names", (c.names || []).join(", ")], ["Not before", when(c.notBefore)], ["Not after", when(c.notAfter)], ["Left", days(c.daysLeft)],
      ["Warnings", (c.warnings || []).join("; ")]]) : element("p", { class: "faint" }, "Clients see no certificate of the router.")));
    const url = (r.termination === "http" ? "http://" : "https://") + r.host + (r.path || "/");
    if (r.host) body.append(element("p", {}, element("a", { href: "#/explain/" + encodeURIComponent(url) }, "Explain a request for " + url)));
    const origin = [report.ingress && "Ingress " + report.ingress, report.origin].filter(Boolean).join(", ");
    if (origin) body.append(element("p", { class: "faint" }, "From " + origin));
    return body;
  }

  async function showRoute(name) {
    try {
      const r = await load("/view/routes/" + name);
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

  async function ask() {
    const query = new URLSearchParams({ url: byId("url").value, o: "text" });
    if (byId("client").value) query.set("client", byId("client").value);
    const mine = latest = {};
    byId("asked").textContent = "asking";
    try {
      const response = await fetch("/explain?" + query);
      const text = await response.text();
      if (mine !== latest) return;
      byId("explanation").hidden = false;
      byId("explanation").textContent = text;
      byId("asked").textContent = response.ok ? "Explained." : "This cannot be explained.";
    } catch (e) {
      byId("asked").textContent = "Cannot ask: " + e.message;
    }
  }

  // go shows what the address says: #/, #/routes, #/routes/NAMESPACE/NAME, #/explain, #/explain/URL, #/settings.
  function go() {
    const [page, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
    const detail = page === "routes" && rest.length === 2;
    const shown = detail ? "route" : ["routes", "explain", "settings"].includes(page) ? page : "overview";
    for (const id of ["overview", "routes", "route", "explain", "settings"]) byId(id).hidden = id !== shown;
    for (const a of document.querySelectorAll("header nav a")) {
      if (a.dataset.page === (detail ? "routes" : shown)) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    }
    latest = {};
    shownRoute = detail ? rest.join("/") : "";
    let title = { overview: "Overview", routes: "Routes", explain: "Explain", settings: "Settings" }[shown];
    if (detail) {
      title = rest.map(decodeURIComponent).join("/");
      byId("route-title").textContent = title;
      byId("route-body").replaceChildren();
      showRoute(shownRoute);
    }
    document.title = title + " · Turnout";
    if (shown === "routes") showRoutes();
    if (shown === "settings") showSettings();
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

  function say(text) {
    if (byId("connection").textContent !== text) byId("connection").textContent = text;
  }

  // listen shows each snapshot. The server ends a stream after a while, and a browser comes back by itself; it does not when there was no place for it.
  function listen() {
    const events = new EventSource("/view/events");
    events.onmessage = (e) => {
      showOverview(JSON.parse(e.data));
      say("live");
      if (!byId("routes").hidden) showRoutes();
      if (shownRoute) showRoute(shownRoute);
    };
    let gone = 0;
    events.onerror = () => {
      if (events.readyState === EventSource.CLOSED) {
        say("no updates; trying again");
        setTimeout(listen, 5000);
        return;
      }
      clearTimeout(gone);
      gone = setTimeout(() => { if (events.readyState !== EventSource.OPEN) say("no connection to the router"); }, 3000);
    };
  }

  go();
  listen();
})();
