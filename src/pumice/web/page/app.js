// The page: which view is shown, by the address; what the header says; keys.

import { empty, h, replace, say } from "./dom.js";
import { evictionList } from "./evictions.js";
import { jobList, jobView } from "./jobs.js";
import { leave, Link, post } from "./link.js";
import { Moments, timeView } from "./moments.js";
import { nodeMap, nodeView } from "./nodes.js";
import { overview } from "./overview.js";
import { policy } from "./policy.js";
import { queueList, queueView } from "./queues.js";
import { Store } from "./store.js";
import { counted, tick, times } from "./words.js";

const VIEWS = {
  overview: ["Overview", overview, null],
  queues: ["Queues", queueList, queueView],
  jobs: ["Jobs", jobList, jobView],
  nodes: ["Nodes", nodeMap, nodeView],
  evictions: ["Evictions", evictionList, null],
  policy: ["Policy", policy, null],
  time: ["Time", (root, store) => timeView(root, store, moments), null],
};
const KEYS = { o: "overview", q: "queues", j: "jobs", n: "nodes", e: "evictions", p: "policy", t: "time" };

const element = (id) => document.getElementById(id);
const store = new Store();
const moments = new Moments(store, element("moment"));
let view = null;
let viewed = ""; // its name
let shown = "";

// -- views ---------------------------------------------------------------------------------------------------------

function parsed() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { name: name in VIEWS ? name : "overview", one: rest.join("/"), query: new URLSearchParams(query) };
}

function route() {
  if (!store.scene) return;
  const { name, one, query } = parsed();
  const main = element("main"), at = Number(query.get("at"));
  if (at && at !== store.past?.time) {
    moments.go(at).catch((problem) => replace(main, empty(`${problem.message}.`)));
    return; // it is shown once it is there
  }
  store.stay(location.hash);
  view?.close?.();
  replace(main);
  const [label, list, single] = VIEWS[name];
  viewed = name;
  view = one && single ? single(main, store, one) : list(main, store, one, query);
  document.title = `${one || label} – Pumice`;
  for (const each of element("views").children) {
    if (each.dataset.view === name) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  view.update(new Set(["queues", "jobs", "nodes", "facts", "evictions", "pulse"]));
  if (shown) {
    main.focus({ preventScroll: true });
    window.scrollTo(0, 0);
    say(document.title);
  }
  shown = location.hash;
}

function header(changed) {
  const scene = store.scene;
  document.body.dataset.version = scene.version;
  if (changed.has("facts")) {
    const { user, notes } = store.viewer;
    replace(element("notes"), [...notes, ...(scene.facts.notes || [])].map((note) => h("p", {}, note)));
    element("who").hidden = !user;
    element("who").textContent = user ? `Sign out ${user}` : "";
    element("source").textContent = scene.facts.source;
  }
  element("counts").textContent = `${counted(scene.jobs.size, "job")}, ${counted(scene.nodes.size, "node")}, ${counted(scene.pods, "pod")}`;
}

let moment = null;
store.listeners.add((changed) => {
  header(changed);
  const stays = moment === store.past;
  moment = store.past;
  if (view && (stays || (viewed === "time" && parsed().name === "time"))) view.update(changed);
  else route(); // what is asked about one moment is no answer about another
});

// -- header --------------------------------------------------------------------------------------------------------

replace(element("views"), Object.entries(VIEWS).map(([name, [label]]) => h("a", { href: `#/${name}`, "data-view": name }, label)));

const THEMES = ["system", "light", "dark"];
function theme(name) {
  document.documentElement.dataset.theme = name;
  element("theme").textContent = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" }[name];
}
const kept = (name, fallback) => {
  try {
    return localStorage.getItem(name) || fallback;
  } catch {
    return fallback;
  }
};
const keep = (name, value) => {
  try {
    localStorage.setItem(name, value);
  } catch {
    // A browser that keeps nothing starts afresh.
  }
};
theme(THEMES.includes(kept("theme", "system")) ? kept("theme", "system") : "system");
element("theme").addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  theme(next);
  keep("theme", next);
});

function setTimes(relative) {
  times.relative = relative;
  element("times").textContent = relative ? "Relative times" : "Absolute times";
  tick();
}
setTimes(kept("times", "relative") === "relative");
element("times").addEventListener("click", () => {
  setTimes(!times.relative);
  keep("times", times.relative ? "relative" : "absolute");
});
setInterval(() => {
  if (document.hidden) return;
  tick();
  moments.tick();
}, 1000);
element("who").addEventListener("click", async () => {
  await leave().catch(() => {});
  element("who").hidden = true;
  connection.end("You have signed out.");
});

// -- keys ----------------------------------------------------------------------------------------------------------

const closing = h("button", { type: "button" }, "Close");
replace(element("keys"), h("h2", { id: "keys-title" }, "Keys"), h("dl", {},
  ...[["/", "search the table"], ["g, then o q j n e p t", "overview, queues, jobs, nodes, evictions, policy, time"], ["arrows, Page, Home, End", "walk through rows or nodes"], ["Enter", "open what has the focus"], ["t", "times relative or absolute"], ["?", "this list"]]
    .flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)])), closing);
closing.addEventListener("click", () => element("keys").close());
element("help").addEventListener("click", () => element("keys").showModal());

let going = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (Date.now() - going < 1500 && event.key in KEYS) {
    location.hash = `#/${KEYS[event.key]}`;
    going = 0;
    event.preventDefault();
  } else if (event.key === "g") going = Date.now();
  else if (event.key === "/") {
    document.querySelector("[data-search]")?.focus();
    event.preventDefault();
  } else if (event.key === "?") element("keys").showModal();
  else if (event.key === "t") element("times").click();
});

// -- start ---------------------------------------------------------------------------------------------------------

function linkTold(state, text) {
  const place = element("link");
  if (place.textContent !== text) place.textContent = text;
  place.className = `link ${state}`;
  document.body.classList.toggle("stale", state === "lost");
  if (state === "refused") signIn(text);
}

// Whoever comes without the printed address may type its token.
function signIn(text) {
  view?.close?.();
  view = null;
  const token = h("input", { type: "password", autocomplete: "off", "aria-label": "Token", required: true });
  const told = h("p", { class: "problem", role: "alert" }, text);
  const form = h("form", { class: "card sign-in" }, h("h1", {}, "Sign in"), told, h("p", {}, h("label", {}, "Token ", token)), h("button", { type: "submit" }, "Sign in"),
    h("p", { class: "dim" }, location.protocol === "https:" ? ["A token that the API server of this cluster knows, such as ", h("code", {}, "kubectl create token ACCOUNT -n NAMESPACE"), " prints. You see what its account may list; the token itself is not kept."]
      : "The token stands in the address that was printed when the page was started."));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await post("/api/session", { token: token.value.trim() });
      await begin();
    } catch (problem) {
      told.textContent = problem.message;
    }
  });
  replace(element("main"), form);
  token.focus();
}

const connection = new Link(store, linkTold);

async function begin() {
  try {
    await connection.start();
  } catch (problem) {
    if (problem.status === 401) linkTold("refused", problem.message);
    else {
      linkTold("lost", "No connection");
      replace(element("main"), empty(`${problem.message}.`));
      connection.again("No connection, trying again", 3000);
    }
  }
}

async function start() {
  const given = /^#token=([\w-]+)(.*)$/.exec(location.hash);
  if (given) {
    history.replaceState(null, "", given[2] || "#/overview"); // it does not stay in the address, where others could see it
    try {
      await post("/api/session", { token: given[1] });
    } catch (problem) {
      return linkTold("refused", problem.message);
    }
  }
  return begin();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which view is shown, and nothing else
  element("main").focus();
});
addEventListener("hashchange", route);
start();
