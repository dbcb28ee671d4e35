// The connection to the server: signing in, the scene, then what changes; lost and found again, with what was missed.

class Problem extends Error {
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

async function call(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch {
    throw new Problem("the server does not answer; it may have ended. Start it again and open the address that it prints", 0);
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok || body.problem) throw new Problem(body.problem || `the server answers ${response.status}`, response.status);
  return body;
}

const asked = (path, parameters) => `${path}?${new URLSearchParams(parameters)}`;

export const post = (path, body, parameters = {}) => call(asked(path, parameters), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const leave = () => call("/api/session", { method: "DELETE" });

export const ask = (path, parameters) => call(asked(path, parameters));

const SILENT = 40000; // milliseconds: the server speaks at least every 15 s

export class Link {
  constructor(store, told) {
    this.store = store;
    this.told = told;
    this.source = null;
    this.heard = 0;
    setInterval(() => this.look(), 5000);
  }

  async start() {
    this.told("reading", "Reading …");
    const scene = await call("/api/scene");
    this.store.viewer = await call("/api/session");
    this.store.begin(scene);
    this.open(scene.version);
  }

  open(version) {
    this.source?.close();
    const source = (this.source = new EventSource(`/api/changes?since=${version}`));
    this.heard = Date.now();
    source.addEventListener("open", () => this.good());
    source.addEventListener("quiet", () => this.good());
    source.addEventListener("message", (event) => {
      this.good();
      this.store.apply(JSON.parse(event.data));
    });
    source.addEventListener("reset", () => this.again("Catching up …"));
    source.addEventListener("error", () => {
      this.told("lost", "Connection lost, trying again");
      if (source.readyState === EventSource.CLOSED) this.again("Connection lost, trying again", 3000);
    });
  }

  good() {
    this.heard = Date.now();
    this.told("live", this.store.live.facts.live ? "Live" : "A file");
  }

  // Begin anew: what was missed is too long ago, or the server is another one.
  again(text, pause = 0) {
    this.source?.close();
    this.source = null;
    this.told("lost", text);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(async () => {
      try {
        await this.start();
      } catch (problem) {
        if (problem.status === 401) this.told("refused", problem.message);
        else this.again("Connection lost, trying again", 3000);
      }
    }, pause);
  }

  // Show nothing any more, until somebody signs in.
  end(text) {
    this.source?.close();
    this.source = null;
    clearTimeout(this.waiting);
    this.told("refused", text);
  }

  look() {
    if (this.source && Date.now() - this.heard > SILENT) this.again("The server is silent, trying again");
  }
}
