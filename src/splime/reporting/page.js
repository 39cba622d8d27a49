"use strict";
// A click on the head of a column sorts by it: as numbers where its cells begin with one.
function value(row, column) {
  const text = row.cells[column].textContent.trim();
  const number = parseFloat(text.replace(/[,\s]/g, ""));
  return Number.isNaN(number) ? text : number;
}
for (const head of document.querySelectorAll("th")) {
  if (head.closest(".evidence")) continue; // the facts of a chain stay together
  head.addEventListener("click", () => {
    const table = head.closest("table"), column = head.cellIndex;
    const up = head.getAttribute("aria-sort") === "descending" ||
      (!head.hasAttribute("aria-sort") && !head.classList.contains("number"));
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((first, second) => {
      const a = value(first, column), b = value(second, column);
      const order = typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
      return up ? order : -order;
    });
    table.tBodies[0].append(...rows);
  });
}
