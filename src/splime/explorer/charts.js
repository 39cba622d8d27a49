// Pictures: all are SVG whose unit is a pixel of the page, so that letters keep their size

const COLOURS = 8; // of `style`, which deuteranopes can tell apart; dashes and shapes differ too
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "5 5", "12 3", "2 6"]; // not as many as colours
const widthOf = (where) => Math.max(260, where.clientWidth);

const measure = (() => {
  const pen = document.createElement("canvas").getContext("2d");
  return (text, size = 13, weight = 400) => {
    pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text).width;
  };
})();

function cutTo(text, width, weight) {
  // A name as long as there is room for it.
  const shown = seen(text), letters = [...shown];
  if (measure(shown, 13, weight) <= width) return shown;
  while (letters.length > 1 && measure(letters.join("") + "…", 13, weight) > width) letters.pop();
  return letters.join("") + "…";
}

function timeTicks(first, last, width) {
  // Timestamps to label: round years, or even steps.
  const most = Math.max(2, Math.floor(width / 64)), all = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  const years = all.map((at) => Number(startOf(at)));
  if (years.every(Number.isInteger)) {
    for (const step of [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000]) {
      const round = all.filter((_, at) => years[at] % step === 0);
      if (round.length <= most && round.length) return round;
    }
  }
  const step = Math.ceil(all.length / Math.max(2, Math.floor(width / 96)));
  return all.filter((_, at) => at % step === 0);
}

function plot(where, { count, series, height = 130, most = 1, ticks, choose, now, label, share = true }) {
  // Lines over the places 0 to count - 1. A value that is null is a gap.
  const width = widthOf(where), left = 40, right = 8, top = 8, bottom = height - 20;
  const x = (at) => left + ((width - left - right) * at) / count, y = (value) => bottom - ((bottom - top) * value) / most;
  const lines = series.map(({ values, colour, dash, stepped, kind = "" }) => {
    let path = "", open = false;
    values.forEach((value, at) => {
      if (value === null) { open = false; return; }
      const height = y(value).toFixed(1), from = x(stepped ? at : at + 0.5).toFixed(1);
      path += `${open ? "L" : "M"}${from} ${height}` + (stepped ? `L${x(at + 1).toFixed(1)} ${height}` : open ? "" : "h.01");
      open = true;
    });
    return draw("path", { d: path, class: `line c${colour} ${kind}`, "stroke-dasharray": dash || undefined });
  });
  const words = ticks(width - left - right).map(([at, text]) => {
    const half = measure(text, 12) / 2;
    return draw("text", { x: Math.min(width - half, Math.max(half, x(at + 0.5))), y: height - 5, "text-anchor": "middle" }, text);
  });
  const grid = [0, 0.5, 1].flatMap((part) => [
    draw("line", { class: "grid", x1: left, x2: width - right, y1: y(part * most), y2: y(part * most) }),
    draw("text", { x: left - 5, y: y(part * most) + 4, "text-anchor": "end" }, share ? `${Math.round(100 * part * most)} %` : digits(part * most))]);
  const marker = now === undefined ? [] : [draw("rect", { class: "asked", x: x(now[0]), width: Math.max(2, x(now[1] + 1) - x(now[0])), y: top, height: bottom - top })];
  const chart = draw("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": seen(label) }, ...marker, ...grid, ...lines, ...words);
  if (choose) {
    const at = (event) => choose(Math.min(count - 1, Math.max(0, Math.floor(((event.clientX - chart.getBoundingClientRect().left - left) / (width - left - right)) * count))));
    chart.classList.add("chosen");
    chart.addEventListener("pointerdown", at);
    chart.addEventListener("pointermove", (event) => { if (event.buttons) at(event); });
  }
  return chart;
}

function legend(series) {
  return note(...series.map(({ name, colour, dash, kind = "", text }) => make("span", { class: "key" },
    draw("svg", { width: 26, height: 8, "aria-hidden": "true" }, draw("path", { d: "M1 4H25", class: `line c${colour} ${kind}`, "stroke-dasharray": dash || undefined })),
    " ", name === undefined ? text : named(name))));
}

// Evidence: each entity is a lane, and each fact a bar in the lane of its subject, at its time, with
// a line to its object. Chains that share facts share their bars. Equal times are equally long.

function dateTicks(low, high, x) {
  // Where dates stand, and which: round years, or timestamps that are far enough from each other.
  if (about.starts.every((tick, at) => String(tick) === startOf(at))) {
    const step = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000].find((each) => x(each) - x(0) >= 56) ?? high - low + 1;
    return Array.from({ length: high - low + 1 }, (_, at) => low + at).filter((tick) => tick % step === 0).map((tick) => [(x(tick) + x(tick + 1)) / 2, String(tick)]);
  }
  let last = -Infinity;
  return about.starts.flatMap((tick, at) => {
    if (tick < low || tick > high || x(tick) - last < 100) return [];
    last = x(tick);
    return [[(x(tick) + x(about.ends[at] + 1)) / 2, startOf(at)]];
  });
}

const ROW = 24, EDGE = 5;

function evidenceChart(where, { facts, weights, first, last, asked, showFact, showName }) {
  const width = widthOf(where), narrow = width < 560;
  const dated = facts.filter(({ begin, end }) => begin ?? end), spans = asked ? [...dated, asked] : dated;
  const count = about.times.length, whole = { first: 0, last: count - 1 }, drawn = spans.length ? spans : [whole];
  const begin = Math.min(...drawn.map((span) => about.starts[span.first])), end = Math.max(...drawn.map((span) => about.ends[span.last]));
  const room = Math.ceil((end - begin + 1) / 12), low = Math.max(about.starts[0], begin - room), high = Math.min(about.ends[count - 1], end + room);
  const lanes = lanesOf(facts, first, last), names = lanes.map(({ name }) => name);
  const left = narrow ? 4 : Math.min(Math.max(220, width * 0.3), Math.max(...names.map((name) => measure(seen(name), 13, 600))) + 34), right = width - 6;
  const x = (tick) => left + ((right - left) * (tick - low)) / (high - low + 1);
  const within = ({ first, last }) => [x(Math.max(low, about.starts[first])), x(Math.min(high, about.ends[last]) + 1)];
  let bottom = 8;
  for (const lane of lanes) {
    lane.top = bottom;
    lane.rows = [];
    for (const fact of lane.facts) placeBar(lane, fact, { within, left, right, narrow });
    lane.begin = lane.top + EDGE + (narrow ? 22 : 0);
    bottom = lane.begin + ROW * Math.max(narrow ? 0 : 1, lane.rows.length) + EDGE;
    lane.bottom = bottom;
    lane.port = lane.rows.length ? bottom - 3 : lane.top + (narrow ? 13 : (bottom - lane.top) / 2);
  }
  const kinds = [...new Set(facts.map(({ predicate }) => predicate))], heaviest = Math.max(...weights, 1e-9);
  const height = bottom + 24, back = [], front = [];
  lanes.forEach((lane, at) => back.push(draw("rect", { class: at % 2 ? "lane" : "lane odd", x: 0, y: lane.top, width, height: lane.bottom - lane.top })));
  if (asked) {
    const [from, to] = within(asked);
    back.push(draw("rect", { class: "asked", x: from, width: Math.max(3, to - from), y: 0, height: bottom }));
  }
  for (const lane of lanes) back.push(draw("line", { class: "grid", x1: left, x2: right, y1: lane.port, y2: lane.port }));
  for (const lane of lanes) for (const bar of lane.facts.map((fact) => fact.bar)) {
    const { fact } = bar, y = lane.begin + ROW * bar.row + ROW / 2, middle = (bar.from + bar.to) / 2;
    const to = lanes[names.indexOf(fact.object)], end = to.port, strong = weights[fact.number] / heaviest;
    const what = `${fact.subject} ${fact.predicate} ${fact.object}, ${between(fact.begin, fact.end)}` + (fact.scope ? ` (${fact.scope})` : "");
    const colour = `c${kinds.indexOf(fact.predicate) % COLOURS}`;
    const parts = [draw("title", {}, what)];
    if (to !== lane) { // below all bars and their words
      back.push(draw("g", { "data-number": fact.number }, draw("path", { class: `link ${colour}`, d: `M${middle} ${y}V${end}`, "stroke-width": (1.2 + 2.3 * strong).toFixed(1) }),
        draw("circle", { class: `dot ${colour}`, cx: middle, cy: end, r: 4 })));
    }
    parts.push(draw("rect", { class: `bar ${colour}${bar.inside ? " light" : ""}${fact.begin ?? fact.end ? "" : " timeless"}`, x: bar.from, y: y - 7, width: bar.to - bar.from, height: 14, rx: 3 }),
      draw("text", { x: bar.start, y: y + 4.5, class: bar.inside ? "inside" : undefined }, bar.label));
    front.push(button(draw("g", { class: "fact", "data-number": fact.number }, ...parts), what, () => showFact(fact)));
  }
  for (const lane of lanes) front.push(nodeOf(lane, { narrow, left, first, last, showName }));
  const words = dateTicks(low, high, x).flatMap(([place, text]) => {
    const half = measure(text, 12) / 2, middle = Math.min(width - half, Math.max(half, place));
    return [draw("line", { class: "grid", x1: middle, x2: middle, y1: bottom, y2: bottom + 4 }), draw("text", { x: middle, y: bottom + 18, "text-anchor": "middle" }, text)];
  });
  return draw("svg", { class: "chart evidence", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Facts at their times, and how they hang together" }, ...back, ...front, ...words);
}

function lanesOf(facts, first, last) {
  // The given entity is above, and the answer below.
  const names = facts.flatMap(({ subject, object }) => [subject, object]);
  const order = [...new Set([first, ...names.filter((name) => name !== last), last])].filter((name) => names.includes(name));
  return order.map((name) => ({ name, facts: facts.filter((fact) => fact.subject === name) }));
}

function placeBar(lane, fact, { within, left, right, narrow }) {
  // Its words stand where there is room beside it; what overlaps goes to another row.
  const [from, upto] = within(fact), to = Math.max(from + 7, upto);
  const longer = narrow ? [] : [`${fact.predicate} ${fact.object}`], labels = [...longer, fact.predicate].map((text) => cutTo(text, (right - left) * 0.7));
  const places = labels.flatMap((label) => {
    const size = measure(label);
    return [[to + 5, label], [from - 5 - size, label], ...(to - from > size + 8 ? [[from + 5, label, true]] : [])].map(([start, ...rest]) => [start, start + size, ...rest]);
  });
  const [start, stop, label, inside] = places.find(([start, stop]) => start >= left && stop <= right) ?? places.at(-1);
  const taken = [Math.min(from, start) - 4, Math.max(to, stop) + 8];
  let row = lane.rows.findIndex((others) => others.every(([start, stop]) => taken[1] <= start || stop <= taken[0]));
  if (row < 0) row = lane.rows.push([]) - 1;
  lane.rows[row].push(taken);
  fact.bar = { fact, from, to, start, label, inside, row };
}

function nodeOf(lane, { narrow, left, first, last, showName }) {
  const kind = lane.name === last ? "node answer" : lane.name === first ? "node given" : "node", weight = kind === "node" ? 400 : 600;
  const shown = cutTo(lane.name, narrow ? 300 : left - 30, weight), size = measure(shown, 13, weight) + 18, y = narrow ? lane.top + 2 : lane.begin + 1;
  const node = draw("g", { class: kind }, draw("rect", { x: 4, y, width: size, height: 22, rx: 11 }), draw("text", { x: 13, y: y + 15.5 }, shown), draw("title", {}, `Facts of ${lane.name}`));
  return button(node, `${lane.name}: its facts`, () => showName(lane.name));
}

function button(made, label, act) {
  // What can be clicked can be reached by the keyboard.
  for (const [name, value] of [["tabindex", "0"], ["role", "button"], ["aria-label", seen(label)]]) made.setAttribute(name, value);
  made.addEventListener("click", act);
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  });
  return made;
}
