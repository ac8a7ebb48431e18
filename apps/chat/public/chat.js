/* A room, live. Its messages have the numbers 1, 2, 3, ...: what is shown has no gap, whatever way they came, for who sees a gap asks for
 * what lies in it. What is typed waits in the outbox until it comes back with a number; sent again it is still said once, by its nonce. */
"use strict";

const OPEN_MS = 8000;            // a socket that has not opened by then is taken for blocked
const BACK_MS = 500;             // the first wait before coming back; doubled each time
const BACK_MS_MAX = 30000;
const RELOAD_MS = 1000;          // the server has a new version: all come back within this time
const QUIET_MS = 40000;          // nothing was heard for so long: something may have been lost
const SEND_AGAIN_MS = 3000;
const PACE_MS = 5000;            // a pause for who is too fast
const SOCKET_AGAIN_MS = 60000;   // from server-sent events back to a socket, if one can be opened by then
const EARLY_MAX = 500;           // messages kept ahead of a gap
const SHOWN_MAX = 1000;          // lines kept on the page
const BOTTOM_PX = 80;            // so near to the end is at the end
const SERVICE_RESTART = 1012;
const POLICY = 1008;

const here = document.body.dataset;
const find = (id) => document.getElementById(id);
const log = find("log"), outboxList = find("outbox"), scroll = find("scroll"), older = find("older"), down = find("down"), state = find("state");
const form = find("say"), box = find("text"), people = find("people"), hereBox = find("here"), blank = find("message").content.firstElementChild;
const address = `/rooms/${here.room}/`;

/* ---- one line ------------------------------------------------------------------------------- */

const sameDay = (a, b) => a.toDateString() === b.toDateString();

function showTime(element) {
  const at = new Date(element.dateTime);
  const time = { hour: "2-digit", minute: "2-digit" };
  element.textContent = sameDay(at, new Date()) ? at.toLocaleTimeString([], time)
    : at.toLocaleString([], { day: "numeric", month: "short", ...time });
  element.title = at.toLocaleString();
}

/** Addresses in a text can be followed. Nothing of it is read as HTML. */
function showLinks(element) {
  const parts = element.textContent.split(/(https?:\/\/[^\s<>"]+[^\s<>".,;:!?)\]'])/);
  if (parts.length === 1) return;
  element.replaceChildren(...parts.map((part, i) => {
    if (i % 2 === 0) return part;
    const link = document.createElement("a");
    link.href = part;
    link.rel = "noopener noreferrer nofollow ugc";
    link.target = "_blank";
    link.textContent = part;
    return link;
  }));
}

function finish(line) {
  showTime(line.querySelector("time"));
  showLinks(line.querySelector(".text"));
  return line;
}

function lineOf(message) {
  const line = blank.cloneNode(true);
  line.dataset.number = message.number;
  line.classList.toggle("own", message.author_id === here.me);
  line.querySelector(".author").textContent = message.author;
  line.querySelector("time").dateTime = message.sent_at;
  line.querySelector(".text").textContent = message.text;
  return finish(line);
}

/* ---- where the reader is -------------------------------------------------------------------- */

let unread = 0;
const title = document.title;
const isAtEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < BOTTOM_PX;
const toEnd = () => { scroll.scrollTop = scroll.scrollHeight; };

function markRead() {
  down.hidden = true;
  unread = 0;
  document.title = title;
}

/** Runs CHANGE, which adds to the end; who was there stays there. */
function atEnd(change, isNews) {
  const wasAtEnd = isAtEnd();
  change();
  if (wasAtEnd) toEnd();
  if (!isNews || (wasAtEnd && !document.hidden)) return;
  unread += 1;
  document.title = `(${unread}) ${title}`;
  down.hidden = wasAtEnd;
}

scroll.addEventListener("scroll", () => { if (isAtEnd() && !document.hidden) markRead(); });
down.addEventListener("click", () => { toEnd(); box.focus(); });

function say(text, isBad) {
  state.textContent = text;
  state.classList.toggle("bad", Boolean(isBad));
}

/* ---- what has been said --------------------------------------------------------------------- */

let last = Number(here.last);    // all up to this number is shown
const early = new Map();         // number -> message that lies behind a gap

function append(message) {
  last = message.number;
  atEnd(() => {
    log.append(lineOf(message));
    if (log.children.length <= SHOWN_MAX) return;
    log.firstElementChild.remove();
    older.hidden = false;
  }, message.author_id !== here.me);
}

function take(message) {
  if (message.author_id === here.me) settle(message.nonce);
  if (message.number <= last) return;
  if (early.size >= EARLY_MAX) early.clear();
  early.set(message.number, message);
  while (early.has(last + 1)) {
    const next = early.get(last + 1);
    early.delete(next.number);
    append(next);
  }
  if (early.size > 0) fill();
}

/** The answer's JSON; throws for others, and leaves when nobody is signed in any more. */
async function ask(path, options) {
  const answer = await fetch(address + path, { headers: { Accept: "application/json" }, ...options });
  if (answer.status === 401) return leave();
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.detail || body.title), { status: answer.status });
  return body;
}

function leave() {
  location.assign(`/?to=${encodeURIComponent(location.pathname)}`);
  return new Promise(() => {});   // nothing more happens on this page
}

/** So much was missed that it is better begun anew, from the newest ones back. */
async function beginAnew() {
  const page = await ask("messages");
  if (page.messages.length === 0) return;
  log.replaceChildren();
  early.clear();
  last = page.messages[0].number - 1;
  older.hidden = !page.older;
  page.messages.forEach(take);
}

async function fetchMissed() {
  for (;;) {
    const page = await ask(`messages?after=${last}`);
    if (page.last - last > EARLY_MAX) return beginAnew();
    page.messages.forEach(take);
    if (last >= page.last || page.messages.length === 0) return undefined;
  }
}

/** Asks for what is missing, once at a time. Whether it could be asked for. */
let filling = null;
function fill() {
  filling ??= fetchMissed().then(() => true, () => false).finally(() => { filling = null; });
  return filling;
}

older.addEventListener("click", async (event) => {
  event.preventDefault();
  const first = log.firstElementChild;
  const page = await ask(`messages?before=${first ? first.dataset.number : 1}`).catch(() => null);
  if (!page) return say("Older messages could not be read. Try again.", true);
  const height = scroll.scrollHeight, top = scroll.scrollTop;
  log.setAttribute("aria-live", "off");   // they are no news
  log.prepend(...page.messages.map(lineOf));
  older.hidden = !page.older;
  scroll.scrollTop = top + scroll.scrollHeight - height;
  setTimeout(() => log.setAttribute("aria-live", "polite"), 500);
  return undefined;
});

/* ---- who is here ---------------------------------------------------------------------------- */

function showPeople(roster) {
  if (roster.version < Number(hereBox.dataset.version)) return;
  hereBox.dataset.version = roster.version;
  find("count").textContent = roster.count;
  const lines = roster.people.map((person) => {
    const line = document.createElement("li");
    line.dir = "auto";
    line.textContent = person.name;
    return line;
  });
  if (roster.count > lines.length) {
    const more = document.createElement("li");
    more.className = "more";
    more.textContent = `and ${roster.count - lines.length} more`;
    lines.push(more);
  }
  people.replaceChildren(...lines);
}

/* ---- what is to be said --------------------------------------------------------------------- */

const outbox = new Map();   // nonce -> { text, line }

const newNonce = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");

function write(text) {
  const nonce = newNonce();
  const line = lineOf({ author: here.name, author_id: here.me, text, sent_at: new Date().toISOString() });
  line.classList.add("waits");
  outbox.set(nonce, { text, line });
  outboxList.append(line);
  toEnd();
  send(nonce);
}

function settle(nonce) {
  const entry = outbox.get(nonce);
  if (!entry) return;
  outbox.delete(nonce);
  atEnd(() => entry.line.remove());
}

/** Too many at once: what waits stays, and goes in its order after a pause. */
let pause = null;
function slowDown() {
  pause ??= setTimeout(() => { pause = null; say(""); sendAll(); }, PACE_MS);
  say("Not so fast: what waits is sent in a moment.", true);
}

/** It is not said, and will not be as it is: the text goes back to who typed it. */
function giveBack(nonce, reason) {
  const entry = outbox.get(nonce);
  if (!entry) return;
  settle(nonce);
  box.value = box.value === "" ? entry.text : `${entry.text}\n${box.value}`;
  grow();
  say(`Not sent: ${reason}.`, true);
}

function refuse(status, nonce, reason) {
  if (status === 401) leave();
  else if (status === 429) slowDown();
  else if (status < 500) giveBack(nonce, reason);
  else setTimeout(send, SEND_AGAIN_MS, nonce);
}

let posting = Promise.resolve();   // one after the other, so that they keep their order

function post(nonce) {
  posting = posting.then(async () => {
    const entry = pause ? null : outbox.get(nonce);
    if (!entry) return;
    try {
      take(await ask("messages", {
        method: "POST", headers: { Accept: "application/json", "Content-Type": "application/json" },
        body: JSON.stringify({ text: entry.text, nonce }),
      }));
    } catch (error) {
      refuse(error.status || 500, nonce, error.message);
    }
  });
}

function send(nonce) {
  if (!stream || pause || !outbox.has(nonce)) return;   // it goes with the next hello, or after the pause
  if (stream.send) stream.send(JSON.stringify({ text: outbox.get(nonce).text, nonce }));
  else post(nonce);
}

function sendAll() {
  for (const nonce of outbox.keys()) send(nonce);
}

function submit(event) {
  event.preventDefault();
  const text = box.value.trim();
  if (text === "") return;
  box.value = "";
  grow();
  write(text);
}

function grow() {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

form.addEventListener("submit", submit);
box.addEventListener("input", grow);
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
});

/* ---- the stream: a socket, or server-sent events where none can be opened -------------------- */

let stream = null;         // what is open: { renew, send? }
let tries = 0;
let heardAt = Date.now();

function hear(text) {
  const event = JSON.parse(text);
  heardAt = Date.now();
  if (event.type === "message") take(event);
  else if (event.type === "here") showPeople(event);
  else if (event.type === "hello") greet(event);
  else if (event.type === "refused") refuse(event.status, event.nonce, event.message);
}

/** The stream is there: what was missed is asked for, what was not said is said. */
function greet(event) {
  tries = 0;
  say("");
  if (event.last > last) fill();
  sendAll();
}

function use(opened, kind) {
  stream = opened;
  here.stream = kind;
}

function comeBack(withinMs) {
  use(null, "");
  say("Connecting …");
  const wait = withinMs ?? Math.min(BACK_MS * 2 ** tries, BACK_MS_MAX);
  tries += 1;
  clearTimeout(comeBack.timer);
  comeBack.timer = setTimeout(connect, wait * (0.5 + Math.random() / 2));
}

function openEvents() {
  const source = new EventSource(`${address}events?after=${last}`);
  const again = setTimeout(() => openSocket(() => {}, close), SOCKET_AGAIN_MS);
  const close = () => { clearTimeout(again); source.close(); };
  const renew = () => { close(); comeBack(); };
  source.onopen = () => use({ renew }, "events");
  source.onmessage = (event) => hear(event.data);
  source.onerror = async () => {
    use(null, "");
    say("Connecting …");
    if (source.readyState === EventSource.CLOSED || !await fill()) renew();   // else it comes back by itself
  };
}

/** ON_BLOCKED: it cannot be opened. BEFORE: once it is open. */
function openSocket(onBlocked, before) {
  const url = new URL(`${address}socket`, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const socket = new WebSocket(url);
  const own = { renew: () => socket.close(), send: (text) => socket.send(text) };
  const patience = setTimeout(() => socket.close(), OPEN_MS);
  let isOpen = false;
  const drop = () => { socket.onclose = null; socket.close(); };
  socket.onopen = () => {
    clearTimeout(patience);
    if (stream?.send) return drop();   // another one was faster
    isOpen = true;
    before?.();
    return use(own, "socket");
  };
  socket.onmessage = (event) => hear(event.data);
  socket.onclose = (event) => {
    clearTimeout(patience);
    if (!isOpen) return onBlocked();
    if (event.code === POLICY) return leave();
    return comeBack(event.code === SERVICE_RESTART ? RELOAD_MS : undefined);
  };
}

function connect() {
  openSocket(openEvents);
}

/** A phone that slept, a network that changed: is all here that was said? */
async function check() {
  heardAt = Date.now();
  const before = last;
  const open = stream;
  if (await fill() && open && open === stream && last > before) open.renew();
}

setInterval(() => { if (stream && Date.now() - heardAt > QUIET_MS) check(); }, QUIET_MS / 4);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  if (isAtEnd()) markRead();
  if (stream) check();
});
window.addEventListener("online", () => { if (!stream) { tries = 0; comeBack(0); } });

/* ---- the beginning -------------------------------------------------------------------------- */

for (const line of log.children) finish(line);
const isWide = matchMedia("(min-width: 56rem)");
const unfold = () => { hereBox.open = isWide.matches; };
isWide.addEventListener("change", unfold);
document.addEventListener("click", (event) => { if (!isWide.matches && !hereBox.contains(event.target)) hereBox.open = false; });
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !isWide.matches) hereBox.open = false; });
unfold();
toEnd();
connect();
