--- From what a handler returned or raised to an answer recorded in C.
---
--- Everything here runs in the request's own task, inside or right behind its runner. C knows of
--- one recorded answer for each request; `settle` fills it in from returned values, `fail` from an
--- error, and `drain` sends what is no finished body but a stream.
local errors = require "srv.base.errors"
local error_page = require "srv.web.error_page"
local http = require "srv.core.http"
local json = require "srv.core.json"
local json_text = require "srv.base.json"
local objects = require "srv.web.objects"
local reader = require "srv.base.reader"
local log = require "srv.core.log"
local task = require "srv.core.task"
local trace = require "srv.base.trace"

local misuse = task.misuse

--- What goes for one route, or for one path that no route takes.
---@class srv.Plan
---@field inner srv.Scope  the innermost mount
---@field scope srv.Scope  where errors that reach the runner are answered: outside of all catches
---@field hooks table<string, function|false>
---@field route srv.CompiledRoute?

local answer = {}

local Object, Array, null = json.object_mark, json.array_mark, json.null
local EMPTY, TEXT, JSON, STREAM, SOCKET = http.EMPTY, http.TEXT, http.JSON, http.STREAM, http.SOCKET
local settle_in_c = http.settle

--- The message handler of every runner: an error object with its trace. The client's faults (4xx)
--- are no surprise, and a traceback costs more than the answer.
---@param raised any
---@return srv.Error
function answer.trace(raised)
  if errors.is(raised) and (raised.status < 500 or rawget(raised, "trace")) then return raised end
  return errors.adopt(raised, trace.trim(task.traceback(raised)))
end

function answer.again() misuse("next() was called twice") end

local function raise_if_error(v)
  if errors.is(v) then error(v, 0) end
end

--- What stands in next(...), if anything does: "route", or req and res. An error object is raised, as who writes
--- `next(err)` means it; whatever else might be a refusal, so it lets nobody through. FN: who calls; in
--- `return next(...)` it is on no stack.
function answer.check_next(fn, q, r, what, more)
  if what == "route" and more == nil or what == q and (more == nil or more == r) then return end
  raise_if_error(what)
  raise_if_error(more)
  misuse(('next() takes nothing, or "route", but no %s: to refuse, raise an error (srv.error(401, "...")); it is called at %s')
    :format(type(what == nil and more or what), trace.place_of(fn) or "?"))
end

answer.under = http.under

-- Returned values ----------------------------------------------------------------------------------

local function is_stream(body)
  local meta = getmetatable(body)
  return reader.is(body) or meta and meta.__call ~= nil
end

local function bad_answer(body)
  local hint = type(body) == "number" and (': write "nil, %d" for a status alone, res:json() for a number'):format(body) or ""
  error(errors.coded("bad_answer", "a handler returned a " .. type(body) .. hint), 0)
end

local function raise_returned(err)
  error(errors.adopt(err), 0)
end

--- A userdata is the relay of a WebSocket.
local KIND_PASSED_ON = { string = TEXT, userdata = SOCKET }

--- The response of another server (srv.http): its status, its end-to-end headers, its body as it comes.
--- What the handler says besides goes first.
local function record_passed_on(r, over, response, status, headers)
  local its_status, its_headers, body = getmetatable(response).__answer(response)
  if response.method == "HEAD" and http.method(r) ~= "HEAD" then its_headers["content-length"] = nil end
  for name, value in pairs(headers or {}) do
    its_headers[name:lower()] = nil
    its_headers[name] = value
  end
  local kind = KIND_PASSED_ON[type(body)] or STREAM
  return settle_in_c(r, over, kind, body, status or its_status, its_headers)
end

local function record_table(r, over, body, status, headers)
  local meta = getmetatable(body)
  if not meta or meta == Object or meta == Array or meta.__tojson and not meta.__answer and not errors.is(body) then
    return settle_in_c(r, over, JSON, body, status, headers)
  end
  if errors.is(body) then raise_returned(body) end
  if meta.__answer then return record_passed_on(r, over, body, status, headers) end
  if is_stream(body) then return settle_in_c(r, over, STREAM, body, status, headers) end
  return settle_in_c(r, over, JSON, body, status, headers)
end

local function record_nothing(r, over, status, headers)
  if type(status) ~= "number" then raise_returned(status) end
  if status >= 400 then errors.raise(status, nil, { headers = headers }) end
  return settle_in_c(r, over, EMPTY, nil, status, headers)
end

local function record(r, over, body, status, headers)
  if body == nil then return record_nothing(r, over, status, headers) end
  if body == null then return settle_in_c(r, over, JSON, body, status, headers) end
  local kind = type(body)
  if kind == "string" then return settle_in_c(r, over, TEXT, body, status, headers) end
  if kind == "table" then return record_table(r, over, body, status, headers) end
  if kind == "function" then return settle_in_c(r, over, STREAM, body, status, headers) end
  bad_answer(body)
end

--- Records what a handler returned. Nothing, or `res` itself: what res holds stands.
---@param r srv.Response
function answer.settle(r, body, status, headers)
  if body == r or body == nil and status == nil then return end
  record(r, false, body, status, headers)
end

--- The same for middleware: behind its next() it may put another answer in place of the recorded one.
---@param next_called table  its first field is false once next() ran
---@param r srv.Response
function answer.resettle(next_called, r, body, status, headers)
  if body == r or body == nil and status == nil then return end
  record(r, next_called[1] == false, body, status, headers)
end

--- Records an answer in place of any other: what error handlers return.
---@param r srv.Response
---@param default_status integer
---@return boolean  false: nothing was returned or recorded
local function replace(r, default_status, body, status, headers)
  if body == r or body == nil and status == nil then
    if not http.is_answered(r) then return false end
    http.default_status(r, default_status)
    return true
  end
  record(r, true, body, status or default_status, headers)
  return true
end

answer.replace = replace

-- Errors -----------------------------------------------------------------------------------------

--- Where the handler of Q's route begins: one that ends in a call (`return db:query(...)`), or has
--- returned its error, is on no stack.
local function handler_place(q)
  local plan = http.plan(q)
  local route = plan and plan.route
  if not route then return nil end
  local handler = route.functions[#route.functions]
  return trace.place_of(handler and handler.fn) or route.place
end

answer.handler_place = handler_place

local function log_error(q, err)
  if err.status < 500 then return end
  log.error("request failed", { err = err, route = http.label(q), handler = handler_place(q) })
end

--- Calls FN; what it raises is logged, and takes no answer away.
local function guarded(what, fn, ...)
  local ok, raised = xpcall(fn, answer.trace, ...)
  if not ok then
    log.error(what .. " failed", {
      message = tostring(raised), trace = rawget(raised, "trace"), at = trace.place_of(fn),
    })
  end
  return ok
end

answer.guarded = guarded

--- One error handler: true when it answered; what it raised instead, with the error as cause.
local function ask(format, err, q, r)
  local ok, body, status, headers = xpcall(format, answer.trace, err, q, r)
  if not ok then
    local is_news = body ~= err and rawget(body, "cause") == nil
    return false, is_news and errors.with(body, "cause", err) or body
  end
  local recorded, answered = xpcall(replace, answer.trace, r, err.status, body, status, headers)
  if recorded then return answered end
  return false, answered
end

--- ERR as the error of this request.
local function of_request(q, err)
  local id = q.id
  return rawget(err, "request_id") == id and err or errors.with(err, "request_id", id)
end

--- What is raised while an error is answered takes its place, but a 503 stays a 503.
local function in_place_of(raised, status)
  return status >= 500 and errors.with(raised, "status", status) or raised
end

--- Asks the error handlers of one mount. An error in one of them goes outward in its place.
---@return boolean answered
---@return srv.Error err
local function ask_scope(scope, err, q, r)
  for _, format in ipairs(scope.router.declared.error_handlers) do
    local answered, raised = ask(format, err, q, r)
    if answered then return true, err end
    if raised then
      log_error(q, err)
      err = of_request(q, in_place_of(raised, err.status))
    end
  end
  return false, err
end

--- Clears the way for ERR's answer: what described the recorded one is dropped, the rest stays.
local function prepare(r, err)
  http.drop_answer(r)
  if err.headers then http.set_headers(r, err.headers) end
  rawset(r, "error", err)
  objects.keep(r)
end

local function tell_hooks(plan, q, r, err)
  local hook = plan.hooks.error
  if hook then hook(err, q, r) end
end

--- What an error in the middle of a sent answer means: it is cut, so that the client can tell. No
--- handler can answer it any more, but trackers and the log are told.
local function cut(q, r, err, plan)
  local is_committed = http.is_committed(r)
  if not is_committed and not (errors.is(err, "answered_twice") and http.is_answered(r)) then return false end
  tell_hooks(plan, q, r, err)
  log_error(q, err)
  if is_committed then http.abort(r) end
  return true
end

local function answer_by_default(q, r, err)
  log_error(q, err)
  if not guarded("error page", function() replace(r, err.status, error_page.make(err, q, r, handler_place(q))) end) then
    http.record(r, true, TEXT, err.title, err.status)
  end
end

--- Asks the error handlers of the mounts from FROM (nil: none) outward to TO (nil: the app).
local function ask_outward(q, r, err, from, to)
  local scope, answered = from, nil
  while scope do
    prepare(r, err)
    answered, err = ask_scope(scope, err, q, r)
    if answered or scope == to then break end
    scope = scope.parent
  end
  return answered, err
end

--- Makes an answer of ERR by the handlers of SCOPE and those around it, then by the default.
---@param q srv.Request
---@param r srv.Response
---@param plan srv.Plan
---@param raised any
---@param scope srv.Scope|false|nil  plan.scope unless given; false: none, so the default
function answer.fail(q, r, plan, raised, scope)
  local err = of_request(q, errors.adopt(raised))
  if cut(q, r, err, plan) then return end
  tell_hooks(plan, q, r, err)
  local answered
  if scope == nil then scope = plan.scope end
  answered, err = ask_outward(q, r, err, scope)
  if answered then return log_error(q, err) end
  prepare(r, err)
  answer_by_default(q, r, err)
end

--- The catch of the mounts FROM (inner) to TO (outer) inside an onion: an error that they do not
--- answer goes on outward.
---@param from srv.Scope
---@param to srv.Scope
---@param plan srv.Plan
---@return fun(q: srv.Request, r: srv.Response, err: srv.Error)
function answer.catch(from, to, plan)
  return function(q, r, err)
    if cut(q, r, err, plan) then return end
    err = of_request(q, err)
    local answered
    answered, err = ask_outward(q, r, err, from, to)
    if not answered then error(err, 0) end
    tell_hooks(plan, q, r, err)
    log_error(q, err)
  end
end

-- Streams ----------------------------------------------------------------------------------------

local function next_chunk(stream)
  local chunk, err
  if reader.is(stream) then chunk, err = stream:read() else chunk, err = stream() end
  if err ~= nil then error(errors.adopt(err), 0) end
  if chunk ~= nil and type(chunk) ~= "string" then
    error(errors.coded("bad_answer", "a stream gave a " .. type(chunk) .. " instead of a string"), 0)
  end
  return chunk
end

local function trailer_value(trailer)
  local value = trailer.value
  if type(value) == "function" then value = value() end
  local kind = type(value)
  if kind == "string" or kind == "number" or value == nil then return value end
  error(errors.coded("bad_answer", ("the trailer %s is a %s instead of a string"):format(trailer.name, kind)), 0)
end

--- The fields behind the body, their functions called now; one that gives nil is left out.
local function trailers_of(r)
  local list = rawget(r, "trailer_list")
  if not list or http.wants_no_body(r) then return nil end
  local trailers = {}
  for _, trailer in ipairs(list) do
    local value = trailer_value(trailer)
    if value ~= nil then trailers[#trailers + 1] = { trailer.name, tostring(value) } end
  end
  return trailers
end

local function finish(r)
  http.end_writing(r)
  http.end_coding(r)
  return http.finish(r, trailers_of(r))
end

--- Makes plain data of recorded JSON that has a __tojson. What one raises is one more error answer,
--- but in the answer to an error it is raised: the handlers that gave it are not asked again.
---@param q srv.Request
---@param r srv.Response
---@param plan srv.Plan
---@param value any
local function resolve(q, r, plan, value)
  local ok, plain = xpcall(json_text.resolve, answer.trace, value)
  if ok then
    http.record(r, true, JSON, plain, http.status(r))
  elseif rawget(r, "error") then
    error(tostring(plain), 0)
  else
    http.drop_answer(r)
    answer.fail(q, r, plan, plain)
  end
end

--- Compresses what is recorded as the app's rules say (bind/lcoding); WRITES: as what will be written is.
local function code(q, r, plan, writes)
  if not http.code(r, writes) then return end
  resolve(q, r, plan, (http.recorded(r)))
  http.code(r)
end

--- Compressing this much takes a few milliseconds; then others have their turn.
local CODED_BYTES = 64 * 1024

local function write_in_turns(r, chunk)
  for at = 1, #chunk, CODED_BYTES do
    local sent, err = http.write(r, chunk:sub(at, at + CODED_BYTES - 1))
    if not sent then return nil, err end
    http.flush(r)
  end
  return r
end

--- Waits while the client is slower.
---@param r srv.Response
---@param chunk string
---@return srv.Response?
---@return srv.Error?
function answer.write(r, chunk)
  if #chunk > CODED_BYTES and http.is_coding(r) then return write_in_turns(r, chunk) end
  return http.write(r, chunk)
end

local function pump(r, stream)
  if http.wants_no_body(r) then return finish(r) end
  if reader.is(stream) and stream.head_first then
    http.write(r, "")
    if stream.has_events then http.events(r) end
  end
  for chunk in next_chunk, stream do
    local sent, err = answer.write(r, chunk)
    if not sent then return nil, err end
  end
  return finish(r)
end

--- Sends what was recorded, if it is a stream, and ends what res:write() began. The first chunk is
--- asked for before the head goes out, so an error until then is still an answer; not so of what another
--- server has begun to answer.
---@param r srv.Response
---@return boolean ok
---@return srv.Error? raised
local function send_stream(r)
  local ok, raised = true, nil
  local stream = http.stream(r)
  if stream then
    ok, raised = xpcall(pump, answer.trace, r, stream)
    if reader.is(stream) then stream:close() end
  elseif http.is_committed(r) then
    ok, raised = xpcall(finish, answer.trace, r)
  end
  return ok, raised
end

--- An error handler may stream its answer too; if that fails in turn, none is asked again.
---@param q srv.Request
---@param r srv.Response
---@param plan srv.Plan
local function drain(q, r, plan)
  local ok, raised = send_stream(r)
  if ok then return end
  if http.is_committed(r) then return answer.fail(q, r, plan, raised) end
  http.drop_answer(r) -- it is the stream that failed: nothing stands
  answer.fail(q, r, plan, raised)
  code(q, r, plan)
  if http.is_ready(r) then return end
  ok, raised = send_stream(r)
  if ok then return end
  http.drop_answer(r)
  answer.fail(q, r, plan, raised, false)
  code(q, r, plan)
end

-- What runners call ------------------------------------------------------------------------------

--- Hook `send` on every status; an error in it is one more error answer, without the hook.
local function send_hooks(q, r, plan)
  local send = plan.hooks.send
  if not send or http.is_committed(r) then return end
  local ok, raised = xpcall(send, answer.trace, q, r)
  if not ok then answer.fail(q, r, plan, in_place_of(raised, r:status())) end
end

--- The head is about to go out before the handler ends: its hooks run now.
---@param r srv.Response
function answer.commit(r)
  if not http.must_begin(r) then return end
  local plan = http.plan(r)
  if not plan or not plan.hooks.send then return end
  local q = objects.request(r[1])
  plan.hooks.send(q, r)
  code(q, r, plan, true)
end

local function no_answer(q, plan)
  local place = plan.route and ("; its handler is at " .. handler_place(q)) or ""
  return errors.coded("no_answer", http.label(q) .. " returned nothing, and res holds no answer" .. place)
end

--- The end of an onion.
function answer.complete(q, r, plan, ok, err)
  if not ok then answer.fail(q, r, plan, err) end
  if not http.is_answered(r) then answer.fail(q, r, plan, no_answer(q, plan), plan.inner) end
  if plan.hooks.send then
    send_hooks(q, r, plan)
    code(q, r, plan)
  end
  if not http.is_ready(r) then drain(q, r, plan) end
end

--- The end of a bare handler that returned no plain text or table.
function answer.slow(p, plan, body, status, headers)
  local q, r = objects.request(p), objects.response(p)
  if objects.is_response(body) then body = r end
  local ok, err = xpcall(answer.settle, answer.trace, r, body, status, headers)
  answer.complete(q, r, plan, ok, err)
end

--- The end of a bare handler that raised; C calls it too, for an answer that could not be encoded.
function answer.fail_bare(p, plan, err)
  local q, r = objects.request(p), objects.response(p)
  answer.fail(q, r, plan, err)
  drain(q, r, plan)
end

--- C calls it for recorded JSON in which a __tojson stands.
function answer.resolve(p, plan, value)
  local q, r = objects.request(p), objects.response(p)
  resolve(q, r, plan, value)
  if not http.is_ready(r) then drain(q, r, plan) end
end

return answer
