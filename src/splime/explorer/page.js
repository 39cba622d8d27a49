"use strict";
// The page asks the server for its parts as JSON, or looks them up in the data that the page itself
// holds (a page that was written with --out). Names only ever become text, never markup.

const NAMES = ["subject", "predicate", "object"];
const element = (id) => document.getElementById(id);
const stored = JSON.parse(element("data").textContent);

let about; // the runs and the times
let question; // ask, subject, predicate, object, time, run, beside
let place = null; // the timestamp of the slider; null while it shows the time that was asked about
let results = new Map(); // the answers of each run that is shown
let turn = 0; // of the question; replies to earlier ones are dropped

// Asking the server

class Wrong extends Error {}

const keyOf = (part, given) => JSON.stringify([part, ...Object.values(given)]);

function token() {
  // It is in the first address only; the browser keeps it for this host and port.
  if (!stored && location.hash.length > 1) {
    localStorage.setItem("token", location.hash.slice(1));
    history.replaceState(history.state, "", location.pathname + location.search);
  }
  return localStorage.getItem("token") || "";
}

// Whether it can be asked for; a page of one file holds some answers only.
const has = (part, given) => !stored || keyOf(part, given) in stored;

async function get(part, given = {}) {
  let answer;
  if (stored) {
    answer = stored[keyOf(part, given)] || { error: "This page was written without the answer to that." };
  } else {
    let reply;
    try {
      reply = await fetch("api/" + part + "?" + new URLSearchParams(given), { headers: { "X-Splime-Token": token() } });
      answer = await reply.json();
    } catch {
      throw new Wrong("The server does not answer; is splime explore still running?");
    }
  }
  if (answer.error) throw new Wrong(answer.error);
  return answer;
}

async function attempt(work, where) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    if (where) where.replaceChildren(make("p", { class: "note" }, error.message));
    else {
      element("message").textContent = seen(error.message);
      element("message").scrollIntoView({ block: "nearest" });
    }
  }
}

// Making elements; what is text stays text

// What would be obeyed instead of seen, such as marks of direction, as in the terminal.
const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]/gu;
const seen = (text) => text.replace(UNSEEN, (one) => (one < " " ? "\\x" : "\\u") + one.codePointAt(0).toString(16).padStart(one < " " ? 2 : 4, "0"));
const asText = (children) => children.map((child) => (typeof child === "string" ? seen(child) : child));

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...asText(children));
  return made;
}

function draw(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...asText(children));
  return made;
}

const named = (text) => make("span", { class: "name", dir: "auto" }, text);
const percent = (value) => (value >= 0.001 ? (100 * value).toFixed(1) + " %" : "< 0.1 %");
const digits = (value) => String(Number(value.toPrecision(4)));

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
  if (!given.has("ask") && about.tests.length) Object.assign(read, aboutFact(about.tests[0], "object"));
  return read;
}

function aboutFact(fact, ask) {
  const asked = { ask, time: fact.time };
  for (const name of NAMES) asked[name] = name === ask ? "" : fact[name];
  return asked;
}

const addressOf = (asked) => "?" + new URLSearchParams(asked);
const argumentsOf = (run, asked) =>
  ({ run, ask: asked.ask, subject: asked.subject, predicate: asked.predicate, object: asked.object, time: asked.time });

function linkTo(asked, text) {
  const whole = { ...question, ...asked };
  if (!has("ask", argumentsOf(whole.run, whole))) return named(text);
  return make("a", { class: "name", dir: "auto", href: addressOf(whole), onclick: (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(asked);
  } }, text);
}

function go(asked) {
  question = { ...question, ...asked };
  history.pushState(null, "", addressOf(question));
  fillForm();
  ask();
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
  markAsked();
}

function markAsked() {
  const asked = document.querySelector("input[name=ask]:checked").value;
  for (const name of [...NAMES, "time"]) {
    const field = element(name);
    field.disabled = name === asked || Boolean(stored);
    if (name === asked) put(field, "");
    field.placeholder = name === asked ? "?" : name === "time" ? "all of it" : "";
  }
}

function readForm() {
  const asked = { ask: document.querySelector("input[name=ask]:checked").value };
  for (const name of [...NAMES, "time"]) asked[name] = name === asked.ask ? "" : nameIn(element(name));
  asked.run = element("run").value;
  asked.beside = element("beside").value;
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
  const move = (to) => {
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
      const item = make("li", { role: "option", id: `${list.id}-${position}`, "aria-selected": "false", onclick: () => choose(item) },
        named(name), make("small", {}, facts.toLocaleString("en") + (facts === 1 ? " fact" : " facts")));
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
    else if (event.key === "ArrowDown") move(at + 1);
    else if (event.key === "ArrowUp" && !list.hidden) move(at < 0 ? -1 : at - 1);
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
  place = null;
  results = new Map();
  element("message").textContent = "";
  for (const id of ["reasons", "entity"]) element(id).hidden = true;
  if (!NAMES.some((name) => question[name])) { // nothing is asked yet: there are no facts of test to begin with
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
    showLinks();
    showAnswers();
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
  if (place !== null) showAnswers();
}

function showQuestion() {
  const word = { object: "What", subject: "Who", predicate: "Which predicate", time: "When" }[question.ask];
  const names = NAMES.flatMap((name) => [name === question.ask ? "?" : named(question[name]), " "]);
  const time = question.ask === "time" ? "" : question.time ? "at " + question.time : "over the whole time";
  element("asked").replaceChildren(...asText([word + ": ", ...names, time]));
}

function setSlider(at) {
  const slider = element("slider"), label = place === null && question.time !== about.times[at] ? question.time || "all of it" : about.times[at];
  slider.max = about.times.length - 1;
  slider.value = at;
  slider.setAttribute("aria-valuetext", label);
  element("moment").textContent = label;
  for (const line of document.querySelectorAll("b.now")) line.style.left = middle(at);
}

const middle = (at) => (100 * (at + 0.5)) / about.times.length + "%";

function move(at) {
  place = at;
  question.time = about.times[at];
  put(element("time"), question.time);
  element("reasons").hidden = true; // they are those of another time
  setSlider(at);
  showQuestion();
  for (const result of results.values()) if (result.kind) result.missing = undefined;
  showAnswers();
  clearTimeout(move.waiting);
  move.waiting = setTimeout(askFurther, 150);
}

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
    await askAround(run, asked);
    if (own !== turn) return;
  }
}

function stepOf(result) {
  // The answers at the time of the slider; nothing if there are none (yet).
  if (!result.kind) return undefined;
  if (place === null) return result.here;
  if (place < result.first || place >= result.first + result.count) return undefined;
  return result.steps.findLast((step) => step.from <= place);
}

const truthsOf = (result) => result.truths.filter(([at]) => at === (place === null ? -1 : place));

function showAnswers() {
  element("answers").replaceChildren(...shownRuns().map((run) => {
    const result = results.get(run), part = make("div", {});
    if (result.kind === "time") part.append(...spanTables(run, result));
    else if (!stepOf(result)) part.append(make("p", { class: "note" }, `${run}: ${result.missing ?? "asking …"}`));
    else part.append(...answerTable(run, result));
    for (const remark of result.remarks ?? []) part.append(make("p", { class: "note" }, remark));
    return part;
  }));
}

function knownMark(known) {
  return known ? make("span", { class: "known " + known.split(/[ ,]/)[0] }, known) : "";
}

// The same for the tables of two runs, however wide their columns are.
const barWidth = (share) => `calc(${Math.max(0.01, share)} * var(--bars))`;

function answerTable(run, result) {
  const step = stepOf(result), truths = truthsOf(result), right = new Set(truths.map(([, name]) => name));
  const remarks = new Set(step.rows.map((row) => row[5] || ""));
  const common = remarks.size === 1 ? [...remarks][0] : "";
  const rows = step.rows.map(([rank, name, score, sure, known, remark, scope]) => {
    const bar = make("span", { class: "sure" });
    bar.style.width = barWidth(sure ?? 0);
    const notes = [common ? "" : remark, scope && scope !== name ? scope : ""].filter(Boolean).join("; ");
    return make("tr", right.has(name) ? { class: "right" } : {},
      make("td", { class: "number" }, String(rank)),
      make("td", {}, answerButton(run, name),
        notes ? make("div", { class: "note name", dir: "auto" }, notes) : "", bar),
      make("td", { class: "number" }, sure === null ? "" : percent(sure)),
      make("td", { class: "number score" }, digits(score)),
      make("td", {}, knownMark(known)));
  });
  const parts = [table(["", "answer", "probability", "score", "known"], rows, run + " – " + about.runs[run])];
  for (const [, name, rank, among] of truths) {
    parts.push(make("p", {}, "Test says ", named(name), `: rank ${rank.toLocaleString("en")}`,
      among === rank ? "" : `, ${among.toLocaleString("en")} without other known answers`));
  }
  if (step.scope && result.kind !== "predicate") parts.push(make("p", { class: "note name", dir: "auto" }, "scored by " + step.scope));
  if (common) parts.push(make("p", { class: "note" }, common));
  return parts;
}

function answerButton(run, name) {
  if (!has("why", { ...argumentsOf(run, question), answer: name })) return named(name);
  return make("button", { type: "button", class: "name", dir: "auto", onclick: () => explain(run, name) }, name);
}

function table(head, rows, caption) {
  const classes = { "": "number", probability: "number", score: "number score" };
  const heads = head.map((name) => make("th", { scope: "col", class: classes[name] }, name));
  return make("div", { class: "wide" }, make("table", {}, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)));
}

const MANY = 30; // spans that are all in the table; of more it has the best, and a picture has all

function spanTables(run, result) {
  const row = ({ rank, name, score, probability: sure, known, remark, begin, end, share }) => {
    const bar = make("span", { class: "sure" });
    bar.style.width = barWidth(share);
    return make("tr", known ? { class: "right" } : {},
      make("td", { class: "number" }, String(rank)),
      make("td", {}, answerButton(run, name), make("div", { class: "note" }, between(begin, end), remark ? "; " + remark : ""), bar),
      make("td", { class: "number" }, sure === null ? "" : percent(sure)),
      make("td", { class: "number score" }, digits(score)),
      make("td", {}, knownMark(known)));
  };
  const { spans } = result, ranked = [...spans].sort((one, other) => one.rank - other.rank), head = ["", "answer", "probability", "score", "known"], caption = run + " – " + about.runs[run];
  if (spans.length <= MANY) return [spanChart(run, spans), table(head, ranked.map(row), caption)];
  const best = ranked.filter(({ rank, known }) => rank <= 10 || known);
  const rest = make("details", {}, make("summary", {}, `All ${spans.length.toLocaleString("en")} in the order of time`));
  rest.addEventListener("toggle", () => rest.open && rest.append(table(head, spans.map(row), caption)), { once: true });
  return [spanChart(run, spans), table(head, best.map(row), caption + ", the best and the known"), rest];
}

function spanChart(run, spans) {
  // How likely each span is beside the best one, over the time of the graph.
  const starts = about.times.map((time) => time.split("..")[0]), stops = about.times.map((time) => time.split("..").pop());
  const bars = spans.flatMap(({ name, share, begin, end, known }) => {
    const first = starts.indexOf(begin), last = stops.indexOf(end);
    if (first < 0 || last < first) return [];
    return [draw("rect", { x: first, y: 1 - share, width: last - first + 1, height: share, class: known ? known.split(/[ ,]/)[0] : "" }, draw("title", {}, name))];
  });
  return make("div", {}, draw("svg", { class: "held spans", viewBox: `0 0 ${about.times.length} 1`, preserveAspectRatio: "none", role: "img",
    "aria-label": `${seen(run)}: how likely each time is beside the best one` }, ...bars), ends());
}

const between = (begin, end) => (begin === end ? begin ?? "?" : `${begin ?? "?"} to ${end ?? "?"}`);

function showLinks() {
  const entities = ["subject", "object"].map((name) => question[name]).filter((name) => name && has("entity", { name }));
  element("links").replaceChildren(...entities.flatMap((name) => [
    make("button", { type: "button", onclick: () => showEntity(name) }, "Facts of ", named(name)), " "]));
}

// Time

const within = (first, last) => {
  const count = about.times.length;
  return { left: (100 * first) / count + "%", width: (100 * (last - first + 1)) / count + "%" };
};

function track(first, last, kind) {
  const bar = make("i", {});
  Object.assign(bar.style, within(first, last));
  return make("div", { class: "track " + kind }, bar, nowLine());
}

function nowLine() {
  const line = make("b", { class: "now" });
  line.style.left = middle(Number(element("slider").value));
  return line;
}

const ends = () => make("div", { class: "ends" }, make("span", {}, about.times[0].split("..")[0]), make("span", {}, about.times.at(-1).split("..").pop()));

async function showScopes(own) {
  const where = element("scopes");
  where.replaceChildren();
  if (!question.predicate) return;
  const runs = shownRuns(), parts = [];
  for (const run of runs) {
    await attempt(async () => {
      const reply = await get("predicate", { run, name: question.predicate }), count = about.times.length;
      const most = Math.max(1, ...reply.held);
      if (!parts.length) {
        parts.push(make("p", { class: "note" }, "facts of train that hold, and scopes of ", named(question.predicate)));
        parts.push(draw("svg", { class: "held", viewBox: `0 0 ${count} 1`, preserveAspectRatio: "none", "aria-hidden": "true" },
          ...reply.held.map((held, at) => draw("rect", { x: at, y: 1 - held / most, width: 1, height: held / most }))));
      }
      if (runs.length > 1 || reply.remark) parts.push(make("p", { class: "note" }, [run, reply.remark].filter(Boolean).join(": ")));
      if (reply.scopes.length) {
        parts.push(draw("svg", { class: "strip", viewBox: `0 0 ${count} 1`, preserveAspectRatio: "none", role: "img", "aria-label": `${reply.scopes.length} scopes` },
          ...reply.scopes.map(([label, first, last]) => {
            const box = draw("rect", { x: first, y: 0, width: last - first + 1, height: 1 }, draw("title", {}, label));
            box.addEventListener("click", () => { move((first + last) >> 1); keepTime(); });
            return box;
          })));
      }
    }, undefined);
    if (own !== turn) return;
  }
  if (parts.length) where.replaceChildren(...parts, ends(), nowLine());
}

function keepTime() {
  history.replaceState(null, "", addressOf(question));
}

function factList(facts, entity) {
  const list = make("dl", { class: "facts" });
  for (const fact of facts) {
    const other = fact.subject === entity ? "object" : "subject";
    const text = entity === undefined ? `${fact.subject} ${fact.predicate} ${fact.object}`
      : other === "object" ? `${fact.predicate} ${fact.object}` : `${fact.subject} ${fact.predicate}`;
    list.append(make("dt", {}, linkTo(aboutFact(fact, entity === undefined ? "object" : other), text)),
      make("dd", {}, track(fact.first, fact.last, fact.split), make("span", { class: "note" }, `${between(fact.begin, fact.end)}, ${fact.split}`)));
  }
  return list;
}

function present(id, title, ...parts) {
  const section = element(id);
  section.replaceChildren(make("h2", { dir: "auto" }, title), ...parts);
  section.hidden = false;
  section.focus({ preventScroll: true });
  section.scrollIntoView({ block: "nearest" });
}

const showEntity = (name) => attempt(async () => {
  const reply = await get("entity", { name });
  const more = reply.all > reply.facts.length ? [make("p", { class: "note" }, `the first ${reply.facts.length} of ${reply.all.toLocaleString("en")} facts`)] : [];
  present("entity", "Facts of " + name, ...more, factList(reply.facts, name), ends());
});

// Why

const explain = (run, answer) => attempt(async () => {
  const asked = { ...argumentsOf(run, question), answer };
  const reply = await get("why", asked), parts = [];
  if (keyOf("", asked) !== keyOf("", { ...argumentsOf(run, question), answer })) return; // it moved on
  if (reply.reasons) {
    parts.push(make("p", { class: "note" }, reply.reasons.length ? "The facts that it rests on: chains from the given entity to the answer, and what each adds to the score." : "No chain of facts leads there."));
    parts.push(make("ol", {}, ...reply.reasons.map((reason) => make("li", {}, digits(reason.contribution),
      make("ul", {}, ...reason.facts.map((fact) => make("li", {}, named(`${fact.subject} ${fact.predicate} ${fact.object}`),
        `, ${between(fact.begin, fact.end)} (${fact.scope})`)))))));
  } else {
    parts.push(make("p", { class: "note" }, "This model does not say which facts an answer rests on. These are the nearest facts of train with the same predicate and one of the entities."));
    parts.push(reply.nearest.length ? factList(reply.nearest) : make("p", {}, "There are none."), reply.nearest.length ? ends() : "");
  }
  if (["object", "subject"].includes(question.ask) && has("entity", { name: answer })) parts.push(make("p", {}, make("button", { type: "button", onclick: () => showEntity(answer) }, "Facts of ", named(answer))));
  present("reasons", `Why ${answer}? (${run})`, ...parts);
});

// Downloads: what is shown

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
    for (const [rank, answer, score, probability, known, remark, scope] of step ? step.rows : []) {
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

// The rest: facts of test, the map, metrics; made when they are opened

function showTests(where) {
  const list = make("ul", {});
  for (const fact of about.tests) {
    const text = `${fact.subject} ${fact.predicate} ${fact.object}`, when = fact.time || "without time";
    list.append(make("li", {}, named(text), ` (${when}): `, linkTo(aboutFact(fact, "object"), "what"), " ", linkTo(aboutFact(fact, "subject"), "who")));
  }
  where.replaceChildren(list);
}

function showDoubts(where) {
  const list = make("ol", {});
  for (const row of about.doubts) {
    const sure = `${(100 * row.doubt).toFixed(1)} %, ${row.kind}`;
    if (row.predicate === null) {
      const both = [row.subject, row.object].flatMap((name) => [" ", make("button", { type: "button", onclick: () => showEntity(name) }, "Facts of ", named(name))]);
      list.append(make("li", {}, named(`${row.subject} and ${row.object} may be one`), ` (${sure})`, ...both));
      continue;
    }
    const instead = row.instead === null ? [] : ["; more probable: ", named(row.instead)];
    const text = `${row.subject} ${row.predicate} ${row.object}`;
    const ask = stored && row.ask !== "subject" ? "object" : row.ask; // a page in a file has no more
    list.append(make("li", {}, linkTo(aboutFact(row, ask), text), ` ${between(row.begin, row.end)} (${sure})`, ...instead));
  }
  where.replaceChildren(make("p", { class: "note" }, "What splime doubts has found: how probably each is wrong. A click asks the question."), list);
}

const COLOURS = 24; // predicates that the map says the colours of

async function showMap(where) {
  const run = question.run;
  where.replaceChildren(make("p", { class: "note" }, "making the map …"));
  const reply = await get("map", { run }), points = reply.points;
  if (reply.remark) throw new Wrong(reply.remark);
  const names = Object.entries(reply.predicates).sort(([, a], [, b]) => (a < b ? -1 : 1));
  const hue = new Map(names.map(([id], position) => [Number(id), `hsl(${(position * 137.5) % 360} 65% 50%)`]));
  const text = named("Arrow keys move from point to point, and Enter asks.");
  const select = make("select", { "aria-label": "predicate on the map" }, make("option", { value: "" }, "all predicates"),
    ...names.map(([id, name]) => make("option", { value: id }, name)));
  const legend = make("p", { class: "note legend" }, ...names.slice(0, COLOURS).map(([id, name]) => {
    const dot = make("span", { "aria-hidden": "true" }, "● ");
    dot.style.color = hue.get(Number(id));
    return make("span", {}, dot, named(name));
  }), names.length > COLOURS ? `and ${names.length - COLOURS} more: choose one above` : "");
  let now = -1;
  const circles = points.map(([x, y, label, source, , ], number) => {
    const circle = draw("circle", { cx: x, cy: y, r: 0.008, fill: hue.get(source) }, draw("title", {}, label));
    circle.addEventListener("click", () => { point(number); choose(); });
    circle.addEventListener("mouseenter", () => point(number));
    return circle;
  });
  const point = (number) => {
    if (now >= 0) circles[now].classList.remove("now");
    now = number;
    circles[now].classList.add("now");
    text.textContent = seen(points[now][2]);
  };
  const choose = () => {
    const [, , , source, time, subject] = points[now];
    go({ ask: "object", subject, predicate: reply.predicates[source], object: "", time: about.times[time] });
    element("result").scrollIntoView({ block: "start" });
  };
  const shown = () => points.map((_, number) => number).filter((number) => select.value === "" || points[number][3] === Number(select.value));
  select.addEventListener("change", () => {
    const kept = new Set(shown());
    circles.forEach((circle, number) => circle.classList.toggle("far", !kept.has(number)));
  });
  const chart = draw("svg", { class: "points", viewBox: "-0.02 -0.02 1.04 1.04", tabindex: "0", role: "application",
    "aria-label": "Map of scoped predicates: arrow keys move from point to point, Enter asks" }, ...circles);
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const kept = shown(), at = kept.indexOf(now);
      point(kept[(at < 0 ? (step > 0 ? 0 : kept.length - 1) : at + step + kept.length) % kept.length]);
    } else if (event.key === "Enter" && now >= 0) choose();
    else return;
    event.preventDefault();
  });
  where.replaceChildren(make("p", { class: "note" }, `${run}: vectors by t-SNE. Each point is a scoped predicate; a click asks about one of its facts.`),
    select, legend, chart, make("p", { "aria-live": "polite" }, text)); // below the map, which must not move under the mouse
}

async function showMetrics(where) {
  const parts = [];
  for (const run of shownRuns()) {
    const part = make("div", {}, make("h3", {}, run));
    parts.push(part);
    const inner = make("div", {});
    part.append(inner);
    await attempt(async () => {
      const reply = await get("metrics", { run });
      inner.replaceChildren(...reply.parts.map((each) => typeof each === "string" ? make("p", { class: "note" }, each)
        : make("div", { class: "wide" }, make("table", { class: "plain" }, make("caption", {}, each.title),
          make("thead", {}, make("tr", {}, ...each.head.map((name) => make("th", { scope: "col" }, name)))),
          make("tbody", {}, ...each.rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", { dir: "auto" }, cell)))))))));
    }, inner);
  }
  where.replaceChildren(...parts);
}

const SECTIONS = { doubts: showDoubts, tests: showTests, map: showMap, metrics: showMetrics };

function refresh(name) {
  const section = element(name), where = section.querySelector("div");
  if (section.open) attempt(() => SECTIONS[name](where), where);
}

// The beginning

async function begin() {
  token();
  about = await get("about");
  const runs = Object.keys(about.runs);
  element("about").textContent = `${about.facts.toLocaleString("en")} facts, ${about.times[0].split("..")[0]} to ${about.times.at(-1).split("..").pop()}; splime ${about.version}` +
    (stored ? ". This page has no server: it holds the answers to the questions below." : "");
  element("runs").hidden = runs.length < 2;
  element("doubts").hidden = !about.doubts.length;
  element("run").append(...runs.map((run) => make("option", { value: run }, run)));
  element("beside").append(make("option", { value: "" }, "none"), ...runs.map((run) => make("option", { value: run }, run)));
  question = readAddress();
  history.replaceState(null, "", addressOf(question));
  fillForm();
  if (stored) {
    for (const field of document.querySelectorAll("#question input")) field.disabled = true;
    document.querySelector("button[type=submit]").hidden = true;
    element("tests").open = true;
  } else {
    for (const field of document.querySelectorAll("[data-names]")) suggestNames(field);
  }
  element("question").addEventListener("submit", (event) => { event.preventDefault(); go(readForm()); });
  for (const choice of document.querySelectorAll("input[name=ask]")) choice.addEventListener("change", markAsked);
  for (const name of ["run", "beside"]) {
    element(name).addEventListener("change", () => { go({ [name]: element(name).value }); refresh("map"); refresh("metrics"); });
  }
  element("slider").addEventListener("input", () => move(Number(element("slider").value)));
  element("slider").addEventListener("change", keepTime);
  for (const kind of ["csv", "json"]) element(kind).addEventListener("click", () => download(kind));
  for (const name of Object.keys(SECTIONS)) element(name).addEventListener("toggle", () => refresh(name));
  window.addEventListener("popstate", () => { question = readAddress(); fillForm(); ask(); });
  await ask();
  document.body.dataset.ready = "yes";
}

attempt(begin);
