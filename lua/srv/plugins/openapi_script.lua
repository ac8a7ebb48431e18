--- What the page of srv.openapi does in a browser. All that comes from the document or from answers becomes text
--- nodes, never markup.
return [==[

"use strict";
const api = JSON.parse(document.getElementById("document").textContent);
const METHODS = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];
let ids = 0;

/* make("p", {class: "x"}, "text", node...): an element. */
function make(tag, attributes, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  element.append(...inside.filter(piece => piece !== undefined && piece !== null));
  return element;
}

function resolve(thing) {
  for (let hops = 0; thing && thing.$ref && hops < 32; hops++) {
    let at = api;
    for (const step of thing.$ref.slice(2).split("/"))
      at = at && at[decodeURIComponent(step).replace(/~1/g, "/").replace(/~0/g, "~")];
    thing = at;
  }
  return thing || {};
}

const nameOf = schema => schema && schema.$ref ? schema.$ref.split("/").pop() : "";

/* Of what Markdown a description may have, paragraphs and code. */
function paragraphs(text) {
  const pieces = part => part.split(/`([^`]+)`/).map((piece, at) => at % 2 ? make("code", {}, piece) : piece);
  return String(text).split(/\n\n+/).map(part => make("p", {}, ...pieces(part)));
}

/* ---- schemas ---- */

function typeOf(schema) {
  if (schema.$ref) return nameOf(schema);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  const types = [].concat(schema.type || "any");
  return types.map(type => type === "array" ? "array of " + typeOf(schema.items || {}) : type).join(" or ");
}

const LIMITS = [
  ["format", ""], ["minimum", ">= "], ["exclusiveMinimum", "> "], ["maximum", "<= "], ["exclusiveMaximum", "< "],
  ["minLength", "characters >= "], ["maxLength", "characters <= "], ["minItems", "items >= "], ["maxItems", "items <= "],
  ["minProperties", "fields >= "], ["maxProperties", "fields <= "], ["pattern", "pattern "], ["contentMediaType", ""],
];

function limitsOf(schema) {
  const list = LIMITS.filter(([key]) => schema[key] !== undefined).map(([key, says]) => says + schema[key]);
  if (schema.uniqueItems) list.push("unique");
  if (schema.enum) list.push("one of " + schema.enum.map(value => JSON.stringify(value)).join(", "));
  if (schema.default !== undefined) list.push("default " + JSON.stringify(schema.default));
  return list.join("; ");
}

/* What lies beneath a schema, if it is worth opening. */
function beneath(schema) {
  const own = resolve(schema);
  if (own.properties || typeof own.additionalProperties === "object") return () => fields(own);
  if (own.items && beneath(own.items)) return beneath(own.items);
  const open = (own.anyOf || []).filter(beneath);
  if (open.length === 0) return null;
  return () => make("div", {}, ...open.map(one => make("div", {class: "inner"}, typeOf(one), beneath(one)())));
}

/* Opened when asked for, since schemas may hold themselves. */
function expandable(schema, title) {
  const open = beneath(schema);
  if (!open) return null;
  const details = make("details", {}, make("summary", {}, title));
  details.addEventListener("toggle", () => { if (details.children.length === 1) details.append(open()); });
  return details;
}

function line(name, schema, required, description) {
  const own = resolve(schema), limits = limitsOf(own), says = description || schema.description || own.description;
  return make("li", {}, make("code", {class: "name"}, name), " ",
    make("span", {class: "type"}, typeOf(schema) + (limits ? "; " + limits : "")),
    required ? make("span", {class: "must"}, " required") : null,
    says ? make("p", {}, says) : null, expandable(schema, "Fields of " + name));
}

function fields(schema) {
  const required = schema.required || [], list = make("ul", {class: "fields"});
  for (const [name, inner] of Object.entries(schema.properties || {}))
    list.append(line(name, inner, required.includes(name)));
  if (typeof schema.additionalProperties === "object") list.append(line("any other", schema.additionalProperties, false));
  return list;
}

const SAMPLES = {
  email: "ann@example.com", uri: "https://example.com/", uuid: "3f2b8a0e-5c1d-4e7a-9b60-1d2c3e4f5a6b", date: "2024-05-31",
  time: "13:45:00Z", "date-time": "2024-05-31T13:45:00Z", ipv4: "192.0.2.1", ipv6: "2001:db8::1", hostname: "example.com",
};

function sample(given, depth) {
  const schema = resolve(given);
  if (schema.default !== undefined) return schema.default;
  if (schema.examples) return schema.examples[0];
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return sample(schema.anyOf[0], depth);
  switch ([].concat(schema.type || [])[0]) {
  case "object": {
    const out = {};
    if (depth < 5)
      for (const [name, inner] of Object.entries(schema.properties || {}))
        if (depth < 2 || (schema.required || []).includes(name)) out[name] = sample(inner, depth + 1);
    return out;
  }
  case "array": return depth < 5 && schema.items ? [sample(schema.items, depth + 1)] : [];
  case "integer": case "number": {
    if (schema.minimum !== undefined) return schema.minimum;
    return schema.exclusiveMinimum !== undefined ? schema.exclusiveMinimum + 1 : 1;
  }
  case "boolean": return true;
  case "null": return null;
  case "string": {
    const text = SAMPLES[schema.format] || "text";
    return text.padEnd(Math.min(schema.minLength || 0, 200), "x").slice(0, schema.maxLength);
  }
  }
  return {};
}

/* ---- requests ---- */

function control(title, element, wide) {
  element.id = "field" + (++ids);
  return make("label", {for: element.id, class: wide ? "wide" : undefined}, make("span", {}, title), element);
}

function inputFor(parameter) {
  const schema = resolve(parameter.schema);
  if (schema.enum && !parameter.required)
    return make("select", {}, make("option", {value: ""}, "(none)"), ...schema.enum.map(v => make("option", {}, String(v))));
  if (schema.enum) return make("select", {}, ...schema.enum.map(v => make("option", {}, String(v))));
  const number = schema.type === "integer" || schema.type === "number";
  const input = make("input", {type: "text", autocomplete: "off", inputmode: number ? "decimal" : undefined});
  if (schema.default !== undefined) input.placeholder = String(schema.default);
  return input;
}

function isFile(schema) {
  const own = resolve(schema);
  return own.format === "binary" || (own.items && resolve(own.items).format === "binary");
}

/* What stands for the body: a text to edit, or for multipart a field each. */
function bodyControls(content, kind) {
  const schema = resolve(content[kind].schema);
  if (kind !== "multipart/form-data") {
    const area = make("textarea", {spellcheck: "false"});
    area.value = JSON.stringify(sample(content[kind].schema, 0), null, 2);
    const says = kind === "application/json" ? "Body" : "Body (fields as JSON; sent as a form)";
    return {nodes: [control(says, area, true)], read: () => readText(kind, area.value)};
  }
  const inputs = Object.entries(schema.properties || {}).map(([name, inner]) => {
    const input = isFile(inner) ? make("input", {type: "file", multiple: resolve(inner).type === "array"})
      : make("input", {type: "text", autocomplete: "off"});
    return {name, input, node: control(name, input)};
  });
  return {nodes: inputs.map(one => one.node), read: () => readMultipart(inputs)};
}

/* As forms write it: author[name], rows[0][n]. */
function spread(form, name, value) {
  const inner = key => name === "" ? key : name + "[" + key + "]";
  if (value === null) return;
  if (Array.isArray(value)) value.forEach((one, i) => spread(form, typeof one === "object" ? inner(i) : name, one));
  else if (typeof value === "object") for (const [key, one] of Object.entries(value)) spread(form, inner(key), one);
  else form.append(name, value);
}

function readText(kind, text) {
  if (kind === "application/json" || text.trim() === "") return {body: text || undefined, type: kind};
  const form = new URLSearchParams();
  spread(form, "", JSON.parse(text));
  return {body: form.toString(), type: kind};
}

function readMultipart(inputs) {
  const form = new FormData();
  for (const {name, input} of inputs) {
    if (input.type === "file") for (const file of input.files) form.append(name, file);
    else if (input.value !== "") form.append(name, input.value);
  }
  return {body: form}; // the browser writes its Content-Type, for it knows the boundary
}

function credentials(operation) {
  const list = [];
  for (const name of Object.keys((operation.security || [])[0] || {})) {
    const scheme = resolve(((api.components || {}).securitySchemes || {})[name]);
    const basic = scheme.scheme === "basic";
    const input = make("input", {type: "password", autocomplete: "off"});
    list.push({
      node: control(basic ? "name:password (" + name + ")" : "Token (" + name + ")", input),
      header: () => input.value && (basic ? "Basic " + base64(input.value) : "Bearer " + input.value),
    });
  }
  return list;
}

const base64 = text => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

function serverOf(operation, chosen) {
  const server = (operation.servers || [])[0] || chosen || {url: "/"};
  return server.url.replace(/\{([^}]*)\}/g, (all, name) => ((server.variables || {})[name] || {}).default || name);
}

function put(request, parameter, value) {
  const values = resolve(parameter.schema).type === "array" ? value.split(",").map(one => one.trim()) : [value];
  if (parameter.in === "path") {
    const coded = parameter["x-srv-rest"] ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
    request.path = request.path.replace("{" + parameter.name + "}", () => coded);
  } else if (parameter.in === "query") {
    for (const one of values) request.query.append(parameter.name, one);
  } else {
    request.headers.append(parameter.name, value);
  }
}

function urlOf(server, request) {
  const query = request.query.toString();
  return new URL(server.replace(/\/$/, "") + request.path + (query ? "?" + query : ""), location.href);
}

function form(method, path, operation, tools) {
  // Cookies are the browser's: no script may set them on a request.
  const parameters = (operation.parameters || []).map(resolve).filter(p => p.in !== "cookie" && !p["x-srv-map"]);
  const inputs = parameters.map(parameter => ({parameter, input: inputFor(parameter)}));
  const known = credentials(operation), content = (operation.requestBody || {}).content;
  const element = make("form", {"aria-label": "Try " + method.toUpperCase() + " " + path});
  for (const {parameter, input} of inputs) {
    if (parameter.required) input.required = true;
    element.append(control(parameter.name + " (" + parameter.in + (parameter.required ? ", required)" : ")"), input));
  }
  element.append(...known.map(one => one.node));
  let body = null;
  if (content && method !== "get" && method !== "head") {
    const kinds = make("select", {}, ...Object.keys(content).map(kind => make("option", {}, kind)));
    const place = make("div", {class: "wide"});
    const show = () => { body = bodyControls(content, kinds.value); place.replaceChildren(...body.nodes); };
    kinds.addEventListener("change", show);
    show();
    element.append(control("Content-Type", kinds, true), place);
  }
  const result = make("div", {class: "wide result", role: "status", "aria-live": "polite"});
  element.append(make("button", {type: "submit"}, "Send"), result);
  element.addEventListener("submit", event => {
    event.preventDefault();
    const request = {path, query: new URLSearchParams(), headers: new Headers()};
    send(result, () => {
      for (const {parameter, input} of inputs) if (input.value !== "") put(request, parameter, input.value);
      for (const one of known) if (one.header()) request.headers.set("Authorization", one.header());
      const sent = body ? body.read() : {};
      if (sent.type && sent.body !== undefined) request.headers.set("Content-Type", sent.type);
      return [urlOf(serverOf(operation, tools.server()), request),
        {method: method.toUpperCase(), headers: request.headers, body: sent.body}];
    });
  });
  return element;
}

async function send(result, prepare) {
  result.replaceChildren("Waiting ...");
  const before = performance.now();
  try {
    const [url, options] = prepare();
    const answer = await fetch(url, options);
    const text = await answer.text();
    const took = Math.round(performance.now() - before);
    const head = [...answer.headers].map(([name, value]) => name + ": " + value).join("\n");
    result.replaceChildren(
      make("p", {class: answer.ok ? "good" : "bad"}, answer.status + " " + answer.statusText + " after " + took + " ms"),
      make("p", {}, make("code", {}, options.method + " " + url)),
      make("details", {}, make("summary", {}, "Headers"), make("pre", {tabindex: "0"}, head)),
      make("pre", {tabindex: "0", "aria-label": "Body"}, pretty(text, answer.headers.get("content-type"))));
  } catch (error) {
    result.replaceChildren(make("p", {class: "bad"}, "It could not be sent: " + error.message));
  }
}

function pretty(text, type) {
  if (/json/.test(type || "")) try { return JSON.stringify(JSON.parse(text), null, 2); } catch (error) { /* as it is */ }
  return text.length > 100000 ? text.slice(0, 100000) + "\n(cut)" : text;
}

/* ---- the page ---- */

function example(schema, title) {
  const text = JSON.stringify(sample(schema, 0), null, 2);
  return make("details", {}, make("summary", {}, title), make("pre", {tabindex: "0"}, text));
}

function bodySection(content, title) {
  return Object.entries(content || {}).map(([kind, media]) => make("div", {class: "inner"},
    make("p", {}, make("code", {}, kind), " ", make("span", {class: "type"}, typeOf(media.schema || {}))),
    expandable(media.schema || {}, "Fields"),
    kind === "application/problem+json" ? null : example(media.schema || {}, title)));
}

function responses(operation) {
  const sorted = Object.entries(operation.responses || {}).sort((a, b) => a[0] < b[0] ? -1 : 1);
  return sorted.map(([status, given]) => {
    const own = resolve(given);
    const says = [make("code", {class: "name"}, status), " ", own.description || ""];
    return make("li", {}, ...says, ...bodySection(own.content, "Example"));
  });
}

function contentOf(method, path, operation, tools) {
  const parameters = (operation.parameters || []).map(resolve), body = operation.requestBody;
  const asked = Object.keys((operation.security || [])[0] || {});
  const pieces = [...paragraphs(operation.description || operation.summary || "")];
  if (operation.deprecated) pieces.unshift(make("p", {class: "bad"}, "Deprecated."));
  const mayLack = (operation.security || []).some(one => Object.keys(one).length === 0);
  if (asked.length)
    pieces.push(make("p", {}, (mayLack ? "Takes credentials: " : "Asks for credentials: ") + asked.join(" and ") + "."));
  if (operation.servers) pieces.push(make("p", {}, "On ", make("code", {}, operation.servers[0].url)));
  if (parameters.length)
    pieces.push(make("h3", {}, "Parameters"), make("ul", {class: "fields"}, ...parameters.map(
      p => line(p.name + " (" + p.in + ")", p.schema || {}, p.required, p.description))));
  if (body) pieces.push(make("h3", {}, body.required ? "Body (required)" : "Body"), ...bodySection(body.content, "Example"));
  pieces.push(make("h3", {}, "Answers"), make("ul", {class: "fields"}, ...responses(operation)));
  pieces.push(make("h3", {}, "Try it"), form(method, path, operation, tools));
  return make("div", {}, ...pieces);
}

function operationView(method, path, operation, tools) {
  const details = make("details", {class: "op " + method + (operation.deprecated ? " old" : ""), id: operation.operationId},
    make("summary", {}, make("span", {class: "method"}, method.toUpperCase()), make("code", {class: "path"}, path),
      make("span", {class: "says"}, operation.summary || "")));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(contentOf(method, path, operation, tools));
  });
  return details;
}

/* By tag; without one by the first word of the path. */
function groups() {
  const found = new Map((api.tags || []).map(tag => [tag.name, []]));
  for (const [path, item] of Object.entries(api.paths))
    for (const method of METHODS.filter(name => item[name]))
      for (const tag of item[method].tags || [path.split("/")[1].replace(/\{.*/, "") || "/"]) {
        if (!found.has(tag)) found.set(tag, []);
        found.get(tag).push({method, path, operation: item[method]});
      }
  return found;
}

function toolsIn(place, sections) {
  const filter = make("input", {type: "search", autocomplete: "off"});
  filter.addEventListener("input", () => {
    const word = filter.value.toLowerCase();
    for (const section of sections) {
      for (const one of section.querySelectorAll("details.op"))
        one.hidden = !one.querySelector("summary").textContent.toLowerCase().includes(word);
      section.hidden = !section.querySelector("details.op:not([hidden])");
    }
  });
  place.append(control("Find operations", filter));
  if (!api.servers) return {server: () => null};
  const servers = make("select", {}, ...api.servers.map((server, at) =>
    make("option", {value: at}, server.url + (server.description ? " (" + server.description + ")" : ""))));
  place.append(control("Server", servers));
  return {server: () => api.servers[servers.value]};
}

function show() {
  const main = document.getElementById("operations"), sections = [];
  const tools = toolsIn(document.querySelector(".tools"), sections);
  for (const [tag, list] of groups()) {
    const id = "tag" + (++ids);
    sections.push(make("section", {"aria-labelledby": id}, make("h2", {id}, tag),
      ...list.map(one => operationView(one.method, one.path, one.operation, tools))));
  }
  main.replaceChildren(...sections.length ? sections : [make("p", {}, "There are no operations.")]);
  const wanted = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (wanted && wanted.tagName === "DETAILS") { wanted.open = true; wanted.scrollIntoView(); }
}

show();
]==]
