// flame_canvas.js - a tree of flame_model.js drawn on a canvas, the roots on top; what pointer and keyboard do on it.
//
//   const graph = new FlameGraph(canvas, { label(node), colour(node), isMatch(node), onZoom(node), onSelect(node), onHover(node, event) })
//   graph.show(tree)    graph.zoomTo(node)    graph.select(node)    graph.draw()
//
// Drawing ends where a frame would be narrower than half a pixel, and children are sorted by width: a redraw costs
// what is seen, not what was sampled.
"use strict";
const FlameGraph = (() => {
  const ROW = 20, NARROWEST = 0.5, GAP = 1, TEXT_LEFT = 4, LETTERS_MIN = 3, HEIGHT_MAX = 16000, FONT_SIZE = 12;

  class FlameGraph {
    constructor(canvas, hooks) {
      this.canvas = canvas;
      this.hooks = hooks;
      this.context = canvas.getContext("2d", { alpha: false });
      this.zoomed = this.selected = this.hovered = 0;
      this.drawn = [];
      new ResizeObserver(() => this.drawSoon()).observe(canvas.parentElement);
      this.listen();
    }

    show(tree) {
      this.tree = tree;
      this.zoomed = this.selected = this.hovered = 0;
    }

    // --- where things are ------------------------------------------------------------------------------

    width(node) { return this.tree.total[this.tree.run][node]; }
    isAbove(node) { return this.above.has(node); }

    // The frames in sight: { node, x, y, wide }, row by row.
    layout() {
      const { tree, zoomed } = this, wide = this.wide, all = this.width(zoomed) || 1, scale = wide / all;
      const path = tree.path(zoomed), places = [];
      this.above = new Set(path.slice(0, -1));
      path.slice(0, -1).forEach((node, i) => places.push({ node, x: 0, row: i, wide }));
      const open = zoomed ? [zoomed] : [...tree.children[zoomed]].reverse();
      const top = tree.begin[zoomed];
      while (open.length) {
        const node = open.pop(), pixels = this.width(node) * scale;
        if (pixels < NARROWEST) continue;
        places.push({ node, x: (tree.begin[node] - top) * scale, row: tree.depth[node], wide: pixels });
        for (const child of tree.children[node]) {
          if (this.width(child) * scale < NARROWEST) break;
          open.push(child);
        }
      }
      return places;
    }

    // --- drawing ---------------------------------------------------------------------------------------

    drawSoon() {
      if (this.due) return;
      this.due = requestAnimationFrame(() => {
        this.due = 0;
        this.draw();
      });
    }

    draw() {
      if (!this.tree) return;
      const began = performance.now();
      this.wide = Math.max(1, this.canvas.parentElement.clientWidth);
      this.drawn = this.layout();
      this.setSize();
      this.readStyle();
      const { context } = this;
      context.fillStyle = this.style.back;
      context.fillRect(0, 0, this.wide, this.high);
      for (const place of this.drawn) this.drawFrame(place);
      this.drawMarks();
      this.tookMs = performance.now() - began;
    }

    setSize() {
      const rows = this.drawn.reduce((most, { row }) => Math.max(most, row + 1), 1), dots = window.devicePixelRatio || 1;
      this.high = Math.min(rows * ROW, Math.floor(HEIGHT_MAX / dots));
      const across = Math.round(this.wide * dots), down = Math.round(this.high * dots);
      if (this.canvas.width !== across || this.canvas.height !== down) {
        this.canvas.width = across;
        this.canvas.height = down;
        this.canvas.style.height = this.high + "px";
      }
      this.context.setTransform(dots, 0, 0, dots, 0, 0);
    }

    readStyle() {
      const style = getComputedStyle(this.canvas), of = name => style.getPropertyValue(name).trim();
      this.style = { back: of("--card"), ink: of("--frame-ink"), dim: of("--dim"), mark: of("--ink"), match: of("--match"), mono: of("--mono") };
      const { context } = this;
      context.font = `${FONT_SIZE}px ${this.style.mono}`;
      context.textBaseline = "middle";
      this.letter = context.measureText("0000000000").width / 10;
    }

    drawFrame({ node, x, row, wide }) {
      const { context, hooks } = this, y = row * ROW, gap = wide > 3 ? GAP : 0;
      context.globalAlpha = this.isAbove(node) ? 0.55 : 1;
      context.fillStyle = hooks.isMatch(node) ? this.style.match : hooks.colour(node);
      context.fillRect(x, y, wide - gap, ROW - GAP);
      this.drawLabel(hooks.label(node), x, y, wide);
      context.globalAlpha = 1;
    }

    drawLabel(text, x, y, wide) {
      const letters = Math.floor((wide - 2 * TEXT_LEFT) / this.letter);
      if (letters < LETTERS_MIN) return;
      this.context.fillStyle = this.style.ink;
      this.context.fillText(text.length > letters ? text.slice(0, letters - 1) + "…" : text, x + TEXT_LEFT, y + (ROW - GAP) / 2);
    }

    drawMarks() {
      const { context } = this;
      const fn = this.tree.fn[this.selected];
      for (const { node, x, row, wide } of this.drawn) {
        const isSelected = this.selected && node === this.selected, isSame = this.selected && this.tree.fn[node] === fn;
        if (!isSelected && !isSame && node !== this.hovered) continue;
        context.strokeStyle = this.style.mark;
        context.lineWidth = isSelected ? 2.5 : 1;
        context.strokeRect(x + 1, row * ROW + 1, Math.max(1, wide - GAP - 2), ROW - GAP - 2);
      }
    }

    // --- choosing --------------------------------------------------------------------------------------

    zoomTo(node) {
      this.zoomed = node;
      this.drawSoon();
    }

    select(node, comesToView) {
      this.selected = node;
      if (node && !this.isInSight(node)) this.zoomTo(0);
      this.drawSoon();
      if (comesToView && node) this.scrollTo(node);
    }

    isInSight(node) {
      return this.zoomed === 0 || this.tree.path(node).includes(this.zoomed) || this.tree.path(this.zoomed).includes(node);
    }

    scrollTo(node) {
      const box = this.canvas.getBoundingClientRect(), y = box.top + this.tree.depth[node] * ROW;
      if (y < 0 || y + 2 * ROW > innerHeight) scrollBy({ top: y - innerHeight / 3 });
    }

    at(event) {
      const row = Math.floor(event.offsetY / ROW);
      const place = this.drawn.find(one => one.row === row && event.offsetX >= one.x && event.offsetX < one.x + one.wide);
      return place ? place.node : 0;
    }

    // --- pointer and keyboard --------------------------------------------------------------------------

    listen() {
      const { canvas, hooks } = this;
      canvas.addEventListener("pointermove", event => this.hover(this.at(event), event));
      canvas.addEventListener("pointerleave", event => this.hover(0, event));
      canvas.addEventListener("click", event => this.click(this.at(event)));
      canvas.addEventListener("dblclick", () => hooks.onZoom(0));
      canvas.addEventListener("keydown", event => this.key(event));
      canvas.addEventListener("focus", () => this.selected || this.pick(this.firstShown()));
    }

    hover(node, event) {
      if (node !== this.hovered) {
        this.hovered = node;
        this.drawSoon();
      }
      this.hooks.onHover(node, event);
    }

    // The frame that fills the width is left again by another click.
    click(node) {
      if (!node) return;
      this.pick(node);
      this.hooks.onZoom(node === this.zoomed ? this.tree.parent[node] : node);
    }

    firstShown() { return this.zoomed || this.tree.children[0][0] || 0; }

    pick(node) {
      if (node) this.hooks.onSelect(node);
    }

    sibling(step) {
      const siblings = this.tree.children[this.tree.parent[this.selected]];
      return siblings[siblings.indexOf(this.selected) + step] || this.selected;
    }

    key(event) {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const { tree, selected, hooks } = this, node = selected || this.firstShown();
      const keys = {
        ArrowDown: () => this.pick(tree.children[node][0]),
        ArrowUp: () => this.pick(tree.parent[node]),
        ArrowLeft: () => this.pick(this.sibling(-1)),
        ArrowRight: () => this.pick(this.sibling(1)),
        Enter: () => hooks.onZoom(node),
        Backspace: () => this.zoomed && hooks.onZoom(tree.parent[this.zoomed]),
        Escape: () => hooks.onZoom(0),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
      if (this.selected) this.scrollTo(this.selected);
    }
  }

  return FlameGraph;
})();
