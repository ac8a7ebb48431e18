// flame_tables.js - the tables of the page of srv flame: functions, lines of the app, waits. All that the graph shows can be read
// here too. A part of flame.js, whose names it uses.
"use strict";

const SITES_SHOWN = 20, SITE_SHARE_MIN = 0.001;

const share = (sum, name, run) => sum[name][run] / all(run);
const SORTS = {
  name: { text: "Function", of: sum => label(sum.fn), up: true },
  self: { text: "Self", of: sum => share(sum, "self", 0), n: true },
  total: { text: "Total", of: sum => share(sum, "total", 0), n: true },
  before: { text: "Self before", of: sum => share(sum, "self", 1), n: true, old: true },
  change: { text: "Change", of: sum => Math.abs(share(sum, "self", 0) - share(sum, "self", 1)), n: true, old: true },
};
const sortsShown = () => Object.entries(SORTS).filter(([, sort]) => model.hasOld || !sort.old);

function headCell([key, sort]) {
  const sorted = state.sort === key ? (sort.up ? "ascending" : "descending") : null;
  return element("th", { class: sort.n ? "n" : "", "aria-sort": sorted, scope: "col" },
    element("button", { click: () => { state.sort = key; writeAddress(false); table(); part("functions").querySelector(`[data-key=${key}]`).focus(); }, "data-key": key }, sort.text + (sorted ? (sort.up ? " ▲" : " ▼") : "")));
}

function changeCell(sum) {
  const change = share(sum, "self", 0) - share(sum, "self", 1), mark = newness(sum.total[0], sum.total[1]);
  return element("td", { class: `n ${change > 0.0005 ? "more" : change < -0.0005 ? "less" : "dim"}` }, `${mark} ${words.points(change)}`);
}

// A function that nobody has named has its place for a name: it stands here again only where it can be opened.
function placeCell(fn) {
  const text = fn.onlyLine ? `${fn.file}:${fn.onlyLine}` : fn.place, link = fileLink(fn, fn.onlyLine || fn.defined, text);
  return element("td", {}, link === fn.name ? "" : link);
}

function functionRow(sum) {
  const { fn } = sum, number = text => element("td", { class: "n" }, text);
  return element("tr", { "data-fn": sum.number },
    element("td", { class: "name" }, element("button", { class: `kind ${fn.kind}`, click: () => chooseFn(sum.number, true) }, fn.name)),
    number(percent(share(sum, "self", 0))), number(percent(share(sum, "total", 0))),
    ...(model.hasOld ? [number(percent(share(sum, "self", 1))), changeCell(sum)] : []),
    placeCell(fn),
    element("td", { class: "dim" }, words.ranAs(sum.states)));
}

function table() {
  const sort = SORTS[state.sort], listed = shown.functions.filter(({ total, fn, number }) => (total[0] || total[1]) && (!matcher || matcher(number)) && !state.hidden.has(fn.kind));
  listed.sort((a, b) => {
    const x = sort.of(a), y = sort.of(b);
    return (sort.up ? x.localeCompare(y) : y - x) || share(b, "total", 0) - share(a, "total", 0);
  });
  const head = element("tr", {}, ...sortsShown().map(headCell), element("th", {}, "Where"), element("th", {}, state.view === "cpu" ? "Ran as" : ""));
  const more = listed.length > state.rows ? element("button", { click: () => { state.rows = Infinity; table(); } }, `All ${count(listed.length)} functions`) : null;
  part("functions").replaceChildren(part("functions-head"), element("div", { class: "scroll" },
    element("table", { class: "plain" }, element("thead", {}, head), element("tbody", {}, ...listed.slice(0, state.rows).map(functionRow)))), more || "");
}

function siteRow(site) {
  const line = site.fn ? fileLink(site.fn, site.fn.line, site.where) : site.where;
  const name = site.fn ? site.fn.name : site.where;
  const button = site.fn ? element("button", { class: `kind ${site.fn.kind}`, click: () => chooseFn(numberOf(site.fn), true) }, name) : name;
  const numbers = [element("td", { class: "n" }, percent(site.count / all(0))), element("td", { class: "n" }, timeOf(site.count))];
  if (state.view === "cpu") return element("tr", {}, ...numbers, element("td", {}, line), element("td", { class: "name" }, button));
  return element("tr", {}, ...numbers, element("td", {}, element("span", { class: "kind wait" }, site.wait)), element("td", {}, line), element("td", { class: "name" }, button), element("td", {}, site.task));
}

function sites() {
  const list = shown.sites().filter(site => site.count >= all(0) * SITE_SHARE_MIN).slice(0, SITES_SHOWN), isCpu = state.view === "cpu";
  part("sites").hidden = !list.length;
  part("sites-head").textContent = isCpu ? "Lines of the app, with all that they call" : "Where do requests wait?";
  const columns = isCpu ? ["", "", "Line", "Function"] : ["", "", "For", "Line", "Function", "Of"];
  part("sites").replaceChildren(part("sites-head"), element("div", { class: "scroll" }, element("table", { class: "plain" },
    element("thead", {}, element("tr", {}, element("th", { class: "n" }, "Share"), element("th", { class: "n" }, "Time"), ...columns.slice(2).map(name => element("th", {}, name)))),
    element("tbody", {}, ...list.map(siteRow)))));
}
