// How routes are spread over Routers.

import { byId, count, element, flag, put, say, table, when } from "/view/parts.js";

const phases = { Ready: "good", Draining: "warn", Pending: "warn", Lost: "bad", Serving: "good", Leaving: "warn" };
const of = (n, most) => most ? count(n) + " of " + count(most) : count(n);
const load = (n, most) => most && n >= most ? flag(of(n, most), "warn") : of(n, most);

function bindings(list) {
  return element("span", {}, ...list.flatMap((b, i) => [i ? ", " : "", b.router + " ", flag(b.phase, phases[b.phase]), b.arrives ? " (new)" : ""]));
}

// since is how long the bindings of a route that moves have been as they are.
function since(list) {
  return when(list.map((b) => b.since).sort().at(-1).replace(/\.\d+/, ""));
}

// lineColumns are those of lists of routes, for table.
export const lineColumns = [
  ["Route", (r) => r.namespace + "/" + r.name],
  ["State", (r) => flag(r.state, { waits: "bad", moves: "warn", bound: "good" }[r.state])],
  ["Routers", (r) => bindings(r.bindings)],
  ["DNS name", (r) => r.dns || ""],
  ["Point a domain of your own to", (r) => r.target && r.target !== r.dns ? r.target : ""],
  ["Why", (r) => r.reason ? r.reason + ": " + r.message : ""],
];

const waitColumns = [lineColumns[0], ["Reason", (r) => flag(r.reason || "", "bad")], ["What to do", (r) => r.message || "it is looked at soon"],
  ["Attempts", (r) => count(r.failures), true], ["Next attempt", (r) => r.next ? when(r.next) : "when something changes"]];

const moveColumns = [lineColumns[0], lineColumns[2], ["Since", (r) => since(r.bindings)], lineColumns[5]];

function figures(b) {
  const known = (n) => b.counted ? count(n) : "–";
  const list = [
    ["Routers", Object.entries(b.phases).map(([phase, n]) => count(n) + " " + phase).join(", ") || "0"], ["Routes bound", known(b.bound)], ["Routes that wait", known(b.waiting)],
    ["Bindings on their way", known(b.moving)], ["Strategy", b.strategy || "–"], ["The scheduler that leads", b.leader || "–"],
  ];
  return list.map(([title, value]) => element("div", {}, element("dt", {}, title), element("dd", {}, value)));
}

function alarm(b) {
  const list = [];
  if (b.held) list.push("Nothing is moved: " + b.held + ".");
  if (b.invalid) list.push("The RouteScheduler cannot be used: " + b.invalid + ".");
  const reasons = Object.entries(b.reasons || {}).map(([reason, n]) => count(n) + " " + reason);
  if (reasons.length) list.push("Routes in trouble: " + reasons.join(", ") + ".");
  if (b.phases.Lost) list.push("Routers lost: " + count(b.phases.Lost) + ".");
  return list.join(" ") || "Nothing is wrong.";
}

// showBoard shows a board. name makes the name of a Router, nothing: as it is.
export function showBoard(b, name) {
  byId("shards-figures").replaceChildren(...figures(b));
  say("shards-alarm", alarm(b));
  put("shards-routers", element("div", {}, table("Routers, first those that somebody should look at", [
    ["Router", (r) => name ? name(r.name) : r.name === b.here ? r.name + " (this one)" : r.name],
    ["Phase", (r) => flag(r.phase, phases[r.phase])],
    ["Ready replicas", (r) => r.readyReplicas ? count(r.readyReplicas) : flag("0", "bad"), true],
    ["Routes", (r) => load(r.routes, r.capacity), true],
    ["Requests per second", (r) => load(r.requestsPerSecond, r.requestsCapacity), true],
    ["On their way", (r) => count(r.moving), true],
    ["Domain", (r) => r.domain || ""],
    ["Addresses", (r) => (r.addresses || []).join(", ") + (r.moreAddresses ? " and " + count(r.moreAddresses) + " more" : "")],
    ["Taints", (r) => (r.taints || []).join(", ")],
    ["Problems", (r) => r.problems ? flag(r.problems.join("; "), "bad") : ""],
  ], b.routers, "There are no Routers."), b.more ? element("p", {}, "and " + count(b.more) + " more") : ""));
  const elsewhere = element("p", { class: "faint" }, "Only the process of the scheduler that leads knows this: " +
    (b.leader ? "see the page on the admin port of " + b.leader + "." : "the holder of the lease turnout-scheduler. See the page on its admin port."));
  put("shards-waits", b.waits ? table("Routes that no Router has, the first of them by name", waitColumns, b.waits, "No route waits.") : elsewhere);
  put("shards-moves", b.moves ? table("Routes on their way from one Router to another, the first of them by name", moveColumns, b.moves, "Nothing moves.") : elsewhere.cloneNode(true));
}
