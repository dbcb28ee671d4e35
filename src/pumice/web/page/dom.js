// Elements made from data. Text is always text: nothing here takes markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(3).filter((each) => each !== null && each !== undefined && each !== false));
  return element;
}

export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

// Put children in place of others; whoever had the focus keeps it.
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  element.replaceChildren(...children.flat(3).filter((each) => each !== null && each !== undefined && each !== false));
  if (focused !== undefined) {
    for (const each of element.querySelectorAll("[data-focus]")) {
      if (each.dataset.focus === focused) {
        each.focus({ preventScroll: true });
        break;
      }
    }
  }
}

export const link = (href, text, properties) => h("a", { href, "data-focus": href, ...properties }, text);

// Where one thing is shown: names go into the address encoded, so that any of them is a part of it.
export const place = (...parts) => "#/" + parts.map(encodeURIComponent).join("/");
export const jobLink = (key, text) => link(place("jobs", key), text || key, { class: "name" });
export const queueLink = (name) => link(place("queues", name), name, { class: "name" });
export const nodeLink = (name) => link(place("nodes", name), name, { class: "name" });

export function say(text) {
  document.getElementById("said").textContent = text;
}

export function copyButton(text, label = "Copy") {
  const button = h("button", { type: "button", class: "quiet small" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it and copy by hand";
    }
    setTimeout(() => (button.textContent = label), 2000);
  });
  return button;
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const anchor = h("a", { href: address, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// A cell that begins like a formula would be one in a spreadsheet.
const cell = (value) => {
  const text = String(value ?? "");
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

export const csv = (rows) => rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";

export function csvButton(name, rows) {
  const button = h("button", { type: "button", class: "quiet small" }, "CSV");
  button.addEventListener("click", () => save(new Blob([csv(rows())], { type: "text/csv" }), `${name}.csv`));
  return button;
}

const PAINTED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];

async function drawn(svg) {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  // One that is only made for a picture says by itself how it is painted.
  if (svg.isConnected) from.forEach((each, index) => {
    const painted = getComputedStyle(each);
    for (const name of PAINTED) to[index].setAttribute(name, painted.getPropertyValue(name));
  });
  const { width, height } = svg.isConnected ? svg.getBoundingClientRect() : svg.viewBox.baseVal;
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const address = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    return { image, width, height };
  } finally {
    URL.revokeObjectURL(address);
  }
}

const CAPTION = 22; // pixels

// One picture of several plots, each below its caption.
export async function png(plots) {
  const pictures = await Promise.all(plots.map(async ([caption, svg]) => ({ caption, ...(await drawn(svg)) })));
  const width = Math.max(...pictures.map((each) => each.width));
  const tall = (each) => each.height + (each.caption ? CAPTION : 0);
  const height = pictures.reduce((sum, each) => sum + tall(each), 0);
  const canvas = h("canvas", { width: Math.ceil(width * 2), height: Math.ceil(height * 2) });
  const context = canvas.getContext("2d");
  const body = getComputedStyle(document.body);
  context.scale(2, 2);
  context.fillStyle = body.backgroundColor;
  context.fillRect(0, 0, width, height);
  let top = 0;
  for (const each of pictures) {
    if (each.caption) {
      context.fillStyle = body.color;
      context.font = `13px ${body.fontFamily}`;
      context.fillText(each.caption, 4, top + 15, width - 8);
    }
    context.drawImage(each.image, 0, top + tall(each) - each.height, each.width, each.height);
    top += tall(each);
  }
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export function pngButton(name, plots) {
  const button = h("button", { type: "button", class: "quiet small" }, "PNG");
  button.addEventListener("click", async () => save(await png(plots()), `${name}.png`));
  return button;
}

export const empty = (text, ...more) => h("p", { class: "empty" }, text, ...more);
export const card = (title, tools, ...children) =>
  h("section", { class: "card" }, h("div", { class: "head" }, h("h2", {}, title), h("span", { class: "tools" }, tools)), ...children);
