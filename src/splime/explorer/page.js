// Asking: the question, its answers over time, and why

let question; // ask, subject, predicate, object, time, run, beside, known; and whose facts are shown
let place = null; // the timestamp of the slider; null while it shows the time that was asked about
let results = new Map(); // the answers of each run that is shown
let turn = 0; // of the question; replies to earlier ones are dropped
let reason = 0; // of the evidence, likewise

// The address holds the question

function readAddress() {
  const given = new URLSearchParams(location.search), runs = Object.keys(about.runs);
  const one = (name, otherwise, allowed) => {
    const value = given.get(name);
    return value === null || (allowed && !allowed.includes(value)) ? otherwise : value;
  };
  const read = { ask: one("ask", "object", [...NAMES, "time"]) };
  for (const name of [...NAMES, "time"]) read[name] = one(name, "");
  read.run = one("run", runs[0], runs);
  read.beside = one("beside", given.has("ask") ? "" : runs[1] || "", ["", ...runs]);
  read.known = one("known", "", ["drop"]);
  read.about = one("about", "", ["entity", "predicate"]);
  read.of = one("of", "");
  if (!given.has("ask") && about.examples.length) Object.assign(read, about.examples[0]);
  return read;
}

function aboutFact(fact, ask) {
  const asked = { ask, time: ask === "time" ? "" : fact.time };
  for (const name of NAMES) asked[name] = name === ask ? "" : fact[name];
  return asked;
}

const addressOf = (asked) => "?" + new URLSearchParams(Object.entries(asked).filter(([name, value]) => value || !["known", "about", "of"].includes(name)));
const argumentsOf = (run, asked) =>
  ({ run, ask: asked.ask, subject: asked.subject, predicate: asked.predicate, object: asked.object, time: asked.time });

function linkTo(asked, text) {
  const whole = { ...question, ...asked };
  if (!has("ask", argumentsOf(whole.run, whole))) return named(text);
  return anchor({ ...asked, about: "", of: "" }, text, () => go(asked));
}

function pageOf(kind, name) {
  // A name that leads to its facts.
  if (!has("facts", { kind, name })) return named(name);
  return anchor({ about: kind, of: name }, name, () => {
    Object.assign(question, { about: kind, of: name });
    history.pushState(null, "", addressOf(question));
    showPage(kind, name);
  });
}

function anchor(asked, text, act) {
  return make("a", { class: "name", dir: "auto", href: addressOf({ ...question, ...asked }), click: (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    act();
  } }, text);
}

const WORDS = { object: "What", subject: "Who", predicate: "Which predicate", time: "When" };
const timeOf = (asked) => (asked.ask === "time" ? "" : asked.time ? ` at ${asked.time}` : ", over the whole time");
const textOf = (asked) => `${WORDS[asked.ask]}: ${NAMES.map((name) => (name === asked.ask ? "?" : asked[name])).join(" ")}${timeOf(asked)}`;

function go(asked) {
  question = { ...question, ...asked, about: "", of: "" };
  history.pushState(null, "", addressOf(question));
  fillForm();
  return ask();
}

// The form. A field shows what is in a name; the name itself is beside it, until it is changed.

function put(field, name) {
  field.value = seen(name);
  Object.assign(field.dataset, { name, shown: field.value });
}

const nameIn = (field) => (field.value === field.dataset.shown ? field.dataset.name : field.value);

function fillForm() {
  document.querySelector(`input[name=ask][value=${question.ask}]`).checked = true;
  for (const name of [...NAMES, "time"]) put(element(name), question[name]);
  element("run").value = question.run;
  element("beside").value = question.beside;
  element("hide").checked = question.known === "drop";
  markAsked();
}

function markAsked() {
  const asked = document.querySelector("input[name=ask]:checked").value;
  for (const name of [...NAMES, "time"]) {
    const field = element(name);
    field.disabled = name === asked;
    if (name === asked) put(field, "");
    field.placeholder = name === asked ? "?" : name === "time" ? "all of it" : "";
  }
}

function readForm() {
  const asked = { ask: document.querySelector("input[name=ask]:checked").value };
  for (const name of [...NAMES, "time"]) asked[name] = name === asked.ask ? "" : nameIn(element(name));
  return asked;
}

function suggestNames(field) {
  // A text field with a list of names below it, for the mouse and for the keys.
  const list = make("ul", { role: "listbox", id: field.id + "-names", hidden: "" });
  field.after(list);
  for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"], ["aria-controls", list.id]]) {
    field.setAttribute(name, value);
  }
  let waiting = 0, number = 0, at = -1;
  const close = () => {
    number += 1;
    clearTimeout(waiting);
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };
  const choose = (item) => { put(field, item.dataset.name); close(); };
  const step = (to) => {
    const items = list.children;
    if (!items.length) return;
    at = (to + items.length) % items.length;
    for (const item of items) item.setAttribute("aria-selected", item === items[at]);
    items[at].scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", items[at].id);
  };
  const search = () => attempt(async () => {
    const own = ++number, reply = await get("names", { kind: field.dataset.names, text: nameIn(field) });
    if (own !== number) return;
    at = -1;
    list.replaceChildren(...reply.names.map(([name, facts], position) => {
      const item = make("li", { role: "option", id: `${list.id}-${position}`, "aria-selected": "false", click: () => choose(item) },
        named(name), make("small", {}, many(facts, "fact")));
      item.dataset.name = name;
      item.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
      return item;
    }));
    list.hidden = !reply.names.length;
    field.setAttribute("aria-expanded", String(!list.hidden));
  });
  field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 120); });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && list.hidden) search();
    else if (event.key === "ArrowDown") step(at + 1);
    else if (event.key === "ArrowUp" && !list.hidden) step(at < 0 ? -1 : at - 1);
    else if (event.key === "Enter" && !list.hidden && at >= 0) choose(list.children[at]);
    else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
  });
}

// Answers

const shownRuns = () => [...new Set([question.run, question.beside])].filter(Boolean);

async function ask() {
  const own = ++turn, asked = { ...question };
  reason += 1;
  element("reasons").replaceChildren();
  place = null;
  results = new Map();
  element("message").textContent = "";
  for (const id of ["page", "copied"]) element(id).hidden = true;
  if (!NAMES.some((name) => question[name])) { // nothing is asked yet: there is nothing to begin with
    element("result").hidden = true;
    return;
  }
  element("result").setAttribute("aria-busy", "true");
  await attempt(async () => {
    for (const run of shownRuns()) {
      let result;
      try {
        result = await get("ask", argumentsOf(run, question));
      } catch (error) {
        if (!(error instanceof Wrong)) throw error;
        result = { missing: error.message }; // the other run may have answers
      }
      if (own !== turn) return;
      results.set(run, result);
    }
    const first = [...results.values()].find((result) => result.kind);
    if (!first) throw new Wrong(results.get(question.run).missing);
    element("result").hidden = false;
    showQuestion();
    element("moving").hidden = first.kind === "time";
    if (first.kind !== "time") setSlider(first.place);
    showAnswers();
    explainBest(0);
    if (question.about) showPage(question.about, question.of);
    await showScopes(own);
  });
  element("result").removeAttribute("aria-busy");
  if (own !== turn) return;
  if (element("message").textContent) element("result").hidden = true;
  else for (const run of shownRuns()) await askAround(run, asked);
}

async function askAround(run, asked) {
  // A model that takes longer for each time has answered at one; the others come after it.
  const result = results.get(run);
  if (!result?.more) return;
  try {
    const reply = await get("times", argumentsOf(run, asked));
    if (results.get(run) === result) results.set(run, reply);
  } catch (error) {
    if (!(error instanceof Wrong)) throw error; // the slider asks again
  }
  showHistory();
  if (place !== null) showAnswers();
}

function showQuestion() {
  const names = NAMES.flatMap((name) => [name === question.ask ? "?" : pageOf(name === "predicate" ? name : "entity", question[name]), " "]);
  names.pop();
  element("asked").replaceChildren(...asText([`${WORDS[question.ask]}: `, ...names, timeOf(question)]));
}

function setSlider(at) {
  const slider = element("slider"), label = place === null && question.time !== about.times[at] ? question.time || "all of it" : about.times[at];
  slider.max = about.times.length - 1;
  slider.value = at;
  slider.setAttribute("aria-valuetext", label);
  element("moment").textContent = label;
}

function move(at) {
  place = at;
  question.time = about.times[at];
  put(element("time"), question.time);
  setSlider(at);
  showQuestion();
  for (const result of results.values()) if (result.kind) result.missing = undefined;
  showAnswers();
  showHistory();
  explainBest(250);
  clearTimeout(move.waiting);
  move.waiting = setTimeout(askFurther, 150);
}

const keepTime = () => history.replaceState(null, "", addressOf(question));

async function askFurther() {
  // Only where a run was not asked at this time yet: its times are many, or it takes long for each.
  const own = turn, at = place;
  for (const run of shownRuns()) {
    if (!results.get(run).kind || stepOf(results.get(run))) continue;
    const asked = { ...question, time: about.times[at] };
    try {
      const result = await get("ask", argumentsOf(run, asked));
      if (own === turn) results.set(run, result);
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      if (own === turn) results.get(run).missing = error.message;
    }
    if (own !== turn) return;
    showAnswers();
    explainBest(0);
    await askAround(run, asked);
    if (own !== turn) return;
  }
}

function stepOf(result) {
  // The answers at the time of the slider; nothing if there are none (yet).
  if (!result?.kind || result.kind === "time") return undefined;
  if (place === null) return result.here;
  return stepAt(result, place);
}

function stepAt(result, at) {
  if (at < result.first || at >= result.first + result.count) return undefined;
  return result.steps.findLast((step) => step.from <= at);
}

function shownRows(step) {
  // The first ten, or the first ten that no fact states: place, and then what the server says.
  const kept = question.known === "drop" ? step.rows.filter(([, , , , known]) => !known) : step.rows.filter(([rank]) => rank <= 10);
  return kept.slice(0, 10).map(([rank, ...rest], at) => [question.known === "drop" ? at + 1 : rank, ...rest]);
}

// The timestamps that are asked about; nothing where that is all of them, or later.
const spanOf = (result) => (question.ask === "time" || !question.time || (place === null && result.ahead) ? undefined : place === null ? [result.place, result.last] : [place, place]);

const truthsOf = (result) => result.truths.filter(([at]) => at === (place === null ? -1 : place));

function statedOf(result) {
  // How probable it is that there is such a fact at all, and how many there are.
  if (!result?.stated) return undefined;
  return place === null ? result.stated[0] : result.stated[1 + place - result.first];
}

function existsText([probability, stated]) {
  return stated ? `The table states ${many(stated, "such fact")} at that time; probability of another: ${percent(probability)}.` : `Probability that the table states such a fact at all: ${percent(probability)}.`;
}

function showAnswers() {
  const runs = shownRuns();
  element("both").className = runs.length > 1 ? "two" : "one";
  showBest();
  element("answers").replaceChildren(...runs.map((run) => {
    const result = results.get(run), part = make("div", {});
    if (result.kind === "time") part.append(...spanTables(run, result));
    else if (!stepOf(result)) part.append(note(`${run}: ${result.missing ?? "asking …"}`));
    else part.append(...answerTable(run, result));
    for (const remark of result.remarks ?? []) part.append(note(remark));
    return part;
  }));
}

function bestOf(result) {
  // The name of the best answer, and how probable it is.
  if (result?.kind === "time") {
    const [best] = shownSpans(result);
    return best && [between(best.begin, best.end), best.probability, best.name];
  }
  const step = stepOf(result), row = step && shownRows(step)[0];
  return row && [row[1], row[3], row[1]];
}

function showBest() {
  const result = [...results.values()].find((each) => bestOf(each)), [name, sure] = bestOf(result) ?? [], there = statedOf(result);
  if (name === undefined) return element("best").replaceChildren();
  const stated = there ? [" ", make("span", { class: "note" }, existsText(there))] : [];
  const link = ["subject", "object"].includes(question.ask) ? pageOf("entity", name) : named(name);
  element("best").replaceChildren(make("strong", {}, link), ...asText(sure === null ? [] : [` ${percent(sure)}, if there is such a fact.`]), ...stated);
}

function knownMark(known) {
  return known ? make("span", { class: "known " + known.split(/[ ,]/)[0] }, known) : "";
}

// The same for the tables of two runs, however wide their columns are.
const barWidth = (share) => `calc(${Math.max(0.01, share)} * var(--bars))`;

function bar(share) {
  const made = make("span", { class: "sure" });
  made.style.width = barWidth(share);
  return made;
}

function changeOf(run, name, rank) {
  // How an answer's place differs from the one in the first run.
  const [first] = shownRuns(), other = stepOf(results.get(first));
  if (run === first || !other) return undefined;
  const before = shownRows(other).find((row) => row[1] === name)?.[0], by = before - rank;
  if (before === undefined) return make("td", { class: "number" }, make("span", { title: `not among the ten of ${first}` }, "new"));
  return make("td", { class: "number" }, by ? make("span", { title: `place ${before} in ${first}` }, (by > 0 ? "↑" : "↓") + Math.abs(by)) : "=");
}

function answerTable(run, result) {
  const step = stepOf(result), truths = truthsOf(result), right = new Set(truths.map(([, name]) => name));
  const rows = shownRows(step), remarks = new Set(rows.map((row) => row[5] || "")), common = remarks.size === 1 ? [...remarks][0] : "";
  const scored = rows.every(([, , , sure]) => sure === null); // without probabilities, scores say which is better
  const compared = run !== shownRuns()[0] && stepOf(results.get(shownRuns()[0]));
  const made = rows.map(([rank, name, score, sure, known, remark, scope]) => {
    const notes = [common ? "" : remark, scope && scope !== name ? scope : ""].filter(Boolean).join("; ");
    const number = scored ? digits(score) : sure === null ? "" : percent(sure);
    return make("tr", right.has(name) ? { class: "right" } : {},
      make("td", { class: "number" }, String(rank)),
      make("td", {}, answerButton(run, name),
        notes ? make("div", { class: "note name", dir: "auto" }, notes) : "", scored ? "" : bar(sure ?? 0)),
      make("td", { class: "number" }, number),
      compared ? changeOf(run, name, rank) : "",
      make("td", {}, knownMark(known)));
  });
  const head = [["", "number"], "answer", [scored ? "score" : "probability", "number"], ...(compared ? [["change", "number"]] : []), "known"];
  const parts = [table(head, made, `${run} – ${about.runs[run]}`)];
  if (!rows.length) parts.push(note("All answers that were looked at are known."));
  for (const [, name, rank, among] of truths) {
    parts.push(make("p", {}, "Test says ", pageOf(question.ask === "predicate" ? "predicate" : "entity", name), `: rank ${rank.toLocaleString("en")}`,
      among === rank ? "" : `, ${among.toLocaleString("en")} without other known answers`));
  }
  if (step.scope && result.kind !== "predicate") parts.push(make("p", { class: "note name", dir: "auto" }, "scored by " + step.scope));
  if (common && !result.remarks.some((remark) => remark.includes(common))) parts.push(note(common));
  return parts;
}

function answerButton(run, name, text = name) {
  if (!has("why", { ...argumentsOf(run, question), answer: name })) return named(text);
  return make("button", { type: "button", class: "name", dir: "auto", title: "why?", click: () => explain(run, name, true) }, text);
}

function shownSpans({ spans }) {
  const ranked = [...spans].sort((one, other) => one.rank - other.rank);
  return question.known === "drop" ? ranked.filter(({ known }) => !known) : ranked;
}

const MANY = 30; // spans that are all in the table; of more it has the best, and a picture has all

function spanTables(run, result) {
  const scored = result.spans.every(({ probability }) => probability === null);
  const row = ({ rank, name, score, probability: sure, known, remark, begin, end, share }) => make("tr", known ? { class: "right" } : {},
    make("td", { class: "number" }, String(rank)),
    make("td", {}, answerButton(run, name, between(begin, end)), make("div", { class: "note name", dir: "auto" }, [name === question.predicate ? "" : name, remark].filter(Boolean).join("; ")), bar(share)),
    make("td", { class: "number" }, scored ? digits(score) : sure === null ? "" : percent(sure)),
    make("td", {}, knownMark(known)));
  const { spans } = result, ranked = shownSpans(result), caption = `${run} – ${about.runs[run]}`;
  const head = [["", "number"], "answer", [scored ? "score" : "probability", "number"], "known"];
  if (spans.length <= MANY) return [spanChart(run, spans), table(head, ranked.map(row), caption)];
  const best = ranked.filter(({ rank }) => rank <= 10), also = ranked.filter(({ rank, known }) => rank > 10 && known).slice(0, 5);
  const rest = make("details", {}, make("summary", {}, `All ${spans.length.toLocaleString("en")} in the order of time`));
  rest.addEventListener("toggle", () => rest.open && rest.append(table(head, spans.map(row), caption)), { once: true });
  return [spanChart(run, spans), table(head, [...best, ...also].map(row), caption + ", the best and the known"), rest];
}

function spanChart(run, spans) {
  // How likely each span is beside the best one, over the time of the graph.
  const starts = about.times.map((_, at) => startOf(at)), stops = about.times.map((_, at) => stopOf(at));
  const bars = spans.flatMap(({ name, share, begin, end, known }) => {
    const first = starts.indexOf(begin), last = stops.indexOf(end);
    if (first < 0 || last < first) return [];
    return [draw("rect", { x: first, y: 1 - share, width: last - first + 1, height: share, class: known ? known.split(/[ ,]/)[0] : "" }, draw("title", {}, name))];
  });
  return make("div", {}, draw("svg", { class: "held spans", viewBox: `0 0 ${about.times.length} 1`, preserveAspectRatio: "none", role: "img",
    "aria-label": `${seen(run)}: how likely each time is beside the best one` }, ...bars), ends());
}

const ends = () => make("div", { class: "ends" }, make("span", {}, startOf(0)), make("span", {}, stopOf(about.times.length - 1)));

// The answers over time

function showHistory() {
  const shown = shownRuns().map((run) => [run, results.get(run), stepOf(results.get(run))]).filter(([, result, step]) => step && result.count > 1);
  const best = (step) => shownRows(step).slice(0, 5).map(([, name]) => name);
  const colours = [...new Set(shown.flatMap(([, , step]) => best(step)))]; // the same for both runs
  const charts = shown.flatMap(([run, result, step]) => historyOf(run, result, best(step), colours));
  element("history").querySelector(".charts")?.replaceChildren(...charts);
}

function historyOf(run, result, names, colours) {
  const count = about.times.length, steps = about.times.map((_, at) => stepAt(result, at));
  const scored = result.steps.every(({ rows }) => rows.every(([, , , sure]) => sure === null));
  const lines = names.flatMap((name) => {
    const number = colours.indexOf(name);
    const rows = steps.map((each) => each && (each.rows.find((row) => row[1] === name) ?? null));
    const valueOf = (row, at) => (row === undefined ? null : row === null ? 0 : scored ? Math.exp(row[2] - steps[at].rows[0][2]) : row[3] ?? (row[4] ? 1 : null));
    const look = { colour: number % COLOURS, dash: DASHES[number % DASHES.length], stepped: true };
    const taught = rows.map((row) => (row?.[3] === null && row[4] && !scored ? 1 : null));
    return [{ name, values: rows.map(valueOf), ...look }, ...(taught.some(Boolean) ? [{ values: taught, ...look, dash: "", kind: "stated" }] : [])];
  });
  if (result.stated) {
    const values = about.times.map((_, at) => result.stated[1 + at - result.first]?.[0] ?? null);
    lines.push({ text: "such a fact at all", values, colour: "x", dash: "1 4", stepped: true });
  }
  const what = scored ? "How likely each answer is beside the best one" : "The probability of each answer, if there is such a fact";
  return [make("h3", {}, `${shownRuns().length > 1 ? `${seen(run)}: ` : ""}the answers over time`),
    plot(element("history"), { count, series: lines, now: spanOf(result), label: `${run}: ${what}, over time`, choose: (at) => { move(at); keepTime(); },
      ticks: (width) => timeTicks(0, count - 1, width).map((at) => [at, startOf(at)]) }),
    legend(lines.filter(({ kind }) => kind !== "stated")),
    note(`${what}. Thick: train states it. At 0: not among the first ten.`)];
}

async function showScopes(own) {
  const parts = [make("div", { class: "charts" })], where = element("history");
  for (const run of question.predicate && question.ask !== "time" ? shownRuns() : []) {
    await attempt(async () => {
      const reply = await get("predicate", { run, name: question.predicate }), count = about.times.length;
      const most = Math.max(1, ...reply.held), track = make("div", { class: "tracks" });
      if (parts.length === 1) {
        parts.push(make("h3", {}, "facts of ", pageOf("predicate", question.predicate), " in train that hold"));
        parts.push(draw("svg", { class: "held", viewBox: `0 0 ${count} 1`, preserveAspectRatio: "none", "aria-hidden": "true" },
          ...reply.held.map((held, at) => draw("rect", { x: at, y: 1 - held / most, width: 1, height: held / most }))));
      }
      if (reply.scopes.length) {
        track.append(note(`${run}: ${many(reply.scopes.length, "scope")}`), draw("svg", { class: "strip", viewBox: `0 0 ${count} 1`, preserveAspectRatio: "none", role: "img", "aria-label": `${reply.scopes.length} scopes` },
          ...reply.scopes.map(([label, first, last]) => draw("rect", { x: first, y: 0, width: last - first + 1, height: 1, click: () => { move((first + last) >> 1); keepTime(); } }, draw("title", {}, label)))));
      } else if (reply.remark) track.append(note(`${run}: ${reply.remark}`));
      parts.push(track);
    }, undefined);
    if (own !== turn) return;
  }
  if (parts.length > 1) parts.push(ends());
  where.replaceChildren(...parts);
  showHistory();
}

// Why

function explainBest(wait) {
  // The best answer at the time that is shown, of a run that says what its answers rest on.
  const runs = shownRuns(), run = runs.find((each) => about.explains.includes(each) && bestOf(results.get(each))) ?? runs.find((each) => bestOf(results.get(each)));
  const own = ++reason, best = run && bestOf(results.get(run));
  element("reasons").replaceChildren();
  if (!best) return;
  if (!has("why", { ...argumentsOf(run, question), answer: best[2] })) {
    element("reasons").replaceChildren(note("This page holds no evidence for that time; it has some at the time of the question."));
    return;
  }
  if (!wait) explain(run, best[2], false);
  else setTimeout(() => { if (own === reason) explain(run, best[2], false); }, wait);
}

async function explain(run, answer, focus) {
  const own = ++reason, where = element("reasons"), asked = { ...argumentsOf(run, question), answer };
  const shown = question.ask === "time" ? NAMES.map((name) => question[name]).join(" ") : answer;
  const title = make("h2", { id: "why", dir: "auto" }, question.ask === "time" ? "Near it: " : "Why ", named(shown), question.ask === "time" ? "" : "?");
  const body = make("div", {}, note("looking for the facts …"));
  where.replaceChildren(title, body);
  await attempt(async () => {
    const reply = await get("why", asked);
    if (own !== reason) return;
    showEvidence(body, reply, run, answer);
    if (!focus) return;
    where.focus({ preventScroll: true });
    where.scrollIntoView({ block: "nearest" });
  }, body);
}

function showEvidence(where, { facts, chains }, run, answer) {
  const facing = { object: "subject", subject: "object" }[question.ask], given = question[facing] ?? question.subject;
  const last = facing ? answer : question.object, result = results.get(run);
  const unknown = about.explains.includes(run) ? "Only answers to who and what come with the facts they rest on." : "This model does not show which facts an answer rests on.";
  const lead = chains ? "The known facts behind the answer, at their times. A line leads from each fact to its object."
    : `${unknown} These are the nearest known facts with the same predicate and one of the entities.`;
  if (!facts.length) return where.replaceChildren(note(chains ? "No chain of known facts leads there." : `${lead} There are none.`));
  const weights = facts.map((_, at) => (chains ?? []).reduce((sum, [adds, steps]) => sum + (steps.some(([number]) => number === at) ? adds : 0), 0));
  const scopes = new Map((chains ?? []).flatMap(([, steps]) => steps));
  const listed = facts.map((fact, number) => ({ ...fact, number, scope: scopes.get(number) ?? "" }));
  const [from, to] = spanOf(result) ?? [], asked = from === undefined ? null : { first: from, last: to };
  const detail = make("p", { class: "detail", "aria-live": "polite" }, "Choose a fact or a name in the picture.");
  const showFact = (fact) => detail.replaceChildren(...sentence(fact), " ", ...["object", "subject", "time"].flatMap((ask) => [linkTo(aboutFact(fact, ask), WORDS[ask].toLowerCase() + "?"), " "]));
  const picture = make("div"), drawn = make("div", {}, picture, detail);
  where.replaceChildren(note(lead), chains ? make("div", { class: "beside" }, drawn, chainList(listed, chains, picture)) : drawn);
  const render = () => picture.replaceChildren(evidenceChart(picture, { facts: listed, weights, first: given, last, asked, showFact, showName: (name) => pageOf("entity", name).click() }));
  render();
  redraw = render;
}

let redraw = () => {}; // the evidence, when the window has another width

function sentence(fact) {
  return [pageOf("entity", fact.subject), " ", pageOf("predicate", fact.predicate), " ", pageOf("entity", fact.object), `, ${between(fact.begin, fact.end)}`, ...(fact.scope ? [make("span", { class: "note" }, ` (${fact.scope})`)] : [])];
}

function chainList(facts, chains, picture) {
  // Chains with the same beginning share it. What a pointer or the focus is on stands out in the picture.
  const tree = { next: new Map() };
  for (const [adds, steps] of chains) {
    let node = tree;
    for (const [number] of steps) {
      if (!node.next.has(number)) node.next.set(number, { next: new Map(), within: new Set() });
      node = node.next.get(number);
      for (const [each] of steps) node.within.add(each);
    }
    node.adds = (node.adds ?? 0) + adds;
  }
  const light = (within) => {
    for (const bar of picture.querySelectorAll("[data-number]")) bar.classList.toggle("far", Boolean(within) && !within.has(Number(bar.dataset.number)));
  };
  const level = ({ next }) => make("ul", { class: "chains" }, ...[...next].map(([number, node]) => {
    const line = make("div", { mouseenter: () => light(node.within), mouseleave: () => light(), focusin: () => light(node.within), focusout: () => light() },
      ...sentence(facts[number]), node.adds === undefined ? "" : make("strong", { title: "what it adds to the score" }, ` +${node.adds.toPrecision(2)}`));
    return make("li", {}, line, node.next.size ? level(node) : "");
  }));
  return level(tree);
}

// Copies and downloads: what is shown

// As a shell and Python read it; a name that is a mark of a question has a backslash before it.
const escaped = (text) => text.replace(UNSEEN, (one) => "\\u" + one.codePointAt(0).toString(16).padStart(4, "0"));
const inPython = (text) => escaped(JSON.stringify(text));

function inShell(text) {
  if (text !== seen(text)) return `$'${escaped(text.replaceAll("\\", "\\\\").replaceAll("'", "\\'"))}'`;
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\"'\"'")}'`;
}

const marked = (name, marks) => (marks.test(name) ? "\\" + name : name);

function asCommand() {
  const names = NAMES.map((name) => (name === question.ask ? "?" : marked(question[name], /^\\*[?_]$/)));
  const when = question.ask === "time" || !question.time ? [] : [question.time.includes("..") ? "--during" : "--at", question.time];
  const more = [...when, ...(question.known === "drop" ? ["--known", "drop"] : []), ...(about.explains.includes(question.run) && ["object", "subject"].includes(question.ask) ? ["--why"] : [])];
  const all = [about.sources[question.run], ...names];
  return ["splime", "ask", ...(all.some((word) => word.startsWith("-")) ? [...more, "--", ...all] : [...all, ...more])].map(inShell).join(" ");
}

function asPython() {
  const names = NAMES.map((name) => (name === question.ask ? "?" : marked(question[name], /^\\*\?$/)));
  const [begin, end] = question.time.split(".."), when = question.ask === "time" || !question.time ? "" : end ? `, during=(${inPython(begin)}, ${inPython(end)})` : `, at=${inPython(begin)}`;
  const known = question.known === "drop" ? ', known="drop"' : "";
  return `import splime\n\nprint(splime.ask(${[about.sources[question.run], ...names].map(inPython).join(", ")}${when}${known}))`;
}

async function copy(text) {
  const shown = element("copied");
  shown.hidden = false;
  shown.textContent = seen(text);
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(shown); // where a page may not, a person can
  }
}

function shownAnswers() {
  const rows = [];
  for (const run of shownRuns()) {
    const result = results.get(run), names = Object.fromEntries(NAMES.map((name) => [name, name === question.ask ? "?" : question[name]]));
    const time = question.ask === "time" ? null : place === null ? question.time || "all" : about.times[place];
    if (result.kind === "time") {
      for (const { rank, name, score, probability, begin, end, known, remark } of result.spans) {
        rows.push({ run, ...names, time, rank, answer: name, score, probability, scope: between(begin, end), known, remark });
      }
      continue;
    }
    const step = stepOf(result);
    for (const [rank, answer, score, probability, known, remark, scope] of step ? shownRows(step) : []) {
      rows.push({ run, ...names, time, rank, answer, score, probability, scope: scope ?? step.scope, known, remark });
    }
  }
  return rows;
}

// Text that a spreadsheet would run as a formula begins with an apostrophe, as in files of splime.
const FORMULA = /^'*[=+\-@\t\r\n\x00]/, NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

function csvCell(value) {
  const text = String(value ?? ""), safe = FORMULA.test(text) && !NUMBER.test(text) ? "'" + text : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function download(kind) {
  const rows = shownAnswers(), head = Object.keys(rows[0] || {});
  const text = kind === "json" ? JSON.stringify(rows, null, 2) + "\n"
    : [head, ...rows.map((row) => head.map((name) => row[name]))].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
  const address = URL.createObjectURL(new Blob([text], { type: kind === "json" ? "application/json" : "text/csv" }));
  make("a", { href: address, download: "answers." + kind }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
