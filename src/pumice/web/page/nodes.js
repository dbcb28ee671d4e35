// The nodes as a map, by hyper-node, zone or pool, coloured by how much of one resource is in use; as a table; and one node with who is on it.

import { step } from "./charts.js";
import { card, copyButton, csvButton, empty, h, jobLink, link, place, pngButton, replace, s } from "./dom.js";
import { ask } from "./link.js";
import { title } from "./queues.js";
import { simple, Table } from "./table.js";
import { whatIf } from "./whatif.js";
import { amount, amounts, counted, percent, phase, resources, short, time } from "./words.js";

const GROUPS = { hyper: "hyper-node", zone: "zone", pool: "pool", none: "nothing" };
const TILE = ".node[data-focus]";
const FEW = 150, MANY = 1000, PIECE = 240;

// Of thousands, addresses alone would take a while. A span takes the focus once somebody walks there.
const SMALL = h("span", { role: "link" }), LARGE = h("a", { tabindex: "-1" });

const choice = (label, options, value, changed) => {
  const made = h("select", { "aria-label": label }, Object.entries(options).map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  made.addEventListener("change", () => changed(made.value));
  return h("label", { class: "choice" }, label, " ", made);
};

// Rows of tiles that a browser lays out only when they come into sight.
const pieces = (nodes) => Array.from({ length: Math.ceil(nodes.length / PIECE) }, (_, index) => nodes.slice(index * PIECE, (index + 1) * PIECE));

const free = (node, name) => Math.floor(((node.allocatable[name] || 0) - (node.used[name] || 0)) / 1000);

// Many nodes have the same in use of the same.
const uses = new Map();
const use = (name, used, whole) => {
  const key = `${name} ${used} ${whole}`;
  let text = uses.get(key);
  if (text === undefined) {
    if (uses.size > 5000) uses.clear();
    text = whole ? `${amount(name, used)} of ${amount(name, whole)} ${short(name)} in use` : `offers no ${short(name)}`;
    uses.set(key, text);
  }
  return text;
};

const words = (node, name) =>
  `${node.name}: ${use(name, node.used[name] || 0, node.allocatable[name] || 0)}, ${counted(node.pods, "pod")}${node.state ? `, ${node.state}` : ""}`;

export function nodeMap(root, store, _name, query) {
  let by = query.get("by") || "", chosen = by !== "", name = query.get("resource") || "", form = query.get("as") || "map";
  const tools = h("div", { class: "bar-above" });
  const map = h("div", { class: "map" });
  const note = h("p", { class: "legend" });
  const tiles = new Map();
  let layout = "", table = null, few = true;

  const address = () => store.stay(`#/nodes?${new URLSearchParams({ by, resource: name, as: form })}`);
  const group = (node, scene) => ({ hyper: scene.facts.hyperNodes?.[node.name], zone: node.zone, pool: node.pool, none: "all nodes" })[by] || "none";

  const columns = () => [
    { name: "node", label: "Node", value: (row) => row.name, cell: (row) => link(place("nodes", row.name), row.name, { class: "name", tabindex: "-1" }), wide: true },
    { name: "state", label: "State", value: (row) => row.state || "Ready", cell: (row) => (row.state ? h("span", { class: "chip bad" }, row.state) : "Ready") },
    ...resources(store.scene.total).map((each) => ({ name: each, label: `${short(each)} in use`, numeric: true, value: (row) => (row.allocatable[each] ? (row.used[each] || 0) / row.allocatable[each] : -1), plain: (row) => amount(each, row.used[each] || 0),
      cell: (row) => (row.allocatable[each] ? `${amount(each, row.used[each] || 0)} of ${amount(each, row.allocatable[each])}` : "–") })),
    { name: "pods", label: "Pods", value: (row) => row.pods, cell: (row) => row.pods, numeric: true },
    { name: "zone", label: "Zone", value: (row) => row.zone, cell: (row) => row.zone, narrow: false },
    { name: "pool", label: "Pool", value: (row) => row.pool, cell: (row) => row.pool, narrow: false },
  ];

  function paint(tile, node) {
    const used = step(node.used[name] || 0, node.allocatable[name] || 0);
    tile.className = `node step${used < 0 ? "-none" : used}${node.state ? " down" : ""}`;
    tile.setAttribute("aria-label", words(node, name));
    const number = name.includes("/") && node.allocatable[name] ? String(free(node, name)) : "";
    if (!few) tile.textContent = number;
    else replace(tile, h("b", {}, number ? `${number} free` : percent(node.used[name] || 0, node.allocatable[name] || 0)), h("span", {}, node.name));
  }

  function build(scene) {
    tiles.clear();
    table?.close();
    table = null;
    const named = resources(scene.total);
    if (!named.includes(name)) name = named.find((each) => each.includes("/")) || named[0] || "cpu";
    if (!chosen) by = Object.keys(scene.facts.hyperNodes || {}).length ? "hyper" : [...scene.nodes.values()].some((node) => node.zone) ? "zone" : "pool";
    replace(tools, choice("Colour by", Object.fromEntries(named.map((each) => [each, each])), name, (value) => change(() => (name = value))),
      choice("Group by", GROUPS, by, (value) => change(() => ((by = value), (chosen = true)))), choice("Show", { map: "a map", table: "a table" }, form, (value) => change(() => (form = value))),
      form === "map" ? pngButton("nodes", () => [["", drawn(scene)]]) : null);
    if (!scene.nodes.size) return replace(map, empty("There are no nodes. ", h("code", {}, "kubectl get nodes"), " shows what the API server knows."));
    if (form === "table") {
      table = new Table({ name: "nodes", label: "nodes", columns: columns(), order: name, descending: true, text: (row) => `${row.name} ${row.state || "ready"} ${row.zone} ${row.pool}`, open: (key) => (location.hash = place("nodes", key)) });
      replace(map, table.element);
      return table.update(scene.nodes);
    }
    few = scene.nodes.size <= FEW;
    const groups = grouped(scene), many = scene.nodes.size > MANY;
    replace(map, groups.map(([label, nodes]) => h("section", { class: "group" }, h("h2", { class: "group-title" }, label, h("span", { class: "dim" }, ` ${summary(nodes)}`)),
      h("div", { class: few ? "tiles-named" : many ? "tiles-small" : "tiles-large" }, pieces(nodes).map((piece) => h("div", { class: "piece" }, piece.map((node) => {
        const tile = (many ? SMALL : LARGE).cloneNode(false);
        if (!many) tile.href = place("nodes", node.name);
        tile.dataset.focus = node.name;
        if (!tiles.size) tile.tabIndex = 0;
        paint(tile, node);
        tiles.set(node.name, [tile, node]);
        return tile;
      })))))));
  }

  const summary = (nodes) => {
    const used = nodes.reduce((sum, node) => sum + (node.used[name] || 0), 0), whole = nodes.reduce((sum, node) => sum + (node.allocatable[name] || 0), 0);
    return `${counted(nodes.length, "node")}, ${percent(used, whole)} of ${amount(name, whole)} ${short(name)} in use`;
  };

  function grouped(scene) {
    const groups = new Map();
    for (const node of [...scene.nodes.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const label = group(node, scene);
      if (!groups.has(label)) groups.set(label, []);
      groups.get(label).push(node);
    }
    return [...groups].sort((a, b) => (a[0] < b[0] ? -1 : 1));
  }

  function drawn(scene) {
    const size = 20, across = 40, children = [];
    let y = 0;
    for (const [label, nodes] of grouped(scene)) {
      y += 20;
      children.push(s("text", { x: 4, y: y - 6, "font-size": 12, "font-family": "sans-serif", fill: getComputedStyle(document.body).color }, `${label} ${summary(nodes)}`));
      nodes.forEach((node, index) => {
        const tile = tiles.get(node.name)?.[0];
        children.push(s("rect", { x: 4 + (index % across) * size, y: y + Math.floor(index / across) * size, width: size - 2, height: size - 2, fill: tile ? getComputedStyle(tile).backgroundColor : "#888" }));
      });
      y += Math.ceil(nodes.length / across) * size + 6;
    }
    return s("svg", { xmlns: "http://www.w3.org/2000/svg", width: across * size + 8, height: y, viewBox: `0 0 ${across * size + 8} ${y}` }, children);
  }

  function change(set) {
    set();
    address();
    layout = "";
    draw(new Set(["nodes", "facts"]));
  }

  function draw() {
    const scene = store.scene;
    const wanted = [...scene.nodes.keys(), ...Object.values(scene.facts.hyperNodes || {})].join(" ");
    if (wanted !== layout || store.past) {
      build(scene);
      layout = wanted;
    } else if (table) table.update(scene.nodes);
    else {
      for (const [key, entry] of tiles) {
        const node = scene.nodes.get(key);
        if (node !== entry[1]) {
          entry[1] = node;
          paint(entry[0], node);
        }
      }
    }
    const device = name.includes("/");
    replace(note, h("span", {}, "free"), [...Array(11).keys()].map((each) => h("span", { class: `node small step${each}` })), h("span", {}, "full"), h("span", { class: "node small step-none" }), `offers no ${short(name)}`, h("span", { class: "node small step5 down" }), "not ready or cordoned",
      device ? h("span", {}, `The numbers are whole ${short(name)}s that are free: ${[...scene.nodes.values()].reduce((sum, node) => sum + Math.max(0, free(node, name)), 0)} in all.`) : null);
  }

  map.addEventListener("mouseover", (event) => {
    const tile = event.target.closest(TILE);
    if (tile) tile.title = tile.getAttribute("aria-label");
  });
  map.addEventListener("click", (event) => {
    const tile = event.target.closest(TILE);
    if (tile && !tile.href) location.hash = place("nodes", tile.dataset.focus);
  });
  map.addEventListener("keydown", (event) => walk(event, map));
  root.append(h("h1", {}, "Nodes"), tools, note, map);
  return { update: (changed) => (changed.has("nodes") || changed.has("facts")) && draw(), close: () => table?.close() };
}

// Arrow keys go from tile to tile as they are seen.
function walk(event, map) {
  const at = event.target.closest(TILE);
  if (at && event.key === "Enter" && !at.href) at.click();
  if (!at || !["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
  const all = [...map.querySelectorAll(TILE)];
  const index = all.indexOf(at);
  let next = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: all.length - 1 }[event.key];
  if (next === undefined) {
    const here = at.getBoundingClientRect();
    const down = event.key === "ArrowDown";
    const rows = all.map((each, position) => [each.getBoundingClientRect(), position]).filter(([box]) => (down ? box.top > here.top + 2 : box.top < here.top - 2));
    const nearest = rows.length ? (down ? Math.min : Math.max)(...rows.map(([box]) => box.top)) : 0;
    next = rows.filter(([box]) => Math.abs(box.top - nearest) < 3).sort((a, b) => Math.abs(a[0].left - here.left) - Math.abs(b[0].left - here.left))[0]?.[1];
  }
  if (next === undefined || !all[next]) return;
  at.tabIndex = -1;
  all[next].tabIndex = 0;
  all[next].focus();
  event.preventDefault();
}

export function nodeView(root, store, name) {
  const head = h("div", {});
  const why = h("div", { "aria-live": "polite" });
  const pods = h("div", {});
  const change = whatIf(store, { node: name });
  const again = h("button", { type: "button", class: "quiet small" }, "Ask again");
  again.addEventListener("click", () => explain());
  root.append(h("p", { class: "trail" }, h("a", { href: "#/nodes" }, "Nodes"), " / "), h("h1", {}, name), head, pods, why, change.element);
  let seen = null, timer = 0, closed = false;

  async function explain() {
    replace(why, card("Who waits, and why not here", null, empty("Running a cycle in memory …")));
    try {
      const told = await ask("/api/explain", { what: "node", name, ...store.then() });
      if (!closed) replace(why, explained(told, again, store));
    } catch (problem) {
      if (!closed) replace(why, card("Who waits, and why not here", again, h("p", { class: "problem" }, problem.message)));
    }
  }

  async function fetchPods() {
    const found = await ask("/api/node", { name, ...store.then() }).catch(() => ({ pods: [] }));
    if (closed) return;
    replace(pods, card("Pods here", csvButton(`pods-${name}`, () => [["pod", "phase", "group", "asks for"], ...found.pods.map((pod) => [`${pod.namespace}/${pod.name}`, pod.phase, pod.group, amounts(pod.request)])]),
      found.pods.length ? simple("Pods on this node", ["pod", "phase", "job", "asks for", "placed"], found.pods.map((pod) => [`${pod.namespace}/${pod.name}`, phase(pod.going ? "Terminating" : pod.phase), pod.group ? jobLink(`${pod.namespace}/${pod.group}`, title(store, `${pod.namespace}/${pod.group}`)) : "–", amounts(pod.request) || "–", time(pod.placed)])) : empty(found.elsewhere ? "No pod that you may see is here." : "No pod is here."),
      found.elsewhere ? h("p", { class: "dim" }, `and ${counted(found.elsewhere, "pod")} of jobs elsewhere`) : null));
  }

  return {
    update() {
      const node = store.scene.nodes.get(name);
      if (!node) {
        replace(head, empty(store.past ? "It is not there at that moment." : "There is no such node any more."));
        return;
      }
      if (node === seen) return;
      const fresh = seen === null;
      seen = node;
      replace(head, h("p", { class: "facts" }, node.state ? h("span", { class: "chip bad" }, node.state) : h("span", { class: "chip good" }, "Ready"), node.zone ? h("span", {}, `zone ${node.zone}`) : null, node.pool ? h("span", {}, `pool ${node.pool}`) : null, h("span", {}, counted(node.pods, "pod"))),
        simple("Resources", ["resource", "in use", "of", "free"], resources(node.allocatable).map((each) => [each, amount(each, node.used[each] || 0), amount(each, node.allocatable[each]), amount(each, node.allocatable[each] - (node.used[each] || 0))])));
      clearTimeout(timer);
      timer = setTimeout(fetchPods, fresh ? 0 : 1500);
      if (fresh) explain();
    },
    close() {
      closed = true;
      clearTimeout(timer);
      change.close();
    },
  };
}

// Who would have to go if somebody who waits were served here, by the rules in force.
function leaving(found) {
  if (!found) return null;
  return card("Who could go", null, found.length ? simple("Pods that could have to go", ["pod", "by", "for"], found.map((each) => [each.pod, each.decided ? h("span", { class: "chip bad" }, "in the next cycle") : h("span", { class: "chip" }, each.action), each.decided ? each.action : [jobLink(each.claimant, each.claimant), each.claimants > 1 ? ` and ${counted(each.claimants - 1, "other kind")} of jobs that wait` : ""]]))
    : empty("Nobody here may be evicted for those who wait now, by the rules of the policy in force."),
  found.length ? h("p", { class: "dim" }, "The rules let them go; whether that gives enough room is worked out by the action.") : null);
}

function explained({ answer, lines, leaving: goes }, again, store) {
  const told = answer.explanation;
  const waits = told ? told.waiting : [];
  return card("Who waits, and why not here", [copyButton(() => lines.join("\n")), again],
    told && told.taints.length ? h("p", {}, `Tainted ${told.taints.join(", ")}.`) : null,
    waits.length ? h("ul", { class: "list" }, waits.map((each) => h("li", {}, `${counted(each.jobs, "job")} `, h("span", { class: "dim" }, "such as "), jobLink(each.first, title(store, each.first)), h("p", { class: "why" }, each.reason))))
      : empty(told ? "No job waits." : answer.refused || "You may not read what a scheduler reads."),
    told && told.holds.length ? h("ul", { class: "list" }, told.holds.map((hold) => h("li", {}, `room is held here for ${hold.pod}`))) : null,
    h("details", {}, h("summary", {}, "Everything that explain says"), h("pre", { tabindex: "0" }, lines.join("\n"))), leaving(goes));
}
