// chart.js - lines, areas and bars as SVG, for the pages of srv's tools, which take it in as
// cli/page.lua says. It loads nothing. Colours are those of page.css, so dark and light need no drawing anew.
//
//   chart.draw(host, {              // host: an element, which becomes the chart's
//     label: "Requests a second",   // what it shows, for who cannot see it
//     x: { values: [0, 1, 2],       // in order; of bars: where each begins, with `ends`
//          ends: undefined, log: false, format: chart.seconds, ticks: undefined },  // ticks: [{ at, text }]
//     y: { format: chart.count, log: false, from: 0, to: undefined, whole: false },       // whole: no 0.5
//     series: [{ name: "now", values: [5, null, 7], tone: 1, kind: "line" }],  // or "area", "bars", "dashed"
//     bands: [{ from: 0.5, to: 0.8, tone: 5, text: "blocked" }],               // stretches of x
//     group: "time",                // charts of a group have one cursor
//     height: 220,
//   })                              // -> { show(index), hide() }
//   chart.data()                    // what page.lua has put into the page
//   chart.count chart.short chart.ms chart.seconds chart.bytes chart.percent   // numbers as text
//   chart.part(id)   chart.list(value)                                        // the element; an array of what may be {}
//   chart.element(tag, attributes, ...children)                               // HTML; children: text or elements
//   chart.table(columns, rows)      // table.plain; columns: ["name", "*number"]: a star puts it right
//
// A chart takes the focus: arrows, Home and End move its cursor, Escape takes it away; what stands at the
// cursor is written over the chart, in words.
"use strict";
const chart = (() => {
  const LEFT = 58, RIGHT = 10, TOP = 8, BOTTOM = 24, TICK_WIDTH = 80, TICK_HEIGHT = 45;

  // --- numbers -------------------------------------------------------------------------------------

  const digits = n => n.toLocaleString("en", { maximumSignificantDigits: 3 });
  const count = n => Math.round(n).toLocaleString("en");
  const percent = n => digits(n) + " %";

  function short(n) {
    const [divisor, letter] = n >= 1e9 ? [1e9, "G"] : n >= 1e6 ? [1e6, "M"] : n >= 1e4 ? [1e3, "k"] : [1, ""];
    return digits(n / divisor) + letter;
  }
  function ms(n) {
    if (n >= 1000) return digits(n / 1000) + " s";
    return n >= 1 || n === 0 ? digits(n) + " ms" : digits(n * 1000) + " µs";
  }
  const seconds = n => n.toLocaleString("en", { maximumFractionDigits: 2 }) + " s";
  function bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let at = 0;
    for (; n >= 1024 && at < units.length - 1; at++) n /= 1024;
    return digits(n) + " " + units[at];
  }

  // --- elements ------------------------------------------------------------------------------------

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    node.append(...children.filter(child => child !== null && child !== undefined));
    return node;
  }
  const part = id => document.getElementById(id);
  const list = value => Array.isArray(value) ? value : []; // an empty list may come as {}
  const element = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  function table(columns, rows) {
    const cell = (tag, content, i) => element(tag, columns[i].startsWith("*") ? { class: "n" } : {}, content);
    const head = element("tr", {}, ...columns.map((name, i) => cell("th", name.replace("*", ""), i)));
    const body = rows.map(row => element("tr", {}, ...row.map((content, i) => cell("td", content, i))));
    return element("div", { class: "scroll" },
      element("table", { class: "plain" }, element("thead", {}, head), element("tbody", {}, ...body)));
  }

  // --- scales: from a value to a pixel, and the values worth a line ------------------------------------

  // 1, 2 or 5 times a power of ten, so that about MOST steps fit.
  function step(span, most) {
    const raw = span / Math.max(1, most), power = 10 ** Math.floor(Math.log10(raw));
    return power * ([1, 2, 5].find(times => times * power >= raw) || 10);
  }

  function linear(from, to, low, high, most, whole) {
    const by = Math.max(step(to - from, most), whole ? 1 : 0), ticks = [];
    for (let n = Math.ceil(from / by - 1e-9); n * by <= to + by * 1e-9; n++) ticks.push(Number((n * by).toPrecision(12)));
    return { at: value => low + (value - from) / (to - from) * (high - low), ticks };
  }

  function logarithmic(from, to, low, high, most) {
    const decades = Math.log10(to / from), marks = decades * 3 <= most ? [1, 2, 5] : [1], ticks = [];
    for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power++)
      for (const mark of marks) ticks.push(Number((mark * 10 ** power).toPrecision(12)));
    const inside = ticks.filter(tick => tick >= from * 0.999 && tick <= to * 1.001);
    const apart = Math.ceil(inside.length / Math.max(1, most));
    return {
      at: value => low + Math.log10(Math.max(value, from) / from) / decades * (high - low),
      ticks: inside.filter((_, i) => i % apart === 0),
    };
  }

  function scale(axis, values, low, high, most) {
    const finite = values.filter(value => Number.isFinite(value) && (!axis.log || value > 0));
    let from = axis.from ?? Math.min(...finite), to = axis.to ?? Math.max(...finite);
    if (!finite.length) [from, to] = [axis.log ? 1 : 0, axis.log ? 10 : 1];
    if (axis.log && to < from * 2) [from, to] = [from / 2, to * 2];
    if (to <= from) to = from + 1;
    if (axis.room) to *= 1.04;
    return (axis.log ? logarithmic : linear)(from, to, low, high, most, axis.whole);
  }

  // --- a chart -----------------------------------------------------------------------------------------

  const groups = {};

  class Chart {
    constructor(host, options) {
      this.options = options;
      this.x = { format: String, ...options.x };
      this.y = { format: short, room: true, from: options.y?.log ? undefined : 0, ...options.y };
      this.words = element("figcaption", { "aria-live": "polite" });
      this.picture = svg("svg", { role: "img", "aria-label": options.label });
      this.figure = element("figure", { class: "chart", tabindex: "0", "aria-label": options.label }, this.words, this.picture);
      this.friends = options.group ? (groups[options.group] ??= []) : [];
      this.friends.push(this);
      host.append(this.figure);
      this.listen();
      this.write(null);
      this.draw();
      const fit = () => this.figure.clientWidth !== this.wide && this.draw();
      new ResizeObserver(() => requestAnimationFrame(fit)).observe(this.figure);
      matchMedia("print").addEventListener("change", fit);
    }

    // What the pointer and the keyboard do.
    listen() {
      const count = this.x.values.length;
      const keys = { ArrowLeft: i => i - 1, ArrowRight: i => i + 1, Home: () => 0, End: () => count - 1 };
      this.picture.addEventListener("pointermove", event => this.show(this.nearest(event.offsetX)));
      this.picture.addEventListener("pointerleave", () => this.hide());
      this.figure.addEventListener("keydown", event => {
        if (event.key === "Escape") return this.hide();
        if (!keys[event.key]) return undefined;
        event.preventDefault();
        return this.show(keys[event.key](this.shown ?? (event.key === "ArrowLeft" ? count : -1)));
      });
      this.figure.addEventListener("blur", () => this.hide());
    }

    // The middle of a bar, the place of a point.
    place(i) {
      const { values, ends } = this.x;
      return ends ? (this.across.at(values[i]) + this.across.at(ends[i])) / 2 : this.across.at(values[i]);
    }

    nearest(pixel) {
      let best = 0;
      for (let i = 1; i < this.x.values.length; i++)
        if (Math.abs(this.place(i) - pixel) < Math.abs(this.place(best) - pixel)) best = i;
      return best;
    }

    show(index) {
      for (const friend of this.friends.length ? this.friends : [this]) friend.point(index);
    }
    hide() { this.show(null); }

    point(index) {
      const last = this.x.values.length - 1;
      this.shown = index === null || last < 0 ? null : Math.max(0, Math.min(last, index));
      this.write(this.shown);
      this.mark();
    }

    // Names of the series, and what they are at the cursor.
    write(index) {
      const { series, bands = [] } = this.options, { values, ends, format } = this.x;
      const items = series.map(one => {
        const value = index === null ? undefined : one.values[index];
        const text = index === null ? "" : value === null || value === undefined ? ": -" : ": " + this.y.format(value);
        return element("span", { class: `key tone-${one.tone || 1}${one.kind === "dashed" ? " dashed" : ""}` }, one.name + text);
      });
      if (index !== null) {
        const at = values[index];
        items.unshift(element("b", {}, format(at) + (ends ? " to " + format(ends[index]) : "")));
        for (const band of bands)
          if (band.text && at >= band.from && at <= band.to) items.push(element("span", {}, band.text));
      }
      this.words.replaceChildren(...items);
    }

    draw() {
      const wide = this.wide = this.figure.clientWidth, high = this.options.height || 220;
      if (!wide) return;
      this.bottom = high - BOTTOM;
      this.right = wide - RIGHT;
      const all = this.options.series.flatMap(one => one.values);
      this.across = scale(this.x, [...this.x.values, ...(this.x.ends || [])], LEFT, this.right, (wide - LEFT) / TICK_WIDTH);
      this.up = scale(this.y, all, this.bottom, TOP, high / TICK_HEIGHT);
      this.picture.setAttribute("viewBox", `0 0 ${wide} ${high}`);
      this.picture.setAttribute("height", high);
      this.cursor = svg("g");
      this.picture.replaceChildren(...this.axes(), ...this.bands(), ...this.options.series.flatMap(one => this.series(one)), this.cursor);
      this.mark();
    }

    axes() {
      const lines = this.up.ticks.flatMap(tick => {
        const y = this.up.at(tick);
        return [svg("line", { class: "grid", x1: LEFT, x2: this.right, y1: y, y2: y }),
          svg("text", { class: "axis", x: LEFT - 6, y: y + 4, "text-anchor": "end" }, this.y.format(tick))];
      });
      const ticks = this.x.ticks || this.across.ticks.map(at => ({ at, text: this.x.format(at) }));
      return lines.concat(ticks.map(({ at, text }) => {
        const x = this.across.at(at);
        const anchor = x > this.right - 24 ? "end" : "middle";
        return svg("text", { class: "axis", x, y: this.bottom + 17, "text-anchor": anchor }, text);
      }));
    }

    bands() {
      return (this.options.bands || []).map(({ from, to, tone }) => {
        const x = this.across.at(from);
        return svg("rect", { class: `band tone-${tone || 5}`, x, y: TOP, width: Math.max(1, this.across.at(to) - x), height: this.bottom - TOP });
      });
    }

    series({ kind = "line", values, tone = 1 }) {
      if (kind === "bars") return this.bars(values, tone);
      const path = this.path(values);
      const line = svg("path", { class: `line tone-${tone}${kind === "dashed" ? " dashed" : ""}`, d: path.line });
      return kind === "area" ? [svg("path", { class: `area tone-${tone}`, d: path.area }), line] : [line];
    }

    // A missing value is a gap; a value alone is a short stroke, so that it is seen.
    path(values) {
      let line = "", area = "", run = [];
      const end = () => {
        if (run.length === 1) run.push([run[0][0] + 2, run[0][1]]);
        if (run.length) {
          const part = "M" + run.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
          line += part;
          area += `${part}V${this.bottom}H${run[0][0].toFixed(1)}Z`;
        }
        run = [];
      };
      values.forEach((value, i) => {
        if (value === null || value === undefined) end();
        else run.push([this.place(i), this.up.at(value)]);
      });
      end();
      return { line, area };
    }

    bars(values, tone) {
      const { values: from, ends } = this.x, half = (this.right - LEFT) / Math.max(1, values.length) * 0.4;
      return values.map((value, i) => {
        if (!value) return svg("g");
        const x = ends ? this.across.at(from[i]) : Math.max(LEFT, this.place(i) - half);
        const to = ends ? this.across.at(ends[i]) : Math.min(this.right, this.place(i) + half);
        const y = Math.min(this.up.at(value), this.bottom - 1);
        return svg("rect", { class: `bar tone-${tone}`, x, y, width: Math.max(1, to - x - (ends ? 1 : 0)), height: this.bottom - y });
      });
    }

    // The cursor: a line, and a dot on each series.
    mark() {
      if (!this.cursor) return;
      if (this.shown === null || this.shown === undefined) return void this.cursor.replaceChildren();
      const x = this.place(this.shown);
      const dots = this.options.series.filter(one => one.kind !== "bars" && Number.isFinite(one.values[this.shown]))
        .map(one => svg("circle", { class: `dot tone-${one.tone || 1}`, cx: x, cy: this.up.at(one.values[this.shown]), r: 3.5 }));
      this.cursor.replaceChildren(svg("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: this.bottom }), ...dots);
    }
  }

  return {
    count, short, ms, seconds, bytes, percent, part, list, element, table,
    draw: (host, options) => new Chart(host, options),
    data: () => JSON.parse(part("data").textContent),
  };
})();
