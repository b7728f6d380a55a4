"use strict";
(() => {
  const HEARTBEAT = 15000; // milliseconds; the server frees the item of a browser that is silent
  const byId = (id) => document.getElementById(id);
  const browser = sessionStorage.getItem("browser") ?? crypto.randomUUID();
  sessionStorage.setItem("browser", browser);
  let item = null; // what is on the screen
  let open = []; // labels that are still asked of it
  let at = 0; // which of the rows is chosen
  let labels = [];
  let busy = true; // keys count for what is seen, so none counts until that is up to date

  // Whatever comes from the data becomes text or an attribute's value here, never markup.
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }
  const count = (number) => number.toLocaleString("en");
  const chance = (value) => (value < 0.0005 ? "<0.001" : value.toFixed(3));
  const rows = () => [...item.tags, ...item.missing];

  async function ask(what, content = {}) {
    const answer = await fetch(what, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ browser, ...content }),
    });
    const told = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(told.problem), { conflict: answer.status === 409, told });
    return told;
  }

  function complain(text) {
    byId("problem").textContent = text;
    byId("problem").hidden = !text;
  }

  // Do one thing at a time; what is asked for meanwhile is left out.
  async function once(work) {
    if (busy) return;
    busy = true;
    document.body.setAttribute("aria-busy", "true");
    try {
      complain("");
      await work();
    } catch (error) {
      if (error.conflict) {
        await following().catch(() => {});
        complain(error.message);
      } else if (error.told) {
        complain(error.message);
      } else {
        complain("The server does not answer. What is shown as decided is on disk: start the review again, and open the address that it prints.");
      }
    } finally {
      busy = false;
      document.body.removeAttribute("aria-busy");
    }
  }

  function showProgress(progress) {
    byId("decided").textContent = count(progress.decided);
    byId("of-tags").textContent = `decided, of ${count(progress.tags)} tags`;
    byId("dropped").textContent = count(progress.false);
    byId("pace").textContent = progress.per_minute === null ? "–" : progress.per_minute.toFixed(1);
    byId("left").textContent = count(Math.round(progress.errors_left));
    byId("undo").disabled = !progress.undo;
    const judging = progress.judging
      ? "All tags are being judged anew."
      : `All tags are judged anew after ${count(progress.until_judged)} more decisions.`;
    const rounds = progress.rounds ? ` Done ${count(progress.rounds)} times.` : "";
    const others = progress.others ? ` ${count(progress.others)} other ${progress.others === 1 ? "reviewer is" : "reviewers are"} here.` : "";
    const wrong = progress.wrong ? `By the random part of the answers ${progress.wrong} of all tags are wrong. ` : "";
    byId("status").textContent = `${wrong}${judging}${rounds}${others} ${progress.problem}`.trim();
    byId("rest").textContent = progress.skipped
      ? `You skipped ${count(progress.skipped)} ${progress.skipped === 1 ? "tag" : "tags"}.`
      : "Every tag is decided, or on another reviewer's screen.";
    byId("again").hidden = !progress.skipped;
  }

  function cell({ column, kind, value }, small) {
    if (kind === "image") {
      return make("img", { src: value, alt: column, referrerpolicy: "no-referrer", loading: small ? "lazy" : "eager" });
    }
    if (kind === "audio") {
      return make("audio", { src: value, controls: "", preload: small ? "none" : "metadata", "aria-label": column });
    }
    if (kind === "link" && /^https?:\/\//i.test(value)) {
      return make("a", { href: value, rel: "noopener noreferrer", target: "_blank" }, value);
    }
    return make("span", { dir: "auto", class: "value" }, value);
  }

  const content = (cells, small) => cells.map((each) =>
    make("div", { class: `cell ${each.kind}` }, make("span", { class: "column" }, each.column), cell(each, small)));

  const STATES = { kept: "right", dropped: "wrong", asked: "?", skipped: "skipped", other: "" };

  function state(tag) {
    if (tag.word) return tag.word.true ? "kept" : "dropped";
    if (open.includes(tag.label)) return "asked";
    return tag.skipped ? "skipped" : "other";
  }

  function line(tag, place) {
    const now = state(tag);
    const filled = make("i");
    filled.style.width = `${100 * tag.chance}%`;
    const by = tag.word ? [tag.word.reviewer && `by ${tag.word.reviewer}`, tag.word.note].filter(Boolean).join(": ") : "";
    const button = make("button", { type: "button", class: `tag ${now}`, "data-label": tag.label },
      make("span", { class: "name", dir: "auto" }, tag.name),
      make("span", { class: "state" }, STATES[now]),
      make("span", { class: "chance", title: tag.given ? "how likely the tag is to be right" : "how likely the label is to be missing" },
        chance(tag.chance), make("span", { class: "bar", "aria-hidden": "true" }, filled)),
      ...(by ? [make("span", { class: "by", dir: "auto" }, by)] : []));
    if (place === at) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => choose(place));
    return make("li", {}, button);
  }

  function near(side, tag) {
    const found = tag[side].map(({ row, chance: likely }) => {
      const { id, cells } = item.similar[row];
      const title = make("b", { dir: "auto" }, id);
      const told = likely === undefined ? "" : ` ${chance(likely)}`;
      return make("li", {}, title, make("span", { class: "note" }, told), ...content(cells, true));
    });
    byId(side).replaceChildren(...(found.length ? found : [make("li", { class: "note" }, "none")]));
  }

  function choose(place) {
    at = place;
    const every = rows();
    const focused = byId("tags").contains(document.activeElement) || byId("missing").contains(document.activeElement);
    byId("tags").replaceChildren(...item.tags.map((tag, i) => line(tag, i)));
    byId("missing").replaceChildren(...item.missing.map((tag, i) => line(tag, i + item.tags.length)));
    if (focused) document.querySelector(".tag[aria-current]").focus();
    byId("missing-title").hidden = !item.missing.length;
    const tag = every[at];
    const name = make("bdi", {}, tag.name);
    byId("tags-title").replaceChildren("Is ", make("span", { class: "asked-name" }, "“", name, "”"), " right?");
    byId("why-title").textContent = "The items most like this one";
    byId("with-title").replaceChildren("with “", make("bdi", {}, tag.name), "”");
    byId("without-title").replaceChildren("without it");
    near("with", tag);
    near("without", tag);
  }

  function chooseFirst() {
    const first = rows().findIndex((tag) => open.includes(tag.label));
    choose(Math.max(first, 0));
  }

  function show(found) {
    item = found;
    byId("work").hidden = !item;
    byId("done").hidden = Boolean(item);
    if (!item) return;
    open = item.open;
    byId("id").replaceChildren(make("bdi", {}, item.id));
    byId("cells").replaceChildren(...content(item.cells, false));
    chooseFirst();
    document.body.dataset.row = item.row;
  }

  async function following(leave = false) {
    const told = await ask("next", { leave });
    show(told.item);
    showProgress(told.progress);
  }

  async function goOn(label, told) {
    open = open.filter((each) => each !== label);
    showProgress(told.progress);
    if (open.length) chooseFirst();
    else await following();
  }

  async function decide(tag, isRight) {
    const [reviewer, note] = [byId("reviewer").value.trim(), byId("note").value.trim()];
    const told = await ask("decide", { row: item.row, label: tag.label, true: isRight, reviewer, note });
    tag.word = { true: isRight, reviewer, note };
    const chosen = rows()[at].label;
    if (!rows().includes(tag)) item.tags.push(tag);
    byId("note").value = "";
    const asked = open.includes(tag.label);
    if (asked) await goOn(tag.label, told);
    else {
      showProgress(told.progress);
      choose(rows().findIndex((each) => each.label === chosen));
    }
  }

  async function skip() {
    const tag = rows()[at];
    const told = await ask("skip", { row: item.row, label: tag.label });
    tag.skipped = true;
    await goOn(tag.label, told);
  }

  async function undo() {
    const told = await ask("undo");
    if (told.item) show(told.item);
    showProgress(told.progress);
  }

  async function add() {
    const name = byId("add").value;
    const label = labels.indexOf(name);
    if (label < 0) return complain(`There is no label “${name}”: choose one of the list.`);
    const known = rows().find((tag) => tag.label === label);
    const tag = known ?? { label, name, given: false, chance: 1, word: null, with: [], without: [] };
    await decide(tag, true);
    byId("add").value = "";
  }

  const ACTIONS = {
    keep: ["k", () => item && decide(rows()[at], true)],
    drop: ["d", () => item && decide(rows()[at], false)],
    skip: ["s", () => item && skip()],
    next: ["n", () => following(true)],
    undo: ["u", undo],
  };
  const KEYS = Object.fromEntries(Object.values(ACTIONS).map(([key, action]) => [key, action]));
  for (const [id, [, action]] of Object.entries(ACTIONS)) {
    byId(id).addEventListener("click", () => once(async () => action()));
  }
  byId("again").addEventListener("click", () => once(async () => {
    await ask("again");
    await following();
  }));
  byId("who").addEventListener("submit", (event) => event.preventDefault());
  byId("reviewer").addEventListener("input", () => sessionStorage.setItem("reviewer", byId("reviewer").value));
  byId("add").addEventListener("keydown", (event) => {
    if (event.key === "Enter") once(async () => item && add());
  });

  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input");
    if (typing && (event.key === "Escape" || event.key === "Enter")) event.target.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const key = event.key.toLowerCase();
    if (KEYS[key]) {
      once(async () => KEYS[key]());
    } else if (key === "arrowdown" || key === "arrowup") {
      if (item && !busy) choose((at + (key === "arrowdown" ? 1 : rows().length - 1)) % rows().length);
    } else if (key === "a" || key === "m") {
      byId(key === "a" ? "add" : "note").focus();
    } else {
      return;
    }
    event.preventDefault();
  });

  setInterval(async () => {
    if (busy) return;
    try {
      showProgress((await ask("progress")).progress);
    } catch {
      // told when something is decided
    }
  }, HEARTBEAT);

  busy = false;
  once(async () => {
    const told = await ask("start");
    labels = told.labels;
    document.title = `${told.title}: review`;
    byId("title").textContent = `${told.title}: review`;
    byId("reviewer").value = sessionStorage.getItem("reviewer") ?? told.reviewer;
    byId("labels").replaceChildren(...labels.map((name) => make("option", { value: name })));
    await following();
  });
})();
