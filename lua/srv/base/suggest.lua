--- "Did you mean": the known word nearest to one that was misspelt, and what is here for a name of another framework.
local misuse = require "srv.core.task".misuse

local suggest = {}

-- Longer words are no slips of the finger, and the comparison costs length times length.
local WORD_CHARS_MAX = 64

--- Edits (insert, delete, replace, swap of neighbours) from A to B.
---@param a string
---@param b string
---@return integer
local function distance(a, b)
  local before, last, row = {}, {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    row[0] = i
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      local edits = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        edits = math.min(edits, before[j - 2] + 1)
      end
      row[j] = edits
    end
    before, last, row = last, row, before
  end
  return last[#b]
end

--- The known word that WORD was probably meant to be: at most a third of its characters differ, or
--- one of two.
--- Of equally near ones the first in byte order, so that a message is the same in every worker.
---@param word string
---@param known string[]
---@return string?
function suggest.nearest(word, known)
  if #word > WORD_CHARS_MAX or #word < 2 then return nil end
  local best, best_edits = nil, math.max(1, math.floor(#word / 3)) + 1
  for _, candidate in ipairs(known) do
    if #candidate <= WORD_CHARS_MAX then
      local edits = distance(word:lower(), candidate:lower())
      if edits < best_edits or (edits == best_edits and best and candidate < best) then
        best, best_edits = candidate, edits
      end
    end
  end
  return best
end

--- `, did you mean "timeout"?`, or "" where no known word is near.
---@param word string
---@param known string[]
---@return string
function suggest.hint(word, known)
  local nearest = suggest.nearest(word, known)
  return nearest and (', did you mean "%s"?'):format(nearest) or ""
end

--- The same for a few names that can be told in full: `, did you mean "live"?`, or `; known: live, ready`.
---@param word string
---@param known string[]
---@return string
function suggest.names(word, known)
  local hint = suggest.hint(word, known)
  if hint ~= "" or #known == 0 then return hint end
  local sorted = { unpack(known) }
  table.sort(sorted)
  return "; known: " .. table.concat(sorted, ", ")
end

-- Names of other frameworks -----------------------------------------------------------------------------
-- A class asks for these last, when it has no such name itself. Apps hang fields of their own on requests, answers and
-- sessions, so a name stands here only if it is clearly a method elsewhere; any other is nil, as ever.

local INSTEAD = {
  req = {
    get = 'req:header "name"', getHeader = 'req:header "name"', param = "req.params.name or req.query.name",
    acceptsLanguages = "req:accepts_language(...)", acceptsEncodings = "req:accepts_encoding(...)",
    isAuthenticated = "req.state.user, which srv.basic_auth, srv.bearer and srv.jwt set",
  },
  res = {
    sendStatus = "return nil, 204", sendFile = "res:file(path)", sendfile = "res:file(path)", code = "res:status(201)",
    set = 'res:header("Name", "value")', setHeader = 'res:header("Name", "value")', get = 'res:header "Name"',
    getHeader = 'res:header "Name"', removeHeader = 'res:remove "Name"', writeHead = "res:status(n) and res:header(name, value)",
    setCookie = "res:cookie(name, value)", clearCookie = "res:clear_cookie(name)", contentType = "res:type(t)",
    attachment = "res:download(path, name)", jsonp = "res:json(v); srv.cors lets other origins read it",
    writeEarlyHints = "res:early_hints { Link = ... }",
  },
  app = {
    set = "config.lua, or an option of srv.app { ... }", enable = "config.lua, or an option of srv.app { ... }",
    disable = "config.lua, or an option of srv.app { ... }", on = "app:hook(name, fn)", addHook = "app:hook(name, fn)",
    register = "app:use(plugin), or app:mount(path, router)", del = "app:delete(path, fn)", engine = "res:render(view, data)",
    param = "a rule of the route: params = { id = \"uuid\" }", decorate = "a module, or req.state",
    decorateRequest = "req.state", decorateReply = "a function of a module", setErrorHandler = "app:error(fn)",
    setNotFoundHandler = "app:not_found(fn)", inject = "srv.test(app):get(path)",
  },
  db = {
    get = "db:one(sql, ...)", all = "db:query(sql, ...)", each = "for row in db:rows(sql, ...) do", run = "db:exec(sql, ...)",
    execute = "db:exec(sql, ...), or db:query(sql, ...) for rows", fetch = "db:query(sql, ...)",
    prepare = "db:query(sql, ...), which keeps statements prepared", transaction = "db:tx(fn)", begin = "db:tx(fn)",
  },
  ["req.session"] = {
    save = "nothing: a session that was changed is saved with the answer", regenerate = "req.session:rotate()",
  },
  ws = {
    on = "app:ws(path, { open = fn, message = fn, close = fn })", addEventListener = "app:ws(path, { message = fn, ... })",
    emit = "ws:send(v)", write = "ws:send(v)", join = "ws:subscribe(topic)", leave = "ws:unsubscribe(topic)",
    broadcast = "ws:publish(topic, v)", terminate = "ws:close()", ping = "the option `heartbeat`: the server pings by itself",
  },
  ["srv.json"] = { stringify = "srv.json.encode(v)", parse = "srv.json.decode(text)" },
}

--- The foreign names of OBJECT as functions that raise.
---@param object "req"|"res"|"app"|"db"|"ws"|"req.session"|"srv.json"
---@param sign string?  ":", as a method is called, or "."
---@return table<string, function>
function suggest.foreign(object, sign)
  local refused = {}
  for name, instead in pairs(INSTEAD[object]) do
    local text = ("%s%s%s is another framework's name; here it is: %s"):format(object, sign or ":", name, instead)
    refused[name] = function() misuse(text) end
  end
  return refused
end

return suggest
