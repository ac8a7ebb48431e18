// flame_glance.js - the head of the page of srv flame: what was sampled, and where the time went in a few numbers. A part of
// flame.js, whose names it uses.
"use strict";

function tile(number, name, more, press) {
  const content = [element("b", { class: press ? "long" : "" }, number), element("span", {}, ...[].concat(name)), element("small", {}, more)];
  return element(press ? "button" : "div", { class: "tile", click: press }, ...content);
}

function sitesTile(sites) {
  const site = sites[0];
  const fn = site.fn && site.fn.isNamed ? ` in ${site.fn.name}` : "";
  return tile(`${site.where}${fn}`, [element("i", {}, percent(site.count / all(0))), " of the CPU time"], "the hottest line of the app, with all that it calls", () => chooseFn(numberOf(site.fn), true));
}

function kindShares() {
  const shares = {};
  for (const { self, fn } of shown.functions) shares[fn.kind] = (shares[fn.kind] || 0) + self[0] / all(0);
  return shares;
}

function stateShares() {
  const shares = {};
  for (const { states } of shown.functions) for (const [name, n] of Object.entries(states)) shares[name] = (shares[name] || 0) + n / all(0);
  return shares;
}

// Made once, of all workers and kinds.
function tiles() {
  const about = model.about, made = [], before = [shown, tree];
  shown = model.show({ view: "cpu", worker: -1, hidden: new Set(), lines: false });
  if (shown.all[0]) {
    const hottest = hottestFunctions()[0], shares = stateShares(), sites = shown.sites();
    if (sites.length) made.push(sitesTile(sites));
    if (hottest) made.push(tile(label(hottest.fn), [element("i", {}, percent(hottest.self[0] / all(0))), " of the CPU time"], "the hottest function, without what it calls", () => chooseFn(hottest.number, true)));
    const busy = shown.all[0] / about.hz / (about.seconds * about.workers);
    made.push(tile(percent(busy), `of the time of ${words.plural(about.workers, "worker")} on the CPU`, `${words.plural(shown.all[0], "sample")} in ${seconds(about.seconds)}`));
    made.push(tile(percent(shares.jit || 0), "in compiled Lua", `interpreted ${percent(shares.lua || 0)}, C ${percent(shares.c || 0)}`));
    made.push(tile(percent(shares.gc || 0), "in the garbage collector", `JIT compiler ${percent(shares.compile || 0)}`));
  }
  shown = model.show({ view: "waiting", worker: -1, hidden: new Set(), lines: false });
  if (shown.all[0]) {
    const [site] = shown.sites();
    made.push(tile(seconds(site.count * about.wait_ms / 1000), `waiting for ${site.wait}`, `most of all waits, at ${site.where}`, () => setView("waiting")));
  }
  [shown, tree] = before;
  part("tiles").append(...made);
}

function heading() {
  const { about } = model, name = about.title || (about.app || "").replace(/\/+$/, "").split("/").pop() || "srv";
  document.title = `${name} - srv flame`;
  part("title").textContent = name;
  part("about").textContent = [`${words.plural(about.samples, "sample")} of ${words.plural(about.workers, "worker")} in ${seconds(about.seconds)} at ${about.hz} Hz`,
    about.app, about.date && new Date(about.date * 1000).toLocaleString(), model.hasOld && "compared with an earlier run"].filter(Boolean).join(" · ");
  part("command").hidden = !about.command;
  part("command").textContent = about.command || "";
}

function notes() {
  const { about, least } = model, texts = [];
  if (about.note) texts.push(about.note);
  if (about.lost) texts.push(`${words.plural(about.lost, "sample")} found no room: more distinct stacks than the server keeps.`);
  for (const worker of Array.isArray(about.silent) ? about.silent : []) texts.push(`Worker ${worker} gave no samples: it was stuck in C.`);
  if (least > 1) texts.push(`Calls with fewer than ${least} samples are put together as "(rare)", so that this page stays small.`);
  part("notes").append(...texts.map(text => element("p", { class: "note warn" }, text)));
}
