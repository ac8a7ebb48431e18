const messages = document.getElementById("messages");
const state = document.getElementById("state");
const form = document.getElementById("say");

let socket;
let wait = 500;

/** Each message once, in the order of their ids: the history comes again with each connection. */
function show(said) {
  let before = messages.lastElementChild;
  while (before && before.dataset.id > said.id) before = before.previousElementSibling;
  if (before && before.dataset.id === said.id) return;
  const line = document.createElement("li");
  line.dataset.id = said.id;
  const name = document.createElement("b");
  name.textContent = said.name;
  line.append(name, " ", said.text);
  if (before) before.after(line); else messages.prepend(line);
  line.scrollIntoView();
}

function connect() {
  socket = new WebSocket(`${location.origin.replace("http", "ws")}/socket`);
  socket.onopen = () => {
    wait = 500;
    state.textContent = "";
  };
  socket.onmessage = (event) => {
    const said = JSON.parse(event.data);
    if (said.error) state.textContent = said.error;
    else show(said);
  };
  socket.onclose = () => {
    state.textContent = "The server does not answer. Trying again …";
    setTimeout(connect, wait * (0.5 + Math.random()));   // not all browsers at once
    wait = Math.min(2 * wait, 15000);
  };
}

form.elements.name.value = localStorage.getItem("name") || "";
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (socket.readyState !== WebSocket.OPEN) return;      // the text stays
  state.textContent = "";
  localStorage.setItem("name", form.elements.name.value);
  socket.send(JSON.stringify({ name: form.elements.name.value, text: form.elements.text.value }));
  form.elements.text.value = "";
});

connect();
