
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
