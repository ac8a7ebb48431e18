// flame.js - the page of srv flame: what is chosen, and everything drawn anew when that changes. What is chosen stands in the
// address behind "#", so that a link shows the same.
"use strict";
const { element, count, percent, seconds, label } = words;
const part = id => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const ROWS_SHOWN = 100, LINES_SHOWN = 5;
const VIEWS = { cpu: "CPU time", waiting: "waiting time" };

let model, shown, tree, graph, matcher;
let walkAt = -1;
const state = { view: "cpu", worker: -1, hidden: new Set(), colours: "kind", widths: 0, inverted: false, lines: false, search: "", sort: "self", zoom: [], rows: ROWS_SHOWN };

// --- the address -------------------------------------------------------------------------------------

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  state.view = given.get("view") === "waiting" && model.has("waiting") || !model.has("cpu") ? "waiting" : "cpu";
  state.worker = model.workers.includes(Number(given.get("worker") || NaN)) ? Number(given.get("worker")) : -1;
  state.hidden = new Set((given.get("hide") || "").split(",").filter(kind => words.KINDS[kind]));
  state.colours = ["kind", "heat", "change"].includes(given.get("colours")) ? given.get("colours") : model.hasOld ? "change" : "kind";
  if (state.colours === "change" && !model.hasOld) state.colours = "kind";
  state.widths = model.hasOld && given.get("widths") === "1" ? 1 : 0;
  state.inverted = given.get("inverted") === "1";
  state.lines = given.get("lines") === "1";
  state.search = given.get("search") || "";
  state.sort = SORTS[given.get("sort")] ? given.get("sort") : "self";
  state.zoom = (given.get("zoom") || "").split(".").filter(Boolean).map(Number);
}

function address() {
  const out = new URLSearchParams();
  const put = (name, value, usual) => value !== usual && out.set(name, value);
  put("view", state.view, "cpu");
  put("worker", state.worker, -1);
  put("hide", [...state.hidden].join(","), "");
  put("colours", state.colours, model.hasOld ? "change" : "kind");
  put("widths", state.widths, 0);
  put("inverted", Number(state.inverted), 0);
  put("lines", Number(state.lines), 0);
  put("search", state.search, "");
  put("sort", state.sort, "self");
  put("zoom", state.zoom.join("."), "");
  return "#" + out;
}

// A zoom is a step that "back" takes back; the rest is not.
function writeAddress(isStep) {
  if (address() === (location.hash || "#")) return;
  history[isStep ? "pushState" : "replaceState"](null, "", address());
}

// --- words of what is shown ---------------------------------------------------------------------------

const all = run => shown.all[run] || 1;
const timeOf = samples => seconds(state.view === "waiting" ? samples * model.about.wait_ms / 1000 : samples / model.about.hz);
const fnOf = node => shown.fns[tree.fn[node]];

function newness(now, before) {
  if (!model.hasOld || now && before) return "";
  return now ? "new" : before ? "gone" : "";
}

const nodeNewness = node => newness(tree.total[0][node], tree.total[1][node]);

function nodeLabel(node) {
  const mark = nodeNewness(node);
  return (mark ? `[${mark}] ` : "") + label(fnOf(node));
}

let kindColours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const kind of ["task", "app", "srv", "c", "gc", "compile", "wait", "rare"]) kindColours[kind] = style.getPropertyValue("--kind-" + kind).trim();
}

function nodeColour(node) {
  const fn = tree.fn[node];
  if (state.colours === "heat") return words.heat(shown.functions[fn].self[0] / all(0), dark.matches);
  if (state.colours === "change") return words.change(tree.total[0][node], tree.total[1][node], shown.all, dark.matches);
  return kindColours[shown.fns[fn].kind];
}

function shareLines(self, total) {
  const line = (name, numbers) => {
    const now = `${name} ${percent(numbers[0] / all(0))} (${timeOf(numbers[0])}, ${words.plural(numbers[0], state.view === "waiting" ? "look" : "sample")})`;
    if (!model.hasOld) return now;
    return `${now}, before ${percent(numbers[1] / all(1))}: ${words.points(numbers[0] / all(0) - numbers[1] / all(1))}`;
  };
  return [line("self", self), line("total", total)];
}

// --- the graph -------------------------------------------------------------------------------------------

function crumbs() {
  const path = tree.path(graph.zoomed);
  part("crumbs").replaceChildren(...[0, ...path].map((node, i) => element("button", {
    click: () => zoom(node), "aria-current": i === path.length ? "location" : null, title: node ? label(fnOf(node)) : null,
  }, (i ? "› " : "") + (node ? fnOf(node).name : "all"))));
  part("crumbs").hidden = path.length === 0;
}

function zoom(node) {
  graph.zoomTo(node);
  state.zoom = tree.path(node).map(n => tree.fn[n]);
  crumbs();
  writeAddress(true);
}

function hover(node, event) {
  const tip = part("tip");
  tip.hidden = !node;
  if (!node) return;
  const fn = fnOf(node), mark = nodeNewness(node);
  const lines = shareLines([0, 1].map(run => tree.self[run][node]), [0, 1].map(run => tree.total[run][node]));
  tip.replaceChildren(element("b", {}, fn.name), mark ? ` ${mark}` : "", element("div", { class: "dim" }, fn.place), ...lines.map(text => element("div", {}, text)));
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (event.clientY + 18 + box.height > innerHeight ? Math.max(4, event.clientY - box.height - 10) : event.clientY + 18) + "px";
}

// --- the chosen frame ----------------------------------------------------------------------------------------

function fileLink(fn, line, text) {
  const href = words.editorLink(template(), words.path(fn, model.about.app), line);
  return href ? element("a", { href, title: "opens in your editor" }, text) : text;
}

// Samples by line: of the app's functions with all that they call, of others their own.
function linesOf(sum) {
  if (sum.fn.kind !== "app") return sum.lines;
  const lines = {};
  for (const { fn, count: n } of shown.sites()) if (fn && numberOf(fn) === sum.number) lines[fn.line] = (lines[fn.line] || 0) + n;
  return lines;
}

function lineList(sum) {
  const lines = words.hottestLines(linesOf(sum)).slice(0, LINES_SHOWN);
  if (!lines.length || !sum.fn.file || sum.fn.onlyLine) return null;
  const parts = lines.flatMap(([line, n]) => ["  ", fileLink(sum.fn, line, `:${line}`), ` ${percent(n / all(0))}`]);
  return element("div", {}, `Its lines${sum.fn.kind === "app" ? ", with what they call" : ""}: `, element("span", { class: "lines" }, ...parts));
}

function copyButton(fn) {
  const path = words.path(fn, model.about.app);
  if (!path || !navigator.clipboard) return null;
  const text = fn.defined ? `${path}:${fn.onlyLine || fn.defined}` : path;
  const button = element("button", { click: () => navigator.clipboard.writeText(text).then(() => { button.textContent = "copied"; }, () => { button.textContent = text; }) }, "Copy path");
  return button;
}

function chosenParts(node) {
  const sum = shown.functions[tree.fn[node]], { fn } = sum, places = tree.nodesOf(sum.number).length;
  const [self, total] = shareLines(sum.self, sum.total), ranAs = words.ranAs(sum.states);
  return [
    element("div", {}, element("b", { class: `kind ${fn.kind}` }, fn.name), " ", fileLink(fn, fn.onlyLine || fn.defined, fn.onlyLine ? `${fn.file}:${fn.onlyLine}` : fn.place),
      " ", newness(sum.total[0], sum.total[1])),
    element("div", {}, `${self}; ${total}${places > 1 ? `; in ${places} places` : ""}${ranAs ? "; " + ranAs : ""}`),
    lineList(sum),
    element("div", { class: "bar" }, element("button", { click: () => zoom(node) }, "Zoom in"), copyButton(fn)),
  ].filter(Boolean);
}

function choose(node, comesToView) {
  graph.select(node, comesToView);
  if (state.zoom.length && !graph.zoomed) zoom(0);
  part("chosen").replaceChildren(...(node ? chosenParts(node) : [element("span", { class: "dim" }, "Nothing chosen: click a frame, or press n for the hottest.")]));
  part("graph").setAttribute("aria-label", node ? `Flame graph; ${label(fnOf(node))}, total ${percent(tree.total[0][node] / all(0))}` : "Flame graph");
  for (const row of document.querySelectorAll("#functions tr[data-fn]")) row.classList.toggle("is-chosen", node > 0 && Number(row.dataset.fn) === tree.fn[node]);
}

// Where the function has most of its own time, or else of all.
function chooseFn(number, comesToView) {
  if (state.view !== "cpu" && shown.fns[number].kind !== "wait" && !shown.functions[number].total[0]) setView("cpu");
  const weigh = node => tree.self[0][node] * 1e6 + tree.total[0][node] + tree.total[1][node] / 1e6;
  const best = tree.nodesOf(number).sort((a, b) => weigh(b) - weigh(a))[0];
  if (best) choose(best, comesToView);
}

// What a reader should look at first.
function chooseGuilty() {
  const [site] = shown.sites();
  if (site && site.fn) chooseFn(numberOf(site.fn));
}

const numberOf = fn => shown.list.number(state.lines && fn.line ? { ...fn, onlyLine: fn.line } : fn);

function hottestFunctions() {
  return shown.functions.filter(({ self, fn }) => self[0] > 0 && fn.kind !== "rare").sort((a, b) => b.self[0] - a.self[0]);
}

function walk(step) {
  const list = hottestFunctions();
  if (!list.length) return;
  walkAt = walkAt < 0 ? 0 : Math.max(0, Math.min(list.length - 1, walkAt + step));
  chooseFn(list[walkAt].number, true);
  showWalk(list);
}

function showWalk(list = hottestFunctions()) {
  part("walked").textContent = walkAt < 0 ? "hottest" : `hottest ${walkAt + 1} of ${list.length}`;
  part("previous").disabled = walkAt <= 0;
  part("next").disabled = !list.length || walkAt >= list.length - 1;
}

// --- search ----------------------------------------------------------------------------------------------------

// Text as it stands, in any case; /between slashes/ a regular expression. Null: nothing is searched.
function readSearch(text) {
  const regex = text.match(/^\/(.+)\/$/);
  if (!text) return null;
  if (!regex) return fn => label(fn).toLowerCase().includes(text.toLowerCase());
  const pattern = new RegExp(regex[1], "i");
  return fn => pattern.test(label(fn));
}

function search() {
  let test = null, problem = "";
  try { test = readSearch(state.search); } catch (error) { problem = "no regular expression"; }
  const found = test && shown.fns.map(fn => test(fn));
  matcher = found ? fn => found[fn] : null;
  const straight = matcher && shown.tree(false);
  part("matched").textContent = !matcher ? problem : `${percent(straight.covered(matcher, 0) / all(0))} in ${words.plural(shown.functions.filter(({ total, number }) => total[0] && found[number]).length, "function")}`;
}

// --- all of it -----------------------------------------------------------------------------------------------------

function controls() {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const isOn = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", isOn);
    tab.tabIndex = isOn ? 0 : -1;
    tab.disabled = !model.has(tab.dataset.view);
    if (isOn) part("panel").setAttribute("aria-labelledby", tab.id);
  }
  part("worker").value = state.worker;
  part("colours").value = state.colours;
  part("widths").value = state.widths;
  part("inverted").checked = state.inverted;
  part("lines").checked = state.lines;
  if (part("search").value !== state.search) part("search").value = state.search;
  for (const box of part("kinds").querySelectorAll("input")) box.checked = !state.hidden.has(box.value);
  for (const share of part("kinds").querySelectorAll(".dim")) share.hidden = state.view !== "cpu";
}

// Reads the profile anew, for another view, worker, kind or grain.
function show() {
  const chosen = graph.selected && tree ? fnOf(graph.selected) : null;
  shown = model.show(state);
  tree = shown.tree(state.inverted);
  if (tree.run !== state.widths) tree.order(state.widths);
  graph.show(tree);
  graph.zoomed = tree.follow(state.zoom);
  walkAt = -1;
  controls();
  search();
  crumbs();
  table();
  sites();
  showWalk();
  part("nothing").hidden = shown.all[0] > 0;
  part("nothing").textContent = `There is no ${VIEWS[state.view]} of this worker.`;
  choose(0);
  const again = chosen && shown.functions.find(({ fn, total }) => fn.name === chosen.name && fn.place === chosen.place && total[0]);
  if (again) chooseFn(again.number);
  writeAddress(false);
}

// The functions of lines and of whole functions have other numbers, so a zoom does not outlive the change.
function setView(view) {
  if (!model.has(view) || view === state.view) return;
  Object.assign(state, { view, zoom: [], rows: ROWS_SHOWN });
  show();
}

function change(changes) {
  Object.assign(state, changes);
  show();
}

function kindBoxes() {
  const before = shown;
  shown = model.show({ view: "cpu", worker: -1, hidden: new Set(), lines: false });
  const shares = kindShares();
  shown = before;
  part("kinds").append(...Object.entries(words.KINDS).map(([kind, name]) => element("label", {},
    element("input", { type: "checkbox", value: kind, checked: true, change: event => {
      state.hidden[event.target.checked ? "delete" : "add"](kind);
      change({ zoom: [] });
    } }), element("span", { class: `kind ${kind}` }, name), element("span", { class: "dim" }, percent(shares[kind] || 0)))));
}

// --- the reader's editor ---------------------------------------------------------------------------------------------

const kept = {
  get(name) { try { return localStorage.getItem(name); } catch (error) { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch (error) { /* this browser keeps nothing of files */ } },
};

const template = () => words.EDITORS[part("editor").value] || part("template").value;

function editor() {
  part("editor").append(...Object.keys(words.EDITORS).map(name => element("option", { value: name }, name)));
  part("editor").value = words.EDITORS[kept.get("editor")] === undefined ? "VS Code" : kept.get("editor");
  part("template").value = kept.get("template") || "";
  const redraw = () => {
    const isOwn = part("editor").value === "other";
    part("template-label").hidden = part("template-help").hidden = !isOwn;
    kept.set("editor", part("editor").value);
    kept.set("template", part("template").value);
    if (shown) show();
  };
  part("editor").addEventListener("change", redraw);
  part("template").addEventListener("change", redraw);
  redraw();
}

// --- what the reader does -----------------------------------------------------------------------------------------------

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox") return;
  const keys = {
    n: () => walk(1), p: () => walk(-1), "/": () => part("search").focus(), i: () => change({ inverted: !state.inverted, zoom: [] }),
    l: () => change({ lines: !state.lines, zoom: [] }), w: () => setView(state.view === "cpu" ? "waiting" : "cpu"),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
}

function onTabKey(event) {
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  setView(state.view === "cpu" ? "waiting" : "cpu");
  document.querySelector("[role=tab][aria-selected=true]").focus();
}

function onSearch() {
  state.search = part("search").value;
  search();
  graph.drawSoon();
  table();
  writeAddress(false);
}

function listen() {
  document.addEventListener("keydown", onKey);
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.addEventListener("click", () => setView(tab.dataset.view));
    tab.addEventListener("keydown", onTabKey);
  }
  part("worker").addEventListener("change", event => change({ worker: Number(event.target.value), zoom: [] }));
  part("colours").addEventListener("change", event => change({ colours: event.target.value }));
  part("widths").addEventListener("change", event => change({ widths: Number(event.target.value) }));
  part("inverted").addEventListener("change", event => change({ inverted: event.target.checked, zoom: [] }));
  part("lines").addEventListener("change", event => change({ lines: event.target.checked, zoom: [] }));
  part("search").addEventListener("input", onSearch);
  part("search").addEventListener("keydown", event => {
    if (event.key !== "Escape") return;
    part("search").value = "";
    onSearch();
    part("graph").focus();
  });
  part("previous").addEventListener("click", () => walk(-1));
  part("next").addEventListener("click", () => walk(1));
  addEventListener("popstate", () => { readAddress(); show(); });
  addEventListener("scroll", () => { part("tip").hidden = true; }, { passive: true });
  dark.addEventListener("change", () => { readColours(); graph.drawSoon(); });
}

function setUp() {
  graph = new FlameGraph(part("graph"), {
    label: nodeLabel, colour: nodeColour, isMatch: node => matcher !== null && matcher(tree.fn[node]),
    onZoom: zoom, onSelect: node => choose(node), onHover: hover,
  });
  readColours();
  heading();
  notes();
  part("worker").append(element("option", { value: -1 }, "all"), ...model.workers.map(worker => element("option", { value: worker }, worker)));
  part("worker-label").hidden = model.workers.length < 2;
  part("widths-label").hidden = !model.hasOld;
  part("colours").querySelector("[value=change]").hidden = !model.hasOld;
  kindBoxes();
  editor();
  readAddress();
  show();
  tiles();
  if (!state.zoom.length) chooseGuilty();
  listen();
}

(async () => {
  try {
    model = flame.model(await flame.unpack(part("data").textContent));
    setUp();
  } catch (error) {
    part("broken").hidden = false;
    part("broken").textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or newer.`;
    throw error;
  }
  document.documentElement.dataset.ready = "yes";
})();
