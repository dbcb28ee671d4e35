// What is known of the cluster: rows by table and key, brought up to date by batches. Views are told which tables changed.

import { times } from "./words.js";

const LONGEST = 360; // samples of the last hour
const MOST_EVICTIONS = 500;

export class Store {
  constructor() {
    this.listeners = new Set();
    this.live = null; // the scene that is kept up to date
    this.past = null; // one that was chosen instead
    this.viewer = { user: "", notes: [] }; // who looks, where somebody had to say so
    this.base = null; // one that is held against it
    this.pending = new Set();
    this.scheduled = false;
    this.offset = 0;
    times.now = () => this.now();
  }

  get scene() {
    return this.past || this.live;
  }

  // The time at the cluster: it goes on where that one is live, and stands still otherwise.
  now() {
    if (!this.scene) return Date.now() * 1000;
    if (this.past || !this.live.facts.live) return this.scene.time;
    return Date.now() * 1000 + this.offset;
  }

  begin(plain) {
    this.live = opened(plain);
    this.offset = plain.time - Date.now() * 1000;
    this.tell("all");
  }

  apply(batch) {
    const scene = this.live;
    scene.version = batch.version;
    scene.time = batch.time;
    scene.first = batch.first;
    scene.pods = batch.pods;
    scene.total = batch.total;
    this.offset = batch.time - Date.now() * 1000;
    for (const [table, rows] of Object.entries(batch.rows)) {
      for (const [key, row] of Object.entries(rows)) {
        if (row === null) scene[table].delete(key);
        else scene[table].set(key, row);
        this.pending.add(table);
      }
    }
    Object.assign(scene.facts, batch.facts);
    if (Object.keys(batch.facts).length) this.pending.add("facts");
    if (batch.evictions.length) {
      const known = new Map(scene.evictions.map((each) => [each.id, each]));
      for (const each of batch.evictions) known.set(each.id, each);
      scene.evictions = [...known.values()].slice(-MOST_EVICTIONS);
      this.pending.add("evictions");
    }
    if (batch.pulse.length) {
      scene.pulse = [...scene.pulse, ...batch.pulse].slice(-LONGEST);
      this.pending.add("pulse");
    }
    this.tell();
  }

  // Show a scene that is past, or now again; the address says which.
  show(past) {
    this.past = past;
    this.stay(location.hash);
    this.tell("all");
  }

  // Take facts of the moment that is shown.
  learn(facts) {
    Object.assign(this.past.facts, facts);
    this.tell("past", "facts");
  }

  // What a question has to say about the moment that is shown.
  then() {
    return this.past ? { at: this.past.time } : {};
  }

  // Be at an address, and at the moment that is shown.
  stay(hash) {
    const bare = (hash || "#/overview").replace(/([?&])at=\d+&?/, "$1").replace(/[?&]$/, "");
    history.replaceState(null, "", this.past ? `${bare}${bare.includes("?") ? "&" : "?"}at=${this.past.time}` : bare);
  }

  tell(...tables) {
    for (const table of tables) this.pending.add(table);
    if (this.scheduled) return;
    this.scheduled = true;
    // One drawing for whatever comes together; a page that nobody sees draws nothing.
    (document.hidden ? (run) => setTimeout(run, 1000) : requestAnimationFrame)(() => {
      this.scheduled = false;
      const changed = this.pending;
      this.pending = new Set();
      if (changed.has("all")) for (const table of ["queues", "jobs", "nodes", "facts", "evictions", "pulse"]) changed.add(table);
      if (this.past && !changed.has("all") && !changed.has("past")) return;
      for (const listener of this.listeners) listener(changed);
    });
  }
}

export function opened(plain) {
  return {
    version: plain.version,
    time: plain.time,
    first: plain.first,
    pods: plain.pods,
    total: plain.total,
    facts: plain.facts,
    evictions: [...new Map(plain.evictions.map((each) => [each.id, each])).values()],
    pulse: plain.pulse,
    queues: new Map(Object.entries(plain.rows.queues)),
    jobs: new Map(Object.entries(plain.rows.jobs)),
    nodes: new Map(Object.entries(plain.rows.nodes)),
  };
}

// How a queue stands in each resource: as explain has it, else what is written on it.
export function standing(scene, queue) {
  const shares = scene.facts.queues?.[queue.name];
  if (shares && Object.keys(shares.amounts).length) return shares.amounts;
  const found = {};
  for (const name of Object.keys({ ...queue.allocated, ...queue.deserved, ...queue.capability, ...queue.guarantee })) {
    found[name] = {
      held: queue.allocated[name] || 0,
      asked: 0,
      due: queue.deserved[name] ?? null,
      guarantee: queue.guarantee[name] ?? null,
      ceiling: queue.capability[name] ?? null,
    };
  }
  return found;
}

export const waiting = (scene) => [...scene.jobs].filter(([, job]) => job.since !== null).sort((a, b) => a[1].since - b[1].since || (a[0] < b[0] ? -1 : 1));
