
"use strict";
(() => {
  const ROWS_PER_PAGE = 20;
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
    const labelColumn = columns.findIndex(([key]) => key === "label");
    const collator = new Intl.Collator("en", { numeric: true });
    const labels = [...new Set(rows.map((row) => row[labelColumn]))].sort(collator.compare);
    const search = make("input", { type: "search" });
    const chosen = choice("all labels", labels);
    const save = make("button", { type: "button" }, "Download CSV");
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
      const label = chosen.value === "" ? null : labels[Number(chosen.value)];
      left = order.filter(
        (i) => searched[i].includes(text) && (label === null || rows[i][labelColumn] === label),
      );
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
    chosen.addEventListener("change", () => show(0));
    before.addEventListener("click", () => show(page - 1));
    after.addEventListener("click", () => show(page + 1));
    save.addEventListener("click", () =>
      download(file, [columns.map(header), ...left.map((i) => rows[i])]),
    );
    root.append(
      make("div", { class: "controls" }, labelled("Search", search),
        ...(labels.length < rows.length ? [labelled("Label", chosen)] : []), save),
      make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": file },
        make("table", {}, make("thead", {}, make("tr", {}, ...headers)), body)),
      make("div", { class: "controls" }, before, after, status),
    );
    mark(...sorted);
    show(0);
  }

  const cross = (x, y, r) => `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`;
  const dot = (x, y) => `M${x} ${y}h0`;
  const diamond = (x, y, r) => `M${x} ${y - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z`;

  function map({ grid, labels, points, prototypes }) {
    const root = document.getElementById("map-of-instances");
    const chosen = choice("any label", labels);
    const plot = draw("svg", { class: "plot", role: "img", "aria-label": "Map of the instances and the prototypes" });
    const legend = make("ul", { class: "legend" });
    const pointed = make("p", { class: "status", role: "status" });
    const zoom = make("input", { type: "checkbox" });
    const known = prototypes.filter((place) => place !== null);
    let places = [];

    function key(kind, path, text) {
      return make("li", {}, draw("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, draw("path", { class: kind, d: path })), text);
    }

    // From the grid, or the part of it that has the prototypes, to the picture.
    function place([x, y], width, height) {
      const margin = 24;
      const along = (value, axis, length) => {
        const ends = zoom.checked ? known.map((each) => each[axis]) : [0, grid];
        const low = Math.min(...ends);
        const share = (value - low) / Math.max(Math.max(...ends) - low, 1);
        return Math.round(margin + share * (length - 2 * margin));
      };
      return [along(x, 0, width), height - along(y, 1, height)];
    }

    // Beside its prototype, where no other name and no edge is; else left out.
    function nameAt(x, y, name, taken, width, height) {
      const text = draw("text", {}, name.length > 30 ? `${name.slice(0, 29)}…` : name);
      plot.append(text);
      const w = text.getComputedTextLength();
      for (const [left, base] of [[x + 9, y + 4], [x - w - 9, y + 4], [x - w / 2, y - 10], [x - w / 2, y + 19]]) {
        const box = [left - 2, base - 12, left + w + 2, base + 4];
        const inside = box[0] > 0 && box[1] > 0 && box[2] < width && box[3] < height;
        if (inside && taken.every((b) => box[0] > b[2] || box[2] < b[0] || box[1] > b[3] || box[3] < b[1])) {
          text.setAttribute("x", left);
          text.setAttribute("y", base);
          taken.push(box);
          return true;
        }
      }
      text.remove();
      return false;
    }

    function show() {
      const width = root.clientWidth;
      const height = Math.round(Math.min(620, Math.max(340, 0.65 * width)));
      const label = chosen.value === "" ? null : Number(chosen.value);
      const has = (codes) => (label === null ? codes.length > 0 : codes.includes(label));
      const paths = { other: "", right: "", cross: "" };
      const counts = { other: 0, right: 0, cross: 0 };
      places = points.map(([each]) => place(each, width, height));
      points.forEach(([, , right, wrong], i) => {
        const kind = has(wrong) ? "cross" : label !== null && has(right) ? "right" : "other";
        paths[kind] += kind === "cross" ? cross(...places[i], 3) : dot(...places[i]);
        counts[kind] += 1;
      });
      plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
      plot.replaceChildren(...Object.keys(paths).map((kind) => draw("path", { class: kind, d: paths[kind] })));
      const there = prototypes.map((_, j) => j).filter((j) => prototypes[j] && (label === null || j === label));
      const taken = there.map((j) => {
        const [x, y] = place(prototypes[j], width, height);
        plot.append(draw("path", { class: "prototype", d: diamond(x, y, 7) }, draw("title", {}, labels[j])));
        return [x - 6, y - 6, x + 6, y + 6];
      });
      const named = there.filter((j) =>
        nameAt(...place(prototypes[j], width, height), labels[j], taken, width, height)).length;
      const nameless = there.length - named;
      legend.replaceChildren(
        ...(label === null
          ? [key("other", dot(8, 8), `no suspicious tag (${count(counts.other)})`),
             key("cross", cross(8, 8, 4), `some suspicious tag (${count(counts.cross)})`)]
          : [key("other", dot(8, 8), `without this tag (${count(counts.other)})`),
             key("right", dot(8, 8), `tag probably right (${count(counts.right)})`),
             key("cross", cross(8, 8, 4), `tag suspicious (${count(counts.cross)})`)]),
        key("prototype", diamond(8, 8, 7), nameless
          ? `prototype (${count(nameless)} without a name, for want of room)` : "prototype"),
      );
    }

    function point(event) {
      const area = plot.getBoundingClientRect();
      const [x, y] = [event.clientX - area.left, event.clientY - area.top];
      let nearest = null;
      let distance = 12;
      places.forEach(([px, py], i) => {
        const d = Math.hypot(px - x, py - y);
        if (d < distance) [nearest, distance] = [i, d];
      });
      if (nearest === null) return;
      const [, id, right, wrong] = points[nearest];
      const told = (codes) => codes.map((j) => labels[j]).join(", ") || "none";
      pointed.textContent = `${id}. Probably right: ${told(right)}. Suspicious: ${told(wrong)}.`;
    }

    chosen.addEventListener("change", show);
    zoom.addEventListener("change", show);
    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerdown", point);
    root.append(make("div", { class: "controls" }, labelled("Label", chosen),
      make("label", { class: "check" }, zoom, "Zoom in on the prototypes")), legend, plot, pointed);
    new ResizeObserver(show).observe(root);
  }

  table(data.tables[0], "suspicious_tags.csv");
  table(data.tables[1], "labels.csv");
  if (data.tables[2]) table(data.tables[2], "missing_tags.csv");
  map(data.map);
})();
