// The page of the scheduler.

import { begin, byId, count, element, load, put, say, table } from "/view/parts.js";
import { lineColumns, showBoard } from "/view/shards.js";

const pageSize = 50;
const pause = 2000; // between two looks, in milliseconds
let offset = 0;

const router = (name) => element("a", { href: "#/routes/" + encodeURIComponent(name) }, name);

async function showRoutes() {
  const page = await load("/view/bindings?" + new URLSearchParams({ q: byId("q").value, router: byId("router").value.trim(), offset, limit: pageSize }));
  if (!page) return;
  put("list", table("Routes and the Routers that have them", lineColumns, page.routes, "No route matches."));
  const last = page.offset + page.routes.length;
  say("found", page.routes.length === 0 ? "No route matches." : "Routes " + count(page.offset + 1) + " to " + count(last) + " of " + count(page.total));
  byId("previous").disabled = page.offset === 0;
  byId("next").disabled = last >= page.total;
}

async function showShards() {
  const board = await load("/view/shards");
  if (!board) return;
  say("version", board.version);
  showBoard(board, board.waits ? router : undefined);
}

// look shows what is shown as it is now.
async function look() {
  const routes = !byId("routes").hidden;
  try {
    await (routes ? showRoutes() : showShards());
    say("connection", "live");
  } catch (e) {
    say(routes ? "found" : "shards-alarm", "Cannot load: " + e.message);
    say("connection", "no updates; trying again");
  }
}

// go shows what the address says: #/, #/routes, #/routes/ROUTER.
function go() {
  const [page, name] = location.hash.replace(/^#\/?/, "").split("/");
  const shown = page === "routes" ? "routes" : "shards";
  for (const id of ["shards", "routes"]) byId(id).hidden = id !== shown;
  for (const a of document.querySelectorAll("header nav a")) {
    if (a.dataset.page === shown) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  if (name) byId("router").value = decodeURIComponent(name);
  document.title = (shown === "routes" ? "Routes" : "Shards") + " · Turnout scheduler";
  begin();
  look();
  return shown;
}

let typed = 0;
for (const id of ["q", "router"]) {
  byId(id).addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => { offset = 0; look(); }, 200);
  });
}
byId("search").addEventListener("submit", (e) => { e.preventDefault(); offset = 0; look(); });
byId("previous").addEventListener("click", () => { offset = Math.max(0, offset - pageSize); look(); });
byId("next").addEventListener("click", () => { offset += pageSize; look(); });
document.querySelector(".skip").addEventListener("click", (e) => { e.preventDefault(); byId("main").focus(); });
addEventListener("hashchange", () => { offset = 0; byId(go() + "-title").focus(); });

async function follow() {
  if (!document.hidden) await look();
  setTimeout(follow, pause);
}

go();
setTimeout(follow, pause);
