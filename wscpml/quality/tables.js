
"use strict";
const ROWS_PER_PAGE = 20;
const framed = window.self !== window.top; // as MLflow shows pages: such a frame downloads nothing
const data = JSON.parse(document.getElementById("data").textContent);

// Whatever comes from the data becomes text or an attribute's value here, never markup.
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
const make = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const count = (number) => number.toLocaleString("en");
const FORMATS = {
  text: String,
  count,
  probability: (value) => (value < 0.0005 ? "<0.001" : value.toFixed(3)),
  share: (value) => `${(100 * value).toFixed(1)} %`,
};

const labelled = (text, control) => make("label", {}, text, control);

function choice(first, labels) {
  const options = labels.map((label, i) => make("option", { value: i, dir: "auto" }, label));
  return make("select", {}, make("option", { value: "" }, first), ...options);
}

// A spreadsheet runs what begins like a formula, unless an apostrophe is before it.
function csvCell(value) {
  if (value === null) return "";
  let text = String(value);
  const isNumber = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text);
  if (!isNumber && /^(\s*[=+\-@＝＋－＠]|[\t\r\n])/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function download(name, rows) {
  const text = rows.map((row) => row.map(csvCell).join(",") + "\r\n").join("");
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function table({ name, columns, rows, sorted }, file) {
  const root = document.getElementById(`table-${name}`);
  const isText = columns.map(([, , kind]) => kind === "text");
  const searched = rows.map((row) => row.filter((_, c) => isText[c]).join("\n").toLowerCase());
  const collator = new Intl.Collator("en", { numeric: true });
  const search = make("input", { type: "search" });
  // A column of few different words can be filtered by one of them.
  const filters = Object.entries({ label: "all labels", change: "all changes" }).flatMap(([key, all]) => {
    const c = columns.findIndex(([each]) => each === key);
    const values = [...new Set(rows.map((row) => row[c]))].sort(collator.compare);
    return c < 0 || values.length === rows.length ? [] : [{ c, values, chosen: choice(all, values) }];
  });
  const save = framed
    ? make("span", { class: "status" }, "To download the table, download this page and open it by itself.")
    : make("button", { type: "button" }, "Download CSV");
  const before = make("button", { type: "button" }, "Previous");
  const after = make("button", { type: "button" }, "Next");
  const status = make("span", { class: "status", role: "status" });
  const body = make("tbody");
  let order = rows.map((_, i) => i); // as the rows came
  let left = order;
  let page = 0;

  const headers = columns.map(([key, title, kind]) => {
    const button = make("button", { type: "button" }, title, " ", make("span", { "aria-hidden": "true" }));
    const header = make("th", { scope: "col", class: kind === "text" ? "" : "number" }, button);
    button.addEventListener("click", () => {
      sort(key, header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending");
      show(0);
    });
    return header;
  });

  // A column of the person's own has the name that they gave it.
  const header = ([key, title]) => (key.startsWith("shown ") ? title : key);

  function mark(key, direction) {
    headers.forEach((header, c) => {
      const here = columns[c][0] === key;
      header.setAttribute("aria-sort", here ? direction : "none");
      header.querySelector("span").textContent = here ? (direction === "ascending" ? "▲" : "▼") : "↕";
    });
  }

  function sort(key, direction) {
    const c = columns.findIndex(([each]) => each === key);
    const sign = direction === "ascending" ? 1 : -1;
    const compare = isText[c] ? collator.compare : (a, b) => a - b;
    order = rows.map((_, i) => i).sort((i, j) => {
      const [a, b] = [rows[i][c], rows[j][c]];
      if (a === null || b === null) return (a === null) - (b === null); // what is unknown is last
      return sign * compare(a, b);
    });
    mark(key, direction);
  }

  function cell(value, [key, , kind]) {
    if (kind === "text") {
      return make("td", { dir: "auto", class: key === "truth" ? value : key }, value);
    }
    const shown = make("td", { class: "number" }, value === null ? "–" : FORMATS[kind](value));
    if (value !== null && kind !== "count") {
      const filled = make("i");
      filled.style.width = `${100 * value}%`;
      shown.append(make("span", { class: "bar", "aria-hidden": "true" }, filled));
    }
    return shown;
  }

  function show(wanted) {
    const text = search.value.trim().toLowerCase();
    const fits = (row) => filters.every(({ c, values, chosen }) =>
      chosen.value === "" || row[c] === values[Number(chosen.value)]);
    left = order.filter((i) => searched[i].includes(text) && fits(rows[i]));
    page = wanted;
    const first = page * ROWS_PER_PAGE;
    const last = Math.min(first + ROWS_PER_PAGE, left.length);
    body.replaceChildren(
      ...left.slice(first, last).map((i) =>
        make("tr", {}, ...rows[i].map((value, c) => cell(value, columns[c]))),
      ),
    );
    const range = left.length ? `${count(first + 1)} to ${count(last)} of ` : "";
    status.textContent = `${range}${count(left.length)} rows`;
    before.disabled = page === 0;
    after.disabled = last === left.length;
    save.disabled = left.length === 0;
  }

  search.addEventListener("input", () => show(0));
  for (const { chosen } of filters) chosen.addEventListener("change", () => show(0));
  before.addEventListener("click", () => show(page - 1));
  after.addEventListener("click", () => show(page + 1));
  save.addEventListener("click", () =>
    download(file, [columns.map(header), ...left.map((i) => rows[i])]),
  );
  root.append(
    make("div", { class: "controls" }, labelled("Search", search),
      ...filters.map(({ c, chosen }) => labelled(columns[c][1], chosen)), save),
    make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": file },
      make("table", {}, make("thead", {}, make("tr", {}, ...headers)), body)),
    make("div", { class: "controls" }, before, after, status),
  );
  mark(...(sorted ?? [null, "none"])); // null: in an order of their own
  show(0);
}
