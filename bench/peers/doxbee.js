// One variant of the Doxbee benchmark in this process: node doxbee.js VARIANT N T P E EVERY.
//
// Measures as bluebird's own harness does: 350 uploads to warm up, then all N started in one loop, the
// resident size read at every EVERYth completion. E is the likelihood of an intentional error.
const [variant, n, t, p, e, every] = process.argv.slice(2).map((word, i) => (i === 0 ? word : Number(word)));
const WARM_UP = 350;

global.asyncTime = t;
global.parallelQueries = p;
global.LIKELIHOOD_OF_REJECTION = e;
global.triggerIntentionalError = function () {
  if (e && Math.random() <= e) throw new Error("intentional failure");
};

// Commits and rollbacks that nobody waits for come without a callback, which Node refuses by now.
const { setTimeout: later } = global;
const nothing = () => {};
global.setTimeout = (callback, ms) => later(callback || nothing, ms);

const upload = require(variant);
const rss = () => process.memoryUsage().rss;

// A callback variant goes on after an intentional error and calls again: each upload counts once.
function start(count, each, over) {
  let left = count;
  for (let i = 0; i < count; i++) {
    let called = false;
    upload(i, "b", "c", (err) => {
      if (called) return;
      called = true;
      left--;
      each(left, err);
      if (left === 0) over();
    });
  }
}

start(WARM_UP, () => {}, () => {
  const before = rss();
  const began = process.hrtime.bigint();
  let most = before;
  let errors = 0;
  start(n, (left, err) => {
    if (err) errors++;
    if (left % every === 0) most = Math.max(most, rss());
  }, () => {
    const ms = Number(process.hrtime.bigint() - began) / 1e6;
    console.log(JSON.stringify({ ms, mib: (most - before) / 1048576, errors }));
    process.exit(0);
  });
  most = Math.max(most, rss());
});
