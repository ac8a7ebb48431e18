// flame_words.js - what the page of srv flame says of functions and shares, and how it is coloured; makes elements, keeps nothing.
"use strict";
const words = (() => {
  const KINDS = { app: "app", srv: "srv", c: "C", gc: "GC", compile: "JIT compiler" };
  const STATES = { jit: "compiled", lua: "interpreted", c: "C", gc: "GC", compile: "JIT compiler" };
  const CHANCE = 2, CERTAIN = 8;   // standard deviations: a change below the first is pale, above the second in full colour

  function element(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {}))
      if (typeof value === "function") node.addEventListener(name, value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
    node.append(...children.filter(child => child !== null && child !== undefined));
    return node;
  }

  // --- numbers -----------------------------------------------------------------------------------------

  const count = n => Math.round(n).toLocaleString("en");
  const percent = share => (share * 100).toFixed(share > 0 && share < 0.001 ? 2 : 1) + " %";
  const points = change => (change > 0 ? "+" : "") + (change * 100).toFixed(1);
  const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

  function seconds(s) {
    if (s >= 120) return count(s / 60) + " min";
    if (s >= 1) return s.toLocaleString("en", { maximumSignificantDigits: 3 }) + " s";
    return (s * 1000).toLocaleString("en", { maximumSignificantDigits: 3 }) + " ms";
  }

  // --- functions ---------------------------------------------------------------------------------------

  // "find cache.lua:14"; a function that nobody has named is called by its place.
  function label(fn) {
    if (fn.onlyLine) return `${fn.isNamed ? fn.name + " " : ""}${fn.file}:${fn.onlyLine}`;
    return fn.isNamed && fn.place ? `${fn.name} ${fn.place}` : fn.name;
  }

  // "compiled 88 %, interpreted 12 %", the most first.
  function ranAs(states) {
    const all = Object.values(states).reduce((sum, n) => sum + n, 0);
    const parts = Object.entries(states).filter(([state]) => STATES[state]).sort((a, b) => b[1] - a[1]);
    return parts.filter(([, n]) => n / all >= 0.01).map(([state, n]) => `${STATES[state]}${parts.length > 1 ? " " + Math.round(n / all * 100) + " %" : ""}`).join(", ");
  }

  const hottestLines = lines => Object.entries(lines).sort((a, b) => b[1] - a[1]);

  // --- colours -----------------------------------------------------------------------------------------

  // From pale to red, by the share of all samples that are the function's own.
  function heat(share, isDark) {
    const warmth = Math.min(1, Math.sqrt(share) * 1.25);
    return isDark ? `hsl(${48 - 48 * warmth} ${12 + 68 * warmth}% ${28 + 8 * warmth}%)` : `hsl(${52 - 48 * warmth} ${40 + 55 * warmth}% ${90 - 28 * warmth}%)`;
  }

  // Red: more of all samples than before; blue: less; pale: no more than chance makes.
  function change(now, before, all, isDark) {
    const scale = all[0] / (all[1] || 1), expected = before * scale, difference = now - expected;
    const deviation = Math.sqrt(now + before * scale * scale) || 1;
    const certainty = Math.max(0, Math.min(1, (Math.abs(difference) / deviation - CHANCE) / (CERTAIN - CHANCE)));
    const strength = certainty * Math.sqrt(Math.abs(difference) / (Math.max(now, expected) || 1));
    const hue = difference > 0 ? 4 : 215;
    return isDark ? `hsl(${hue} ${8 + 62 * strength}% ${26 + 14 * strength}%)` : `hsl(${hue} ${10 + 80 * strength}% ${90 - 24 * strength}%)`;
  }

  // --- files -------------------------------------------------------------------------------------------

  const EDITORS = {
    "VS Code": "vscode://file/{path}:{line}", VSCodium: "vscodium://file/{path}:{line}",
    "JetBrains IDE": "idea://open?file={path}&line={line}", "Sublime Text": "subl://open?url=file://{path}&line={line}",
    Zed: "zed://file/{path}:{line}", other: "",
  };

  // Nothing but an app's file lies on a disk: srv's own are in its binary. Null: there is none to be opened.
  function path(fn, root) {
    if (fn.kind !== "app" || !fn.file || fn.file.startsWith("[")) return null;
    return fn.file.startsWith("/") || !root ? fn.file : `${root.replace(/\/+$/, "")}/${fn.file}`;
  }

  // A template is the reader's own, so it may not become a script.
  function editorLink(template, file, line) {
    if (!file || !template || /^\s*(javascript|data|vbscript):/i.test(template)) return null;
    return template.replace("{path}", encodeURI(file).replace(/^\/(?=.)/, template.includes("file/{path}") ? "" : "/")).replace("{line}", line || 1);
  }

  return { KINDS, EDITORS, element, count, percent, points, plural, seconds, label, ranAs, hottestLines, heat, change, path, editorLink };
})();
