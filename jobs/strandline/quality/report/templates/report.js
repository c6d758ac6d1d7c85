"use strict";
// Draws the plots of the page: SVG without a library. Every text is set as text, never as markup.
const NAMESPACE = "http://www.w3.org/2000/svg";
const DAY_MS = 86400000;
const MARGIN = { left: 54, right: 10, top: 8, bottom: 26 };
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const TITLE_HEIGHT = 14, PAPER_WIDTH = 700;
const fine = new Intl.NumberFormat("en", { maximumFractionDigits: 5 });
const brief = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

function node(parent, name, attributes, text) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}

const dateOf = (first, days) => new Date(Date.parse(first + "T00:00:00Z") + days * DAY_MS);
const isoDay = (first, days) => dateOf(first, days).toISOString().slice(0, 10);

function clock(minutes) {
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  return two(minutes / 60) + ":" + two(minutes % 60);
}

function span(minutes) {
  const days = Math.floor(minutes / 1440), hours = Math.floor((minutes % 1440) / 60);
  const parts = [[days, "d"], [hours, "h"], [Math.round(minutes % 60), "m"]];
  return parts.filter(([count]) => count).slice(0, 2).map(([count, unit]) => count + unit).join(" ") || "0m";
}

function rounded(value) {
  const digits = Math.abs(value) < 0.1 ? 1e5 : Math.abs(value) < 100 ? 100 : 1;
  return fine.format(Math.round(value * digits) / digits);
}

// a name whose letters run from right to left leaves the figures behind it where they are
const apart = (name) => "\u2068" + name + "\u2069";

function share(part, whole) {
  const of = (100 * part) / whole;
  return (of > 0 && of < 0.01 ? "< 0.01" : of < 10 ? of.toFixed(2) : of.toFixed(1)) + " %";
}

function niceStep(largest, most) {
  const rough = largest / most || 1, power = Math.pow(10, Math.floor(Math.log10(rough)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough);
}

// the days that bear a label: months, or every so many days
function dayTicks(first, days, width) {
  const room = Math.max(1, Math.floor(width / 62)), ticks = [];
  if (days > 100) {
    const every = Math.max(1, Math.ceil(days / 30.4 / room));
    for (let at = 0; at < days; at++) {
      const date = dateOf(first, at);
      if (date.getUTCDate() !== 1 || date.getUTCMonth() % every) continue;
      const year = date.getUTCMonth() === 0 || !ticks.length ? " " + date.getUTCFullYear() : "";
      ticks.push([at, MONTHS[date.getUTCMonth()] + year]);
    }
    return ticks;
  }
  const every = [1, 2, 7, 14, 28].find((step) => days / step <= room) || Math.ceil(days / room);
  for (let at = 0; at < days; at += every) {
    const date = dateOf(first, at);
    const year = !at || date.getUTCFullYear() !== dateOf(first, at - every).getUTCFullYear() ? " " + date.getUTCFullYear() : "";
    ticks.push([at, date.getUTCDate() + " " + MONTHS[date.getUTCMonth()] + year]);
  }
  return ticks;
}

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.appendChild(tip);

function showTip(event, lines) {
  tip.replaceChildren(...lines.map((line, place) => {
    const element = document.createElement(place ? "div" : "b");
    element.textContent = line;
    return element;
  }));
  tip.hidden = false;
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 6);
  const above = event.clientY + 16 + tip.offsetHeight > innerHeight;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = (above ? event.clientY - tip.offsetHeight - 12 : event.clientY + 16) + "px";
}

function onHover(svg, linesAt) {
  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const lines = linesAt(event.clientX - box.left, event.clientY - box.top);
    if (lines) showTip(event, lines); else tip.hidden = true;
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
}

function frame(place, figure, width) {
  place.querySelector("svg")?.remove();
  const svg = node(place, "svg", {
    width, height: figure.height, viewBox: `0 0 ${width} ${figure.height}`, "aria-hidden": "true",
  });
  const inner = { width: width - MARGIN.left - MARGIN.right, height: figure.height - MARGIN.top - MARGIN.bottom - (figure.xTitle ? TITLE_HEIGHT : 0) };
  return [svg, inner];
}

function drawDays(svg, inner, first, days, x) {
  const edge = MARGIN.left + inner.width + MARGIN.right;
  let free = 0;
  for (const [at, label] of dayTicks(first, days, Math.min(inner.width, x(days)))) {
    const left = MARGIN.left + x(at), base = MARGIN.top + inner.height;
    node(svg, "line", { class: "tick", x1: left, x2: left, y1: base, y2: base + 4 });
    const text = node(svg, "text", { class: "label", y: base + 17 }, label);
    const wide = text.getComputedTextLength(), start = Math.min(left, edge - wide);
    text.setAttribute("x", start);
    if (start < free) text.remove(); else free = start + wide + 6;
  }
}

function drawNumbers(svg, inner, largest, y, unit, leastStep = 0) {
  const step = Math.max(leastStep, niceStep(largest, Math.max(2, inner.height / 45)));
  for (let value = 0; value <= largest * 1.0001; value += step) drawRule(svg, inner, value, y);
  drawUnit(svg, inner, unit);
}

function drawRule(svg, inner, value, y) {
  const top = MARGIN.top + y(value);
  node(svg, "line", { class: "rule", x1: MARGIN.left, x2: MARGIN.left + inner.width, y1: top, y2: top });
  node(svg, "text", { class: "label", x: MARGIN.left - 6, y: top + 4, "text-anchor": "end" },
    value < 1e4 ? rounded(value) : brief.format(value));
}

function drawUnit(svg, inner, unit) {
  node(svg, "text", {
    class: "label", transform: `translate(11 ${MARGIN.top + inner.height / 2}) rotate(-90)`, "text-anchor": "middle",
  }, unit);
}

function drawPowers(svg, inner, least, most, y, unit) {
  for (let power = least; power <= most; power++) drawRule(svg, inner, Math.pow(10, power), y);
  drawUnit(svg, inner, unit);
}

function heat(place, figure, width) {
  const [svg, inner] = frame(place, figure, width);
  const wide = inner.width / figure.days, high = inner.height / figure.rows;
  const gap = wide > 6 ? 1 : 0, gapBelow = high > 8 ? 1 : 0;
  node(svg, "rect", { class: "ground", x: MARGIN.left, y: MARGIN.top, width: inner.width, height: inner.height });
  const paths = figure.legend.map(() => []), cells = new Map();
  figure.day.forEach((day, cell) => {
    // on whole pixels: a cell of two or three of them would be a blur
    const until = figure.cellDays > 1 ? Math.min(day + figure.cellDays, figure.day[cell + 1] ?? figure.days) : day + 1;
    const [left, right] = [Math.max(day, 0), until].map((at) => MARGIN.left + Math.round(at * wide));
    const [top, below] = [0, 1].map((one) => MARGIN.top + Math.round((figure.row[cell] + one) * high));
    paths[figure.shade[cell]].push(
      `M${left} ${top}H${Math.max(right - gap, left + 1)}V${Math.max(below - gapBelow, top + 1)}H${left}z`);
    for (let at = day; at < until; at++) cells.set(at * figure.rows + figure.row[cell], cell);
  });
  paths.forEach((path, shade) => {
    if (path.length) node(svg, "path", { class: figure.legend[shade].style, d: path.join("") });
  });
  drawDays(svg, inner, figure.first, figure.days, (day) => day * wide);
  const every = [60, 120, 180, 360, 720, 1440].find((m) => (1440 / m) * 14 <= inner.height) || 1440;
  for (let minutes = 0; figure.rows > 1 && minutes < 1440; minutes += every) {
    const top = MARGIN.top + (minutes / 1440) * inner.height;
    node(svg, "text", { class: "label", x: MARGIN.left - 6, y: top + 10, "text-anchor": "end" }, clock(minutes));
  }
  const of = (name, cell) => (Array.isArray(figure[name]) ? figure[name][cell] : figure[name]);
  onHover(svg, (left, top) => {
    const day = Math.floor((left - MARGIN.left) / wide), row = Math.floor((top - MARGIN.top) / high);
    const cell = row < 0 || row >= figure.rows ? undefined : cells.get(day * figure.rows + row);
    if (cell === undefined) return null;
    const begin = row * figure.rowMinutes, states = ["open", "fired", "closed", "gap"];
    const held = states.filter((state) => of(state, cell));
    const many = held.reduce((sum, state) => sum + of(state, cell), 0);
    const after = figure.closedAfter[cell];
    const lines = [
      `${isoDay(figure.first, figure.day[cell])} ${clock(begin)}, for ${span(of("lengthMinutes", cell))}`,
      many === 1 ? held[0] + (held[0] === "closed" && after !== null ? `, ${span(after)} after its end` : "")
        : held.map((state) => `${of(state, cell)} ${state}`).join(", "),
    ];
    const judged = of("on_time", cell) + of("late_accepted", cell) + of("late", cell);
    if (judged) {
      lines.push(`on time ${rounded(of("on_time", cell))}, late but accepted ${rounded(of("late_accepted", cell))}`);
      lines.push(`late ${rounded(of("late", cell))} (${share(of("late", cell), judged)})`);
    }
    if (of("no_window", cell)) lines.push(`in no window ${rounded(of("no_window", cell))}`);
    return lines;
  });
}

function bars(place, figure, width) {
  const [svg, inner] = frame(place, figure, width);
  const days = figure.x[figure.x.length - 1] + 1, wide = inner.width / Math.max(days, 14);
  const sums = figure.x.map((_, at) => figure.series.reduce((sum, one) => sum + (one.values[at] || 0), 0));
  const usual = (figure.band || []).map((band) => (band ? band[1] : 0));
  const largest = Math.max(...sums, ...usual, 1), y = (value) => inner.height * (1 - value / largest);
  drawNumbers(svg, inner, largest, y, figure.unit, 1);
  drawDays(svg, inner, figure.first, days, (day) => day * wide);
  (figure.band || []).forEach((band, at) => {
    if (!band) return;
    const top = y(band[1]), height = y(Math.max(band[0], 0)) - top;
    node(svg, "rect", { class: "band", x: MARGIN.left + figure.x[at] * wide, y: MARGIN.top + top, width: wide, height });
  });
  const floor = figure.x.map(() => 0), gap = wide > 4 ? 1 : 0;
  for (const one of figure.series) {
    const path = [];
    figure.x.forEach((day, at) => {
      const value = one.values[at] || 0;
      if (!value) return;
      const top = y(floor[at] + value), height = Math.max(y(floor[at]) - top, 0.5);
      path.push(`M${MARGIN.left + day * wide} ${MARGIN.top + top}h${wide - gap}v${height}h${gap - wide}z`);
      floor[at] += value;
    });
    node(svg, "path", { class: one.style, d: path.join("") });
  }
  onHover(svg, (left) => {
    const at = figure.x.indexOf(Math.floor((left - MARGIN.left) / wide));
    if (at < 0) return null;
    const told = figure.series.filter((one) => one.values[at]).map((one) => `${apart(one.name)}: ${rounded(one.values[at])}`);
    const band = figure.band && figure.band[at];
    if (band) told.push(`usual: ${rounded(band[0])} to ${rounded(band[1])}`);
    return [isoDay(figure.first, figure.x[at]), ...(told.length ? told : ["none"])];
  });
}

function lines(place, figure, width) {
  const [svg, inner] = frame(place, figure, width);
  const lastX = figure.end === null ? figure.x[figure.x.length - 1] : figure.end, firstX = figure.x[0];
  const x = (value) => ((value - firstX) / (lastX - firstX || 1)) * inner.width;
  const values = figure.series.flatMap((one) => one.values).filter((value) => value !== null);
  const largest = Math.max(...values, 1e-9), positive = values.filter((value) => value > 0);
  const least = Math.floor(Math.log10(Math.min(...positive, largest))), most = Math.log10(largest);
  const y = !figure.log ? (value) => inner.height * (1 - Math.max(value, 0) / largest)
    : (value) => (value > 0 ? inner.height * (1 - (Math.log10(value) - least) / (most - least || 1)) : inner.height);
  if (figure.log) drawPowers(svg, inner, least, most, y, figure.unit); else drawNumbers(svg, inner, largest, y, figure.unit);
  if (figure.first) {
    drawDays(svg, inner, figure.first, lastX + 1, x);
  } else {
    const step = niceStep(lastX, Math.max(2, inner.width / 80));
    for (let value = 0; value <= lastX; value += step) {
      const left = MARGIN.left + x(value);
      node(svg, "text", { class: "label", x: left, y: MARGIN.top + inner.height + 15, "text-anchor": "middle" }, rounded(value));
    }
    node(svg, "text", { class: "label", x: MARGIN.left + inner.width, y: MARGIN.top + inner.height + 15 + TITLE_HEIGHT, "text-anchor": "end" }, figure.xTitle);
  }
  for (const one of figure.series) {
    let path = "", before = null;
    one.values.forEach((value, at) => {
      if (value === null || figure.x[at] > lastX) { if (value === null) before = null; return; }
      const left = MARGIN.left + x(figure.x[at]), top = MARGIN.top + y(value);
      path += before === null ? `M${left} ${top}` : figure.step ? `H${left}V${top}` : `L${left} ${top}`;
      before = value;
    });
    node(svg, "path", { class: "line " + one.style, d: path });
    if (one.values.length < 3) {
      one.values.forEach((value, at) => value === null || node(svg, "circle", {
        class: one.style, cx: MARGIN.left + x(figure.x[at]), cy: MARGIN.top + y(value), r: 3 }));
    }
  }
  const guide = node(svg, "line", { class: "guide", y1: MARGIN.top, y2: MARGIN.top + inner.height, visibility: "hidden" });
  svg.addEventListener("pointerleave", () => guide.setAttribute("visibility", "hidden"));
  onHover(svg, (left) => {
    const wanted = firstX + ((left - MARGIN.left) / inner.width) * (lastX - firstX);
    if (left < MARGIN.left - 8 || left > MARGIN.left + inner.width + 8) return null;
    let at = 0;
    figure.x.forEach((value, place) => {
      const nearer = figure.step ? value <= wanted : Math.abs(value - wanted) < Math.abs(figure.x[at] - wanted);
      if (nearer) at = place;
    });
    const middle = MARGIN.left + x(figure.x[at]);
    for (const edge of ["x1", "x2"]) guide.setAttribute(edge, middle);
    guide.setAttribute("visibility", "visible");
    const title = figure.first ? isoDay(figure.first, figure.x[at]) : `${rounded(figure.x[at])} ${figure.xTitle}`;
    const found = figure.series.filter((one) => one.values[at] !== null);
    return [title, ...found.map((one) => `${apart(one.name)}: ${rounded(one.values[at])} ${figure.unit}`)];
  });
}

const DRAWN_BY = { heat, bars, lines };
const plots = [...document.querySelectorAll(".plot")].map((place) => {
  const figure = JSON.parse(place.querySelector("script").textContent);
  let drawn = 0;
  return [place, (width) => {
    if (width && width !== drawn) DRAWN_BY[figure.kind](place, figure, drawn = width);
  }];
});
const fit = ([place, draw]) => draw(Math.floor(place.clientWidth));
for (const plot of plots) {
  fit(plot);
  new ResizeObserver(() => fit(plot)).observe(plot[0]);
}
// as wide as paper: a wide plot that is shrunk to it has labels that nobody can read
addEventListener("beforeprint", () => plots.forEach(([, draw]) => draw(PAPER_WIDTH)));
addEventListener("afterprint", () => plots.forEach(fit));
