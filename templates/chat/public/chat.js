const messages = document.getElementById("messages");
const state = document.getElementById("state");
const form = document.getElementById("say");

const events = new EventSource("/events");
events.onopen = () => { state.textContent = ""; };
events.onerror = () => { state.textContent = "The server does not answer. Trying again …"; };
events.onmessage = (event) => {
  const said = JSON.parse(event.data);
  const line = document.createElement("li");
  const name = document.createElement("b");
  name.textContent = said.name;
  line.append(name, " ", said.text);
  messages.append(line);
  line.scrollIntoView();
};

form.elements.name.value = localStorage.getItem("name") || "";
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  localStorage.setItem("name", form.elements.name.value);
  const message = { name: form.elements.name.value, text: form.elements.text.value };
  const answer = await fetch("/messages", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(message),
  });
  if (answer.ok) form.elements.text.value = "";
  else state.textContent = (await answer.json()).message;
});
