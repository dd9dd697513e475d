// What models and users write becomes text by textContent, never markup.
const byId = (id) => document.getElementById(id);
const copyOf = (id) => byId(id).content.cloneNode(true).firstElementChild;
let models = [], turn = 0, ready;
const shown = new Promise((resolve) => { ready = resolve; });

function make(parent, tag, text = "", attributes = {}) {
  const made = document.createElementNS(parent.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  parent.append(made);
  return made;
}

async function ask(path, body) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(path, body && { method: "POST", headers, body: JSON.stringify(body) });
  const found = await response.json();
  if (!response.ok) throw new Error(found.error);
  return found;
}

// A table with a head for each row and column, and a number in each cell.
function fill(table, columns, rows, number, digits) {
  table.replaceChildren();
  const head = make(make(table, "thead"), "tr"), body = make(table, "tbody");
  make(head, "td");
  for (const name of columns) make(head, "th", name, { scope: "col" });
  rows.forEach((name, i) => {
    const row = make(body, "tr");
    make(row, "th", name, { scope: "row" });
    columns.forEach((_, j) => make(row, "td", number(i, j).toFixed(digits)));
  });
}

function draw(parent, { disk, places, radii }, name, words) {
  const figure = copyOf("disk"), [svg, caption] = figure.children;
  const [least, most] = [Math.min(...radii), Math.max(...radii)].map((radius) => radius.toFixed(2));
  caption.textContent = `${name}: radius ${least} to ${most}`;
  svg.setAttribute("aria-label", `${words.join(" ")}, ${caption.textContent}`);
  if (disk) make(svg, "circle", "", { class: "border", r: 1 });
  const labels = [];
  places.forEach(([x, up], i) => {
    const point = make(svg, "circle", "", { class: "point", cx: x, cy: -up, r: 0.03 });
    make(point, "title", `${words[i]}: radius ${radii[i].toFixed(3)}`);
    const width = 0.09 * words[i].length, limit = 1.2 - width / 2;
    const center = Math.max(-limit, Math.min(limit, x));
    const free = (y) => labels.every((other) =>
      Math.abs(other.center - center) > (other.width + width) / 2 || Math.abs(other.y - y) > 0.13);
    // a label that would cover others is left out; the point's title and the table have the word
    const y = [-up - 0.05, -up + 0.15].find(free);
    if (y === undefined) return;
    labels.push({ center, width, y });
    make(svg, "text", words[i], { x: center, y });
  });
  parent.append(figure);
}

// A model without torch has translations alone.
function show(section, { translations, source, target, attention, layers = [], scale }) {
  const part = (name) => section.querySelector(name);
  const columns = ["score", "log-probability"], names = layers.map((_, i) => (i ? `layer ${i}` : "embeddings"));
  const texts = translations.map((one) => one.text);
  fill(part(".best"), columns, texts, (i, j) => [translations[i].score, translations[i].log_probability][j], 3);
  part(".found").hidden = false;
  part(".inside").hidden = !layers.length;
  if (!layers.length) return;
  fill(part(".attention"), source, target, (i, j) => attention[i][j], 2);
  part(".attention").querySelectorAll("tbody td").forEach((cell, i) => {
    cell.style.setProperty("--weight", attention.flat()[i]);
  });
  fill(part(".radii"), names, source, (i, j) => layers[j].radii[i], 3);
  part(".disks").replaceChildren();
  layers.forEach((layer, i) => draw(part(".disks"), layer, names[i], source));
  part(".places").textContent = layers.some((layer) => layer.disk)
    ? "The Poincaré disk of curvature −1. A word's distance from the center is its radius" +
      (scale < 1 ? ` times ${scale.toFixed(2)}` : "") + "; its direction follows the two principal components " +
      "of this sentence, so words far apart here may be close."
    : "A Euclidean model: the plane of the two principal components of this sentence; radii are norms.";
}

async function translate(event) {
  event.preventDefault();
  const own = ++turn, texts = byId("text").value, beam = byId("beam").valueAsNumber;
  byId("status").textContent = "Translating…";
  await shown;
  await Promise.all(models.map(async ({ name, section }) => {
    let problem = "";
    const found = await ask("look", { texts, beam, model: name }).catch((error) => { problem = error.message; });
    if (own !== turn) return;
    section.querySelector(".error").textContent = problem;
    section.querySelector(".found").hidden = true;
    if (found) show(section, found.results[0]);
  }));
  if (own === turn) byId("status").textContent = "Done.";
}

// Registered before any answer is waited for: who is quick may press Enter at once.
byId("form").addEventListener("submit", translate);
models = await ask("models");
for (const model of models) {
  model.section = copyOf("model");
  model.section.querySelector("h2").textContent = `${model.name}: ${model.architecture}, ${model.languages.join(" to ")}`;
  byId("models").append(model.section);
}
ready();
