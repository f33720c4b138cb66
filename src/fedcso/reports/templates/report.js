"use strict";
// Draws what is in the page's own JSON; nothing is fetched.
const data = JSON.parse(document.getElementById("data").textContent);
const hidden = new Set();
const make = (name, attributes = {}, parent = null, text = null) => {
  const node = document.createElementNS(document.getElementById("pen").namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== null) node.textContent = text;
  if (parent) parent.append(node);
  return node;
};

/* A method's colour, dashes and marker are those of the figures; black is whatever stands out from the background. */
const thickness = 2;
const colour = (name) => data.looks[name].colour.replace("#000000", "currentColor");
const dash = (name) => data.looks[name].dashes.map((length) => length * thickness).join(" ");
const shapes = {
  o: "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z", s: "M-.85-.85h1.7v1.7h-1.7z", D: "M0-1.2L1.2 0L0 1.2L-1.2 0z",
  "^": "M0-1.1L1.05.8h-2.1z", v: "M0 1.1L1.05-.8h-2.1z", P: "M-.4-1.1h.8v.7h.7v.8h-.7v.7h-.8v-.7h-.7v-.8h.7z",
  X: "M-1-.45L-.45-1L0-.55L.45-1L1-.45L.55 0L1 .45L.45 1L0 .55L-.45 1L-1 .45L-.55 0z",
  "*": "M0-1.25L.29-.4L1.19-.39L.48.15L.73 1.01L0 .5L-.73 1.01L-.48.15L-1.19-.39L-.29-.4z",
};
const mark = (name, x, y, parent) =>
  make("path", { class: "marker", d: shapes[data.looks[name].marker], fill: colour(name), transform: `translate(${x} ${y}) scale(4)` }, parent);
const swatch = (name) => {
  const svg = make("svg", { class: "swatch", viewBox: "0 0 36 12", "aria-hidden": "true" });
  make("line", { x1: 0, x2: 36, y1: 6, y2: 6, stroke: colour(name), "stroke-width": thickness, "stroke-dasharray": dash(name) }, svg);
  mark(name, 18, 6, svg);
  return svg;
};
const number = (value) => {
  if (value === null) return "undefined";
  const size = Math.abs(value);
  if (size && (size >= 1e6 || size < 1e-3)) return value.toExponential(1).replace("e+", "e").replace(".0e", "e");
  return String(Number(value.toPrecision(size >= 1000 ? 6 : 4)));
};

/* Round numbers between two ends: for a logarithmic axis 1, 2, 5 times powers of ten. */
function ticks(low, high, log) {
  if (log) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const factor of [1, 2, 5]) {
        const value = factor * 10 ** power;
        if (value >= low && value <= high) found.push(value);
      }
    return found.length > 8 ? found.filter((value) => Number.isInteger(Math.round(Math.log10(value) * 1e6) / 1e6)) : found;
  }
  const raw = (high - low) / 4, unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * unit).find((value) => value >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push(Number(value.toPrecision(12)));
  return found;
}

const scale = (low, high, from, to, log) => {
  const place = log ? Math.log10 : (value) => value;
  const start = place(low), width = place(high) - start || 1;
  return (value) => from + ((place(value) - start) / width) * (to - from);
};

/* The corners of a five-pointed star: outer and inner ones in turn, the first on top. */
const star = (x, y, radius) => Array.from({ length: 10 }, (_, i) => {
  const angle = (i * Math.PI) / 5, reach = i % 2 ? radius * 0.4 : radius;
  return `${x + reach * Math.sin(angle)},${y - reach * Math.cos(angle)}`;
}).join(" ");

function draw(panel, chart) {
  const axis = chart.axis ?? document.getElementById("axis").value;
  const shown = chart.series.filter((series) => !hidden.has(series.name));
  const width = Math.max(260, panel.clientWidth - 26), height = Math.round(Math.min(300, 90 + width * 0.45));
  const edge = { left: 52, right: 14, top: 8, bottom: 38 };
  panel.querySelector(":scope > svg")?.remove();
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": chart.title }, panel);
  const points = shown.flatMap((series) => series.y.map(([mean, half], i) => ({ x: series.x[axis][i], mean, half })))
    .filter((point) => point.mean !== null && point.x !== null && !(chart.log && point.mean <= 0));
  if (!points.length) {
    make("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, svg, shown.length ? "undefined everywhere" : "nothing chosen");
    return;
  }
  // A band over few seeds may be many times as wide as all there is to see of the curves: it is cut off there.
  const means = points.map((point) => point.mean), least = Math.min(...means), most = Math.max(...means), span = most - least;
  const [bottom, top] = chart.bounds ?? [-Infinity, Infinity], wide = chart.places || !span ? Infinity : span;
  const floor = Math.max(bottom, chart.log ? least / 3 : least - wide), ceiling = Math.min(top, most + wide);
  const lower = (mean, half) => Math.max(mean - (half ?? 0), floor), upper = (mean, half) => Math.min(mean + (half ?? 0), ceiling);
  let low = Math.min(...points.map((point) => lower(point.mean, point.half)), chart.chance ?? Infinity);
  let high = Math.max(...points.map((point) => upper(point.mean, point.half)), chart.chance ?? -Infinity);
  if (low === high) [low, high] = chart.log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  const spare = chart.log ? 0 : (high - low) * 0.04;
  const y = scale(low - spare, high + spare, height - edge.bottom, edge.top, chart.log);
  const ends = chart.places ? [-0.5, chart.places.length - 0.5] : [Math.min(...points.map((p) => p.x)), Math.max(...points.map((p) => p.x))];
  if (ends[0] === ends[1]) ends[1] += 1;
  const x = scale(ends[0], ends[1], edge.left, width - edge.right, false);

  for (const value of ticks(low, high, chart.log)) {
    make("line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: y(value), y2: y(value) }, svg);
    make("text", { x: edge.left - 6, y: y(value) + 4, "text-anchor": "end" }, svg, number(value));
  }
  const every = chart.places ? Math.ceil((chart.places.length * 34) / width) : 1;
  const marks = chart.places ? chart.places.map((_, i) => i).filter((i) => i % every === 0) : ticks(ends[0], ends[1], false);
  for (const value of marks) {
    const name = chart.places ? chart.places[value] : number(value);
    make("text", { x: x(value), y: height - edge.bottom + 16, "text-anchor": "middle" }, svg, name.length > 8 ? `${name.slice(0, 7)}…` : name);
  }
  make("text", { x: (edge.left + width - edge.right) / 2, y: height - 4, "text-anchor": "middle" }, svg, axis);
  if (chart.chance !== null)
    make("line", { class: "chance", x1: edge.left, x2: width - edge.right, y1: y(chart.chance), y2: y(chart.chance) }, svg)
      .append(make("title", {}, null, `chance: ${number(chart.chance)}`));

  shown.forEach((series, turn) => {
    const aside = chart.places ? ((turn + 1) / (shown.length + 1) - 0.5) * 0.7 : 0;
    const here = series.y.map(([mean, half], i) => ({ x: series.x[axis][i] + aside, mean, half }))
      .filter((point) => point.mean !== null && !(chart.log && point.mean <= 0));
    const ink = colour(series.name);
    if (chart.places) {
      for (const point of here) {
        if (point.half !== null)
          make("line", { x1: x(point.x), x2: x(point.x), y1: y(lower(point.mean, point.half)), y2: y(upper(point.mean, point.half)), stroke: ink, "stroke-opacity": 0.5, "stroke-width": 2 }, svg);
        mark(series.name, x(point.x), y(point.mean), svg);
      }
      return;
    }
    const banded = here.filter((point) => point.half !== null);
    if (banded.length > 1) {
      const above = banded.map((point) => `${x(point.x)},${y(upper(point.mean, point.half))}`);
      const below = banded.map((point) => `${x(point.x)},${y(lower(point.mean, point.half))}`).reverse();
      make("polygon", { points: [...above, ...below].join(" "), fill: ink, "fill-opacity": Math.min(0.16, 0.6 / shown.length), class: "band" }, svg);
    }
    const line = here.map((point) => `${x(point.x)},${y(point.mean)}`).join(" ");
    make("polyline", { points: line, fill: "none", stroke: ink, "stroke-width": thickness, "stroke-dasharray": dash(series.name), "data-name": series.name }, svg);
    const between = Math.max(1, Math.floor(here.length / 8));
    here.filter((_, i) => i % between === 0).forEach((point) => mark(series.name, x(point.x), y(point.mean), svg));
  });
  for (const model of chart.exported.filter((model) => !hidden.has(model.name) && model.y !== null && model.x[axis] !== null))
    make("polygon", { class: "exported", points: star(x(model.x[axis]), y(model.y), 9), fill: colour(model.name) }, svg)
      .append(make("title", {}, null, `exported model of ${model.name}: ${number(model.y)}`));

  // The values at the evaluation nearest to the pointer.
  const tip = panel.querySelector(".tip");
  const cursor = make("line", { class: "grid", y1: edge.top, y2: height - edge.bottom, visibility: "hidden" }, svg);
  svg.onpointerleave = () => { tip.hidden = true; cursor.setAttribute("visibility", "hidden"); };
  svg.onpointermove = (event) => {
    const place = (event.offsetX / svg.clientWidth) * width;
    const nearest = points.reduce((best, point) => (Math.abs(x(point.x) - place) < Math.abs(x(best.x) - place) ? point : best)).x;
    cursor.setAttribute("visibility", "visible");
    cursor.setAttribute("x1", x(nearest));
    cursor.setAttribute("x2", x(nearest));
    tip.replaceChildren(document.createTextNode(chart.places ? chart.places[nearest] : `${axis} ${number(nearest)}`));
    for (const series of shown) {
      const distance = (i) => Math.abs((series.x[axis][i] ?? Infinity) - nearest);
      const closest = series.y.reduce((best, _, i) => (distance(i) < distance(best) ? i : best), 0);
      const [mean, half] = series.y[closest];
      const line = document.createElement("div");
      line.append(swatch(series.name), `${series.name}: ${number(mean)}${half === null ? "" : ` ± ${number(half)}`}`);
      tip.append(line);
    }
    tip.hidden = false;
    const left = Math.min(event.offsetX + 16, panel.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, event.offsetY - tip.offsetHeight / 2 + 24)}px`;
  };
}

function begin() {
  const place = document.querySelector(".charts"), select = document.getElementById("axis");
  for (const axis of data.axes) select.append(new Option(axis));
  const panels = data.charts.map((chart) => {
    const panel = document.createElement("section");
    panel.className = "chart";
    const title = document.createElement("h3");
    title.textContent = chart.title;
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    panel.append(title, tip);
    place.append(panel);
    return panel;
  });
  const all = () => panels.forEach((panel, i) => draw(panel, data.charts[i]));
  for (const name of Object.keys(data.looks)) {
    const chip = document.createElement("button");
    chip.className = "chip";
    chip.append(swatch(name), name);
    chip.setAttribute("aria-pressed", "true");
    chip.onclick = () => {
      if (!hidden.delete(name)) hidden.add(name);
      chip.setAttribute("aria-pressed", String(!hidden.has(name)));
      all();
    };
    document.querySelector(".chips").append(chip);
  }
  select.onchange = all;
  new ResizeObserver(() => requestAnimationFrame(all)).observe(place); // not inside the observation, which would observe itself
  all();
}

if (data.charts.length) begin();
