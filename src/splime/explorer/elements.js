"use strict";
// The page asks the server for its parts as JSON, or looks them up in the data that the page itself
// holds (a page that was written with --out). Names only ever become text, never markup.

const NAMES = ["subject", "predicate", "object"];
const element = (id) => document.getElementById(id);

let stored = null; // the replies that a page without a server holds
let about; // the runs, the times and questions to begin with

// Asking the server

class Wrong extends Error {}

const keyOf = (part, given) => JSON.stringify([part, ...Object.values(given)]);

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

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
    if (where) where.replaceChildren(note(error.message));
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
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...asText(children));
  return made;
}

const note = (...parts) => make("p", { class: "note" }, ...parts);
const named = (text) => make("span", { class: "name", dir: "auto" }, text);
const percent = (value) => (value >= 0.001 ? (100 * value).toFixed(1) + " %" : "< 0.1 %");
const digits = (value) => String(Number(value.toPrecision(4)));
const many = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const between = (begin, end) => (begin === end ? begin ?? "?" : `${begin ?? "?"} to ${end ?? "?"}`);
const startOf = (at) => about.times[at].split("..")[0];
const stopOf = (at) => about.times[at].split("..").pop();

function table(head, rows, caption) {
  // A cell of the head with a class is written as a pair.
  const heads = head.map((cell) => (Array.isArray(cell) ? make("th", { scope: "col", class: cell[1] }, cell[0]) : make("th", { scope: "col" }, cell)));
  return make("div", { class: "wide" }, make("table", {}, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)));
}
