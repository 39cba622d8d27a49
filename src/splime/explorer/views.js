// The rest: the facts of a name, facts to ask about, doubts, rules, backtest, metrics, the map

function track(fact) {
  const count = about.times.length, made = make("i");
  made.style.left = (100 * fact.first) / count + "%";
  made.style.width = (100 * (fact.last - fact.first + 1)) / count + "%";
  return make("div", { class: "track " + fact.split }, made);
}

function factList(facts) {
  const list = make("dl", { class: "facts" });
  for (const fact of facts) {
    list.append(make("dt", {}, ...sentence(fact)), make("dd", {}, track(fact),
      make("span", { class: "note" }, `${fact.split} `, ...["object", "subject", "time"].flatMap((ask) => [linkTo(aboutFact(fact, ask), WORDS[ask].toLowerCase() + "?"), " "]))));
  }
  return make("div", {}, list, ends());
}

const showPage = (kind, name) => attempt(async () => {
  const reply = await get("facts", { kind, name }), section = element("page");
  const more = reply.all > reply.facts.length ? `, the first ${reply.facts.length}` : "";
  const rules = kind === "predicate" && !stored ? [make("button", { type: "button", click: () => showRulesOf(name) }, "Rules of ", named(name))] : [];
  section.replaceChildren(make("h2", { dir: "auto" }, `Facts of ${name}`), note(many(reply.all, "fact") + more), ...rules, factList(reply.facts));
  section.hidden = false;
  section.focus({ preventScroll: true });
  section.scrollIntoView({ block: "start" });
});

function showTests(where) {
  const list = make("ul");
  for (const fact of about.tests) {
    list.append(make("li", {}, ...sentence(fact), ": ", linkTo(aboutFact(fact, "object"), "what?"), " ", linkTo(aboutFact(fact, "subject"), "who?")));
  }
  const what = about.test ? "Random facts of test, which answers cannot use." : "Random known facts; the questions are about the time just after, or before.";
  where.replaceChildren(note(what), list);
}

function showDoubts(where) {
  const list = make("ol");
  for (const row of about.doubts) {
    const sure = `${(100 * row.doubt).toFixed(1)} %, ${row.kind}`;
    if (row.predicate === null) {
      list.append(make("li", {}, pageOf("entity", row.subject), " and ", pageOf("entity", row.object), ` may be one (${sure})`));
      continue;
    }
    const instead = row.instead === null ? [] : ["; more probable: ", named(row.instead)];
    list.append(make("li", {}, linkTo(aboutFact(row, row.ask), `${row.subject} ${row.predicate} ${row.object}`), ` ${between(row.begin, row.end)} (${sure})`, ...instead));
  }
  where.replaceChildren(note("Found by splime doubts, each with the probability that it is wrong. A click asks the question."), list);
}

// Rules

let ruled = ""; // the predicate whose rules are shown

function showRulesOf(predicate) {
  ruled = predicate;
  element("rules").open = true;
  refresh("rules");
  element("rules").scrollIntoView({ block: "start" });
}

async function showRules(where) {
  const own = ruled;
  where.replaceChildren(note(own ? `counting what leads to answers about ${own} …` : "counting …"));
  const reply = await get("rules", { predicate: own });
  if (own !== ruled) return;
  const predicates = [...new Set([question.predicate, ...about.predicates])].filter(Boolean);
  const select = make("select", { "aria-label": "predicate of the rules" }, make("option", { value: "" }, "all predicates, a few rules of each"),
    ...(stored ? [] : predicates).map((name) => make("option", { value: name }, name)));
  select.value = own;
  select.addEventListener("change", () => { ruled = select.value; refresh("rules"); });
  const groups = new Map();
  for (const rule of reply.rules) {
    const asked = rule.asked === "object" ? `X ${rule.predicate} ?` : `? ${rule.predicate} X`;
    groups.set(asked, [...(groups.get(asked) ?? []), rule]);
  }
  const head = ["known facts of X", ["right", "number"], ["support", "number"], ["pairs", "number"], ["at least", "number"]];
  const tables = [...groups].map(([asked, rules]) => table(head, rules.map(ruleRow), asked));
  where.replaceChildren(select, note("X is given, ? is the answer, Z lies between. right: how many of the known facts of X like this lead to the answer, over all questions, each without the fact it asks for. at least: the lower end of the 95 % interval."),
    ...curvesOf(reply), ...tables, ...reply.remarks.map((remark) => note(remark)));
}

function ruleRow(rule) {
  const facts = rule.facts.map(({ subject, predicate, object, scope }) => make("div", {}, `${subject} `, pageOf("predicate", predicate), ` ${object} `, make("span", { class: "note" }, `(${scope})`)));
  const examples = rule.examples.map(({ asked, known }) => make("div", { class: "note" }, "such as ", ...known.flatMap((fact) => [...sentence(fact), "; "]), "so ", ...sentence(asked)));
  return make("tr", {}, make("td", {}, ...facts, ...examples), make("td", { class: "number" }, make("strong", {}, percent(rule.confidence))),
    ...[`${rule.support.toLocaleString("en")} of ${rule.begins.toLocaleString("en")}`, rule.pairs.toLocaleString("en"), percent(rule.at_least)].map((text) => make("td", { class: "number" }, text)));
}

function curvesOf({ curves, edges, granularity }) {
  // How often known facts lead to the answer, by how long before or after the question they are.
  const questions = [...new Set(curves.map((curve) => curve.question))], places = [...edges.map((edge) => -edge).reverse(), 0, ...edges];
  return questions.map((asked) => {
    const where = make("div"), own = curves.filter((curve) => curve.question === asked);
    const series = own.map(({ fact, begins, ends: right }, number) => ({ name: fact, colour: number % COLOURS, dash: DASHES[number % DASHES.length],
      values: begins.map((count, at) => (count < 5 ? null : right[at] / count)) }));
    const most = Math.max(0.1, ...series.flatMap(({ values }) => values));
    queueMicrotask(() => where.replaceChildren(make("h3", {}, `${asked}: by ${granularity}s before and after`),
      plot(where, { count: places.length, series, most, label: `${asked}: how often facts before and after lead to the answer`, now: [edges.length, edges.length],
        ticks: (width) => places.map((place, at) => [at, place > 0 ? `+${place}` : String(place)]).filter((_, at) => width > 500 || (at - edges.length) % 3 === 0) }), legend(series)));
    return where;
  });
}

function showBacktest(where) {
  const { windows, source } = about.backtest, names = ["path", "recurrency", "latest"], words = ["the model", "recurrency", "latest fact"];
  const series = names.map((name, at) => ({ name: words[at], colour: at, dash: DASHES[at], values: windows.map((window) => window.metrics[name].mrr) }));
  const said = [{ name: "said", colour: 0, dash: "2 3", values: windows.map(({ probability }) => probability) }, { name: "came first", colour: 0, values: windows.map((window) => window.metrics.path.first) }];
  const ticks = (width) => windows.map(({ begin }, at) => [at, begin]).filter((_, at) => at % Math.ceil((windows.length * 90) / width) === 0);
  const cells = windows.map((window) => make("tr", {}, make("td", {}, between(window.begin, window.end)),
    ...[window.facts.toLocaleString("en"), window.probability === null ? "–" : percent(window.probability), percent(window.metrics.path.first), ...names.map((name) => window.metrics[name].mrr.toFixed(3))].map((text) => make("td", { class: "number" }, text))));
  const weighed = (value) => windows.reduce((sum, window) => sum + value(window) * window.metrics.path.questions, 0) / windows.reduce((sum, window) => sum + window.metrics.path.questions, 0);
  where.replaceChildren(make("p", {}, `${source}: over ${many(windows.length, "window")} the first answer was right `, make("strong", {}, percent(weighed((window) => window.metrics.path.first))),
    ` of the time; MRR ${names.map((name, at) => `${weighed((window) => window.metrics[name].mrr).toFixed(3)} ${words[at]}`).join(", ")}.`),
  note("Each window is forecast from what was known before it."));
  for (const [title, lines] of [["MRR", series], ["how sure the first answers were, and how often right", said]]) {
    where.append(make("h3", {}, title), plot(where, { count: windows.length, series: lines, ticks, label: title, share: title !== "MRR" }), legend(lines));
  }
  where.append(table(["begins in", ["facts", "number"], ["said", "number"], ["came first", "number"], ...words.map((word) => [`MRR ${word}`, "number"])], cells, ""));
}

async function showMetrics(where) {
  const rows = [], parts = [], runs = Object.keys(about.runs);
  where.replaceChildren(note("…"));
  for (const run of runs) {
    const inner = make("details", {}, make("summary", {}, `${run}, in full`));
    await attempt(async () => {
      const reply = await get("metrics", { run });
      for (const [what, ...cells] of reply.summary) rows.push(make("tr", {}, make("td", {}, run, make("div", { class: "note" }, what)), ...cells.map((cell) => make("td", { class: "number" }, cell))));
      inner.append(...reply.parts.map((each) => typeof each === "string" ? note(each)
        : table(each.head, each.rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", { dir: "auto" }, cell)))), each.title)));
    }, inner);
    parts.push(inner);
  }
  const head = ["run", ["MRR", "number"], ["right first", "number"], ["among ten", "number"]];
  if (!rows.length) for (const part of parts) part.open = true;
  where.replaceChildren(...(rows.length ? [table(head, rows, "Summary")] : []), ...parts);
  where.classList.add("plain");
}

// The map

const MAPPED = 24; // predicates that have a colour and a shape of their own
const SHAPES = ["M-1 0A1 1 0 1 1 1 0A1 1 0 1 1 -1 0Z", "M0 -1.25L1.15 .8H-1.15Z", "M-.9 -.9H.9V.9H-.9Z", "M0 -1.3L1.1 0L0 1.3L-1.1 0Z"];

async function findMap() {
  // Of any run that has one, the first of those that are shown.
  let why;
  for (const run of new Set([...shownRuns(), ...Object.keys(about.runs)])) {
    const reply = await get("map", { run });
    if (!reply.remark) return [run, reply];
    why ??= reply.remark;
  }
  throw new Wrong(why);
}

async function showMap(where) {
  where.replaceChildren(note("making the map …"));
  const [run, reply] = await findMap(), points = reply.points, count = new Map();
  for (const [, , , source] of points) count.set(source, (count.get(source) ?? 0) + 1);
  const names = Object.entries(reply.predicates).map(([id, name]) => [Number(id), name]).sort(([a], [b]) => count.get(b) - count.get(a));
  const order = new Map(names.map(([id], at) => [id, at])), text = named("Arrow keys move from point to point, Enter asks, + and - zoom, 0 shows all.");
  const select = make("select", { "aria-label": "predicate on the map" }, make("option", { value: "" }, "all predicates"), ...names.map(([id, name]) => make("option", { value: id }, name)));
  const colours = make("select", { "aria-label": "colours of the map" }, make("option", { value: "predicate" }, "coloured by predicate"), make("option", { value: "time" }, "coloured by time"));
  // Neighbours in the order differ in shape, too, and no two are the same in both.
  const shapeOf = (source) => (order.get(source) < MAPPED ? SHAPES[(order.get(source) + Math.floor(order.get(source) / COLOURS)) % SHAPES.length] : SHAPES[0]);
  const classOf = ([, , , source, time]) => (colours.value === "time" ? `t${Math.floor((9.99 * time) / about.times.length)}` : order.get(source) < MAPPED ? `c${order.get(source) % COLOURS}` : "other");
  const symbol = (source, scale, attributes, ...children) => draw("path", { d: shapeOf(source), transform: scale, ...attributes }, ...children);
  let now = -1;
  const shapes = points.map(([x, y, label, source], number) => symbol(source, `translate(${x} ${y}) scale(.008)`,
    { click: () => { point(number); choose(); }, mouseenter: () => point(number) }, draw("title", {}, label)));
  const point = (number) => {
    if (now >= 0) shapes[now].classList.remove("now");
    now = number;
    shapes[now].classList.add("now");
    text.textContent = seen(`${points[now][2]}, about ${about.times[points[now][4]]}`);
  };
  const choose = () => {
    const [, , , source, time, subject] = points[now];
    go({ ask: "object", subject, predicate: reply.predicates[source], object: "", time: about.times[time] });
    element("result").scrollIntoView({ block: "start" });
  };
  const kept = () => points.map((_, number) => number).filter((number) => select.value === "" || points[number][3] === Number(select.value));
  const key = note();
  const paint = () => {
    const near = new Set(kept());
    shapes.forEach((shape, number) => shape.setAttribute("class", `${classOf(points[number])}${near.has(number) ? "" : " far"}${number === now ? " now" : ""}`));
    key.replaceChildren(...(colours.value === "time" ? [startOf(0), draw("svg", { class: "ramp", viewBox: "0 0 10 1", preserveAspectRatio: "none", "aria-hidden": "true" }, ...Array.from({ length: 10 }, (_, at) => draw("rect", { class: `t${at}`, x: at, width: 1, height: 1 }))), stopOf(about.times.length - 1)]
      : names.slice(0, MAPPED).map(([id, name], at) => make("span", { class: "key" }, draw("svg", { width: 14, height: 14, viewBox: "-1.5 -1.5 3 3", "aria-hidden": "true" }, symbol(id, "", { class: `c${at % COLOURS}` })), " ", pageOf("predicate", name)))));
    if (colours.value !== "time" && names.length > MAPPED) key.append(`and ${names.length - MAPPED} more: choose one above`);
  };
  for (const each of [select, colours]) each.addEventListener("change", paint);
  const deep = Math.max(0.3, ...points.map(([, y]) => y)) + 0.04;
  const chart = draw("svg", { class: "points", viewBox: `-0.02 -0.02 1.04 ${deep}`, tabindex: "0", role: "application",
    "aria-label": "Map of scoped predicates: arrow keys move from point to point, Enter asks, plus and minus zoom" }, ...shapes);
  const view = zoomable(chart, (share) => shapes.forEach((shape, number) => shape.setAttribute("transform", `translate(${points[number][0]} ${points[number][1]}) scale(${0.008 * share ** 0.8})`)));
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const near = kept(), at = near.indexOf(now);
      point(near[(at < 0 ? (step > 0 ? 0 : near.length - 1) : at + step + near.length) % near.length]);
      view.reach(points[now]);
    } else if (event.key === "Enter" && now >= 0) choose();
    else if ("+=-0".includes(event.key)) view.zoom({ "-": 1.5, 0: Infinity }[event.key] ?? 1 / 1.5, points[now]);
    else return;
    event.preventDefault();
  });
  paint();
  where.replaceChildren(note(`${run}: vectors by t-SNE. Each point is a scoped predicate; a click asks about one of its facts. The wheel with Ctrl, or two fingers, zoom; dragging moves.`),
    make("div", { class: "fields" }, select, colours), key, chart, make("p", { "aria-live": "polite" }, text)); // below the map, which must not move under the mouse
}

function zoomable(chart, resize) {
  // What of a drawing is shown: zoomed about a place, and dragged, within the whole.
  const { x: first, y: top, width: whole, height } = chart.viewBox.baseVal, tall = height / whole, pressed = new Map();
  let x = first, y = top, size = whole, dragged = false;
  const placeOf = ({ clientX, clientY }) => new DOMPoint(clientX, clientY).matrixTransform(chart.getScreenCTM().inverse());
  const show = (left, above) => {
    x = Math.min(first + whole - size, Math.max(first, left));
    y = Math.min(top + (whole - size) * tall, Math.max(top, above));
    chart.setAttribute("viewBox", `${x} ${y} ${size} ${size * tall}`);
    chart.style.touchAction = size < whole ? "none" : "pan-x pan-y"; // else a finger scrolls the page
  };
  const zoom = (by, [across, down] = [x + size / 2, y + (size * tall) / 2]) => {
    const before = size;
    size = Math.min(whole, Math.max(whole / 64, size * by));
    show(across - ((across - x) * size) / before, down - ((down - y) * size) / before);
    resize(size / whole);
  };
  const reach = ([across, down]) => {
    if (across < x || across > x + size || down < y || down > y + size * tall) show(across - size / 2, down - (size * tall) / 2);
  };
  chart.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // the page scrolls
    event.preventDefault();
    const { x: across, y: down } = placeOf(event);
    zoom(Math.exp(Math.max(-50, Math.min(50, event.deltaY)) / 100), [across, down]);
  }, { passive: false });
  chart.addEventListener("pointerdown", (event) => {
    dragged = false;
    pressed.set(event.pointerId, event);
  });
  chart.addEventListener("pointermove", (event) => {
    if (!event.buttons) pressed.delete(event.pointerId); // let go outside
    const before = pressed.get(event.pointerId), other = [...pressed.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    if (!before || (!dragged && Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) < 4)) return;
    dragged = true;
    chart.setPointerCapture(event.pointerId);
    pressed.set(event.pointerId, event);
    const [from, to] = [placeOf(before), placeOf(event)];
    if (!other) return show(x + from.x - to.x, y + from.y - to.y);
    const still = placeOf(other), apart = (at) => Math.hypot(at.x - still.x, at.y - still.y);
    zoom(apart(from) / Math.max(apart(to), size / 1e3), [still.x, still.y]);
  });
  for (const name of ["pointerup", "pointercancel"]) chart.addEventListener(name, ({ pointerId }) => pressed.delete(pointerId));
  chart.addEventListener("click", (event) => dragged && event.stopPropagation(), { capture: true }); // a drag is no click
  show(x, y);
  return { zoom, reach };
}

const SECTIONS = { tests: showTests, doubts: showDoubts, rules: showRules, backtest: showBacktest, metrics: showMetrics, map: showMap };

function refresh(name) {
  const section = element(name), where = section.querySelector("div");
  if (section.open && !section.hidden) attempt(() => SECTIONS[name](where), where);
}

// The beginning

function showBeginning() {
  const runs = Object.keys(about.runs);
  element("purpose").textContent = `Ask who, what, which predicate and when in ${about.facts.toLocaleString("en")} dated facts, ${startOf(0)} to ${stopOf(about.times.length - 1)}, and see the facts behind each answer.` +
    (stored ? ` This page has no server: it holds ${about.held}.` : "");
  element("examples").append(...about.examples.map((asked) => make("li", {}, linkTo(asked, textOf(asked)))));
  element("runs").hidden = runs.length < 2;
  element("doubts").hidden = !about.doubts.length;
  element("backtest").hidden = !about.backtest;
  element("run").append(...runs.map((run) => make("option", { value: run }, run)));
  element("beside").append(make("option", { value: "" }, "none"), ...runs.map((run) => make("option", { value: run }, run)));
  element("question").hidden = Boolean(stored);
  element("own").hidden = stored && runs.length < 2;
  const phone = matchMedia("(max-width: 700px)"), fold = () => { element("own").open = !phone.matches; }; // there the answer comes first
  fold();
  phone.addEventListener("change", fold);
}

function listen() {
  element("question").addEventListener("submit", (event) => { event.preventDefault(); go(readForm()); });
  for (const choice of document.querySelectorAll("input[name=ask]")) choice.addEventListener("change", markAsked);
  for (const name of ["run", "beside"]) {
    element(name).addEventListener("change", () => { go({ [name]: element(name).value }); refresh("map"); });
  }
  element("hide").addEventListener("change", () => {
    question.known = element("hide").checked ? "drop" : "";
    keepTime();
    showAnswers();
    showHistory();
    explainBest(0);
  });
  element("slider").addEventListener("input", () => move(Number(element("slider").value)));
  element("slider").addEventListener("change", keepTime);
  element("command").addEventListener("click", () => copy(asCommand()));
  element("python").addEventListener("click", () => copy(asPython()));
  element("link").addEventListener("click", () => copy(location.href));
  for (const kind of ["csv", "json"]) element(kind).addEventListener("click", () => download(kind));
  for (const name of Object.keys(SECTIONS)) element(name).addEventListener("toggle", () => refresh(name));
  window.addEventListener("popstate", () => { question = readAddress(); fillForm(); ask(); });
  let resized = 0;
  window.addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => { redraw(); showHistory(); }, 150); });
}

async function begin() {
  const data = JSON.parse(element("data").textContent);
  if (data !== null) stored = await unpack(data);
  token();
  about = await get("about");
  question = readAddress();
  showBeginning();
  history.replaceState(null, "", addressOf(question));
  fillForm();
  if (!stored) for (const field of document.querySelectorAll("[data-names]")) suggestNames(field);
  listen();
  await ask();
  document.body.dataset.ready = "yes";
}

attempt(begin);
