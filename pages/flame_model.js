// flame_model.js - a profile as flame_pack.lua has packed it, and the trees and sums that the page shows of it.
// It knows nothing of the page.
//
//   const data = await flame.unpack(text)      // what stands in the page
//   const model = flame.model(data)            // functions of the profile and of an earlier one together
//   const shown = model.show({ view: "cpu", worker: -1, hidden: new Set(["gc"]), lines: false })
//   shown.tree(inverted)    // nodes in columns: fn, parent, depth, children, total[run][node], self[run][node]
//   shown.functions         // per function: self[run], total[run], states, lines
//   shown.all[run]          // samples in all; run 0 is this profile, run 1 the earlier one
"use strict";
const flame = (() => {
  const ROOT = 0;

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  // --- functions -------------------------------------------------------------------------------------

  function describe(kind, name, file, defined, line) {
    const place = file ? (defined ? `${file}:${defined}` : file) : "";
    return { kind, name: name || place || "?", isNamed: Boolean(name), file: file || "", defined, line, place };
  }

  // All functions of both runs: the same code has one number, whichever run it is of.
  class Functions {
    constructor() {
      this.list = [];
      this.numbers = new Map();
    }
    number(fn) {
      const key = [fn.kind, fn.file, fn.isNamed ? fn.name : fn.defined, fn.onlyLine || ""].join("\t");
      let number = this.numbers.get(key);
      if (number === undefined) {
        number = this.list.push(fn) - 1;
        this.numbers.set(key, number);
      }
      return number;
    }
  }

  // --- one run ---------------------------------------------------------------------------------------

  // Columns as packed, made whole: the parent of each node, the node of each sample.
  class Run {
    constructor(packed) {
      this.about = packed.about;
      this.sorts = packed.sorts;
      this.frames = packed.frames.map(([kind, name, file, defined, line]) =>
        describe(packed.kinds[kind], name, file, defined, line));
      this.readTree(packed.tree);
    }

    readTree({ up, frame, at, sort, count }) {
      const open = [ROOT];
      this.parent = new Int32Array(up.length + 1);
      this.frame = Int32Array.from([-1, ...frame]);
      for (let n = 1; n <= up.length; n++) {
        open.length -= up[n - 1];
        this.parent[n] = open[open.length - 1];
        open.push(n);
      }
      let node = 0;
      this.samples = at.map((further, i) => ({ node: node += further, sort: this.sorts[sort[i]], count: count[i] }));
    }

    // The number of each frame's function; with LINES each line is one of its own.
    number(functions, lines) {
      return Int32Array.from(this.frames, fn => functions.number(lines && fn.line ? { ...fn, onlyLine: fn.line } : fn));
    }

    // The nearest node above NODE, or itself, that is of KIND; ROOT: there is none.
    innermost(node, kind) {
      let n = node;
      while (n > ROOT && this.frames[this.frame[n]].kind !== kind) n = this.parent[n];
      return n;
    }

    taskOf(node) {
      const task = this.innermost(node, "task");
      return task > ROOT ? this.frames[this.frame[task]].name : "";
    }

    lineAt(node) {
      if (node === ROOT) return "?";
      const { file, line, name } = this.frames[this.frame[node]];
      return file && line ? `${file}:${line}` : name;
    }

    chosen({ view, worker }) {
      return this.samples.filter(({ sort: [of, state] }) =>
        (state === "wait") === (view === "waiting") && (worker < 0 || of === worker));
    }
  }

  // --- trees -----------------------------------------------------------------------------------------

  class Tree {
    constructor(width) {
      this.width = width;
      this.fn = [-1];
      this.parent = [-1];
      this.depth = [-1];
      this.self = [[0], [0]];
      this.total = [[0], [0]];
      this.found = new Map();
    }

    child(parent, fn) {
      const key = parent * this.width + fn;
      let node = this.found.get(key);
      if (node === undefined) {
        node = this.fn.push(fn) - 1;
        this.found.set(key, node);
        this.parent.push(parent);
        this.depth.push(this.depth[parent] + 1);
        for (const run of [0, 1]) {
          this.self[run].push(0);
          this.total[run].push(0);
        }
      }
      return node;
    }

    // Children were made after their parents, so a walk from behind has every child before its parent.
    finish() {
      this.found = null;
      this.children = this.fn.map(() => []);
      for (const run of [0, 1]) {
        const total = this.total[run], self = this.self[run];
        for (let n = total.length - 1; n >= 0; n--) {
          total[n] += self[n];
          if (n) total[this.parent[n]] += total[n];
        }
      }
      for (let n = 1; n < this.fn.length; n++) this.children[this.parent[n]].push(n);
      this.order(0);
      return this;
    }

    // The widest child first; where each begins, in samples of RUN. What RUN has not is 0 wide.
    order(run) {
      const total = this.total[run], other = this.total[1 - run];
      this.run = run;
      this.begin = new Float64Array(this.fn.length);
      for (let n = 0; n < this.fn.length; n++) {
        const children = this.children[n];
        if (children.length > 1) children.sort((a, b) => total[b] - total[a] || other[b] - other[a]);
        let at = this.begin[n];
        for (const child of children) {
          this.begin[child] = at;
          at += total[child];
        }
      }
    }

    path(node) {
      const nodes = [];
      for (let n = node; n > ROOT; n = this.parent[n]) nodes.unshift(n);
      return nodes;
    }

    // The node that a path of functions leads to, as far as it leads.
    follow(fns) {
      let node = ROOT;
      for (const fn of fns) {
        const next = this.children[node].find(child => this.fn[child] === fn);
        if (next === undefined) break;
        node = next;
      }
      return node;
    }

    nodesOf(fn) {
      const nodes = [];
      for (let n = 1; n < this.fn.length; n++) if (this.fn[n] === fn) nodes.push(n);
      return nodes;
    }

    // Samples below nodes of which IS holds, each once, however often it holds on the way to it.
    covered(is, run) {
      let sum = 0;
      const open = [ROOT];
      while (open.length) {
        const node = open.pop();
        if (node !== ROOT && is(this.fn[node])) sum += this.total[run][node];
        else open.push(...this.children[node]);
      }
      return sum;
    }
  }

  // --- what is shown -----------------------------------------------------------------------------------

  class Shown {
    constructor(model, options) {
      this.model = model;
      this.options = options;
      this.list = options.lines ? model.byLine : model.byFunction;
      this.fns = this.list.list;
      this.runs = model.runs.map((run, i) => ({ run, numbers: options.lines ? model.lineNumbers[i] : model.numbers[i], samples: run.chosen(options) }));
      this.all = [0, 1].map(i => this.runs[i] ? this.runs[i].samples.reduce((sum, { count }) => sum + count, 0) : 0);
      this.trees = [];
      this.functions = this.sums();
    }

    isHidden(fn) { return this.options.hidden.has(this.fns[fn].kind); }

    // What a task waits for is a frame of its own, inside the function that waits.
    waitFunction(wait) {
      return this.list.number({ kind: "wait", name: wait, isNamed: true, file: "", defined: 0, line: 0, place: "" });
    }

    tree(inverted) {
      const at = inverted ? 1 : 0;
      if (!this.trees[at]) {
        const tree = new Tree(this.fns.length + 64);
        this.runs.forEach((of, run) => inverted ? this.addInverted(tree, of, run) : this.add(tree, of, run));
        this.trees[at] = tree.finish();
      }
      return this.trees[at];
    }

    add(tree, { run, numbers, samples }, which) {
      const nodes = new Int32Array(run.parent.length).fill(-1);
      nodes[ROOT] = ROOT;
      const place = n => {
        if (nodes[n] < 0) {
          const parent = place(run.parent[n]), fn = numbers[run.frame[n]];
          nodes[n] = this.isHidden(fn) ? parent : tree.child(parent, fn);
        }
        return nodes[n];
      };
      for (const { node, sort, count } of samples) {
        const leaf = sort[1] === "wait" ? tree.child(place(node), this.waitFunction(sort[2])) : place(node);
        tree.self[which][leaf] += count;
      }
    }

    addInverted(tree, { run, numbers, samples }, which) {
      for (const { node, sort, count } of samples) {
        let to = sort[1] === "wait" ? tree.child(ROOT, this.waitFunction(sort[2])) : ROOT;
        for (let n = node; n > ROOT; n = run.parent[n]) {
          const fn = numbers[run.frame[n]];
          if (!this.isHidden(fn)) to = tree.child(to, fn);
        }
        tree.self[which][to] += count;
      }
    }

    // Self and total of every function: a function that calls itself counts once.
    sums() {
      const tree = this.tree(false);
      const sums = this.fns.map((fn, number) => ({ fn, number, self: [0, 0], total: [0, 0], states: {}, lines: {} }));
      const onPath = new Uint32Array(this.fns.length);
      const walk = node => {
        const fn = tree.fn[node];
        if (fn >= 0) {
          for (const run of [0, 1]) {
            sums[fn].self[run] += tree.self[run][node];
            if (!onPath[fn]) sums[fn].total[run] += tree.total[run][node];
          }
          onPath[fn]++;
        }
        for (const child of tree.children[node]) walk(child);
        if (fn >= 0) onPath[fn]--;
      };
      walk(ROOT);
      this.addLeaves(sums);
      return sums;
    }

    // By which line, and in what state, each function had the CPU itself.
    addLeaves(sums) {
      const { run, numbers, samples } = this.runs[0];
      for (const { node, sort: [, state], count } of samples) {
        let n = node;
        while (n > ROOT && this.isHidden(numbers[run.frame[n]])) n = run.parent[n];
        if (n === ROOT) continue;
        const sum = sums[numbers[run.frame[n]]], { line } = run.frames[run.frame[n]];
        sum.states[state] = (sum.states[state] || 0) + count;
        if (line) sum.lines[line] = (sum.lines[line] || 0) + count;
      }
    }

    // Where the app's own lines stand behind samples: the innermost of each, with all that it calls. Of waits also those
    // without such a line, and whose they are.
    sites() {
      const sites = new Map(), { run, samples } = this.runs[0];
      for (const { node, sort: [, state, wait], count } of samples) {
        const isWait = state === "wait", own = run.innermost(node, "app");
        if (own === ROOT && !isWait) continue;
        const at = own === ROOT ? node : own, task = isWait ? run.taskOf(node) : "";
        const key = [run.lineAt(at), task, wait].join("\t");
        if (!sites.has(key)) sites.set(key, { where: run.lineAt(at), fn: at > ROOT ? run.frames[run.frame[at]] : null, task, wait, count: 0 });
        sites.get(key).count += count;
      }
      return [...sites.values()].sort((a, b) => b.count - a.count);
    }
  }

  // A profile, and an earlier one where there is one.
  class Model {
    constructor({ profile, old }) {
      this.runs = [profile, ...(old ? [old] : [])].map(packed => new Run(packed));
      this.about = profile.about;
      this.least = profile.least;
      this.byFunction = new Functions();
      this.byLine = new Functions();
      this.numbers = this.runs.map(run => run.number(this.byFunction, false));
      this.lineNumbers = this.runs.map(run => run.number(this.byLine, true));
    }
    get hasOld() { return this.runs.length > 1; }
    get workers() { return [...new Set(this.runs.flatMap(run => run.sorts.map(([worker]) => worker)))].sort((a, b) => a - b); }
    has(view) { return this.runs[0].sorts.some(([, state]) => (state === "wait") === (view === "waiting")); }
    show(options) { return new Shown(this, options); }
  }

  return { unpack, model: data => new Model(data), ROOT };
})();
