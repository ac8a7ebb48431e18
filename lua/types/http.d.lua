---@meta srv.core.http
-- luacheck: ignore 212 241

--- Requests and answers (src/bind/lhttp.c). Apps use req and res (lua/srv/web).
---
--- A `srv.core.http.Call` is a request's number, or a view of it: a table with the number at 1. All
--- functions that take one raise when that request has ended.
---@alias srv.core.http.Call number|{ [1]: number }
local http = {}

-- At start (bind/lpattern.c, lsite.c, lfile.c) ---------------------------------------------------------

---@class srv.core.http.Pattern
local Pattern = {}
---@return string
function Pattern:text() end
---@return { name: string, optional: boolean }[]
function Pattern:params() end
---@return integer
function Pattern:segments() end
--- Whether this prefix covers what a route matches.
---@param route srv.core.http.Pattern
---@return "always"|"maybe"|"never"
function Pattern:covers(route) end
---@return string?  why it cannot be a prefix
function Pattern:prefix_fault() end
---@param values table<string, string|number>
---@return string? path
---@return string? message
function Pattern:build(values) end

---@param text string
---@return srv.core.http.Pattern?
---@return string? message
function http.pattern(text) end
---@param text string
---@return string?  why it is no pattern for a Host
function http.host_fault(text) end
---@param name string
---@return boolean
function http.is_method(name) end
---@return string  "app.lua:7: ", the innermost line that is not srv's own
function http.where() end

---@class srv.core.http.Site
local Site = {}
--- Hosts are asked in the order in which they were added; 0 is any host.
---@param pattern string
---@return integer index
function Site:host(pattern) end
---@param index integer
---@return { name: string }[]
function Site:host_params(index) end
---@param host integer
---@param route table  { path, label, methods, slash, fallback, name, timeout, body_limit, finishes, wants_sent, wants_abort }
---@return integer? id
---@return integer? earlier  the route that has this pattern and method already
function Site:add(host, route) end
---@param host integer
---@param id integer
---@param runner fun(p: number, ...): any, integer?, table?
---@param plan table
function Site:run(host, id, runner, plan) end
---@param entries table<string, function>  unmatched, fail, late, resolve, aborted, sent, start, stop
---@return srv.core.http.Site
function Site:seal(entries) end
---@return srv.core.http.Site
function http.site() end

---@param path string  absolute
---@return userdata? folder
---@return srv.Error?
function http.folder(path) end

-- The request (bind/lrequest.c, lbody.c) -----------------------------------------------------------------

---@return number?  of the request that this code runs for
function http.current() end
---@param call srv.core.http.Call
---@return string
function http.method(call) end
http.path, http.target, http.host, http.id, http.protocol, http.label = http.method, http.method, http.method,
  http.method, http.method, http.method
---@param call srv.core.http.Call
---@return boolean
function http.is_aborted(call) end
http.is_tls, http.has_body = http.is_aborted, http.is_aborted
---@param call srv.core.http.Call
---@return srv.TlsInfo?
function http.tls(call) end
---@param call srv.core.http.Call
---@return string ip
---@return integer port
function http.peer(call) end
---@param call srv.core.http.Call
---@return number?  seconds to the deadline
function http.time_left(call) end
---@param call srv.core.http.Call
---@return string? path
---@return string? name
function http.route_info(call) end
---@param call srv.core.http.Call
---@return table
function http.params(call) end
---@param call srv.core.http.Call
---@return table?  nil: more than 1,000 pairs
function http.query(call) end
--- The next route that matches takes this one's place.
---@param call srv.core.http.Call
---@return integer? id
---@return integer? host
function http.next_route(call) end
---@param call srv.core.http.Call
---@return "not_found"|"no_method"|"bad_escape"|"moved" kind
---@return string allow
function http.miss(call) end
---@param call srv.core.http.Call
---@param prefix srv.core.http.Pattern
---@return boolean
function http.under(call, prefix) end
---@param call srv.core.http.Call
---@param prefix srv.core.http.Pattern
---@return string|false?  what the prefix leaves of the path, decoded; false: an escape in it is broken
function http.rest(call, prefix) end
---@param call srv.core.http.Call
---@param index integer
---@return boolean
function http.is_host(call, index) end
---@param call srv.core.http.Call
---@param segments integer
---@return integer  bytes of the path that these take
function http.skip(call, segments) end
---@param call srv.core.http.Call
---@return srv.Plan?
function http.plan(call) end
---@param call srv.core.http.Call
---@param plan srv.Plan
---@param wants_sent any
---@param wants_abort any
function http.set_plan(call, plan, wants_sent, wants_abort) end
---@param p number
---@param object table
---@param is_response boolean?
---@return boolean  false: the request has ended
function http.keep(p, object, is_response) end
---@param call srv.core.http.Call
---@param name string
---@return string?
function http.header(call, name) end
--- A browser asks whether a page of another origin may send what it is about to.
---@param call srv.core.http.Call
---@return boolean
function http.is_preflight(call) end
---@param call srv.core.http.Call
---@param name string
---@return string[]
function http.header_lines(call, name) end
---@param call srv.core.http.Call
---@return table<string, string>
function http.headers(call) end
---@param call srv.core.http.Call
---@param text string
---@param charset "utf-8"|"latin1"
---@param fields_max integer
---@return table?
---@return "too_many"|"malformed"|nil
function http.parse_form(call, text, charset, fields_max) end
--- The whole body, within its limit. Waits.
---@param call srv.core.http.Call
---@return string?
---@return srv.Error?
function http.read_body(call) end
--- How the body was handed out, if it was; its length, if that was announced.
---@param call srv.core.http.Call
---@return "whole"|"streamed"|nil
---@return integer? bytes
function http.body_state(call) end
---@param call srv.core.http.Call
function http.open_stream(call) end
--- The next piece. Waits.
---@param call srv.core.http.Call
---@param bytes_max integer
---@return string?
---@return srv.Error?
function http.read_some(call, bytes_max) end
--- The body is read inflated from now on; false: no such coding.
---@param call srv.core.http.Call
---@param coding string
---@return boolean
function http.decode_body(call, coding) end
--- What decode_body() knows: "gzip, deflate, ..."
---@type string
http.READ_CODINGS = nil
---@param text string
---@return boolean
function http.is_utf8(text) end

--- The request is called ID from now on.
---@param call srv.core.http.Call
---@param id string
function http.set_id(call, id) end

-- The answer (bind/lhead.c, lrecord.c, lstream.c, lfile.c): setters return the call ----------------------

---@param call srv.core.http.Call
---@param status integer?
function http.status(call, status) end
---@param call srv.core.http.Call
---@param status integer
function http.default_status(call, status) end
---@param call srv.core.http.Call
---@param name string
---@param value string|number|string[]|false|nil
function http.field(call, name, value) end
---@param call srv.core.http.Call
---@param name string
---@param value string
function http.append(call, name, value) end
---@param call srv.core.http.Call
---@param name string
function http.remove(call, name) end
---@param call srv.core.http.Call
---@param headers table
function http.set_headers(call, headers) end
--- NAME, VALUE, NAME, VALUE ...: checked and kept for good, to be put on many answers. The names differ.
---@param list string[]
---@return userdata
function http.field_list(list) end
--- Those fields that are not there yet.
---@param call srv.core.http.Call
---@param list userdata
function http.set_missing(call, list) end
--- The same, and what is left of an earlier list of defaults goes.
---@param call srv.core.http.Call
---@param list userdata
function http.set_defaults(call, list) end
--- In place of all fields of those names.
---@param call srv.core.http.Call
---@param list userdata
function http.set_list(call, list) end
---@param call srv.core.http.Call
---@param name string?  "json", ".html", a media type
function http.type(call, name) end
---@param call srv.core.http.Call
---@param name string
function http.default_type(call, name) end
---@param name string
---@return string?
function http.media_type(name) end
---@param call srv.core.http.Call
---@param ... string
function http.vary(call, ...) end
---@param call srv.core.http.Call
---@param tag string?
---@param opts { weak: boolean }?
function http.etag(call, tag, opts) end
--- How answers are compressed: for use_coding().
---@param min integer
---@param encodings string[]  best first
---@param types string[]?     a media type, its beginning ("image/"), or its end ("+json")
---@return userdata rules
function http.coding_rules(min, encodings, types) end
---@param call srv.core.http.Call
---@param rules userdata
function http.use_coding(call, rules) end
--- Compresses what is recorded as the call's rules say. Waits. True: record it without __tojson, then again.
---@param call srv.core.http.Call
---@param writes boolean?  the body is about to be written
---@return boolean?
function http.code(call, writes) end
--- What is written is compressed.
---@param call srv.core.http.Call
---@return boolean
function http.is_coding(call) end
--- The end of a compressed stream, before finish(). Waits.
---@param call srv.core.http.Call
function http.end_coding(call) end
--- A body of up to LIMIT bytes gets an ETag of what is in it, when it goes out.
---@param call srv.core.http.Call
---@param weak boolean
---@param limit integer
function http.tag_body(call, weak, limit) end
---@param call srv.core.http.Call
---@param when number|string|nil
function http.last_modified(call, when) end
---@param call srv.core.http.Call
---@return boolean
function http.is_fresh(call) end
---@param call srv.core.http.Call
---@param headers table
function http.early_hints(call, headers) end

http.EMPTY, http.TEXT, http.JSON, http.STREAM, http.FILE, http.SOCKET = 1, 2, 3, 4, 5, 6
---@param call srv.core.http.Call
---@param over boolean  in place of what was recorded
---@param kind integer  one of the above
---@param value any
---@param status integer?
---@param headers table?
function http.record(call, over, kind, value, status, headers) end
--- The same for what a handler returned: no line of the app is noted.
http.settle = http.record
---@param call srv.core.http.Call
function http.note_where(call) end
---@param call srv.core.http.Call
---@return any value
---@return boolean is_json
function http.recorded(call) end
---@param call srv.core.http.Call
---@param value any
function http.replace_value(call, value) end
---@param call srv.core.http.Call
function http.drop_answer(call) end
---@param call srv.core.http.Call
---@return any  the function or reader that is to be pumped
function http.stream(call) end
---@param call srv.core.http.Call
---@return boolean
function http.is_answered(call) end
http.is_ready, http.is_committed, http.wants_no_body = http.is_answered, http.is_answered, http.is_answered
--- The head is not out; raises where another answer is recorded.
http.must_begin = http.is_answered
--- Waits while the client is slower.
---@param call srv.core.http.Call
---@param chunk string
---@return any res
---@return srv.Error?
function http.write(call, chunk) end
---@param call srv.core.http.Call
function http.flush(call) end
--- Waits for what a child writes; nobody begins to write any more.
---@param call srv.core.http.Call
function http.end_writing(call) end
--- The field Trailer names it, if the head is not out.
---@param call srv.core.http.Call
---@param name string
function http.announce_trailer(call, name) end
---@param call srv.core.http.Call
---@param trailers { [1]: string, [2]: string }[]?
function http.finish(call, trailers) end
---@param call srv.core.http.Call
function http.abort(call) end
--- A stream of events, which ends in order when its generation retires or the process drains. Cancels
--- the request's task where no body is sent.
---@param call srv.core.http.Call
function http.events(call) end
--- Waits. "found": the file is recorded, unless ONLY_ASK.
---@param call srv.core.http.Call
---@param folder userdata
---@param path string
---@param opts table  { index, dotfiles, precompressed, etag, max_age, immutable, private, type }
---@param only_ask boolean?
---@return "found"|"missing"|"bad_path"|"folder"|"exhausted"
function http.find_file(call, folder, path, opts, only_ask) end

--- Waits. What is in a folder and may be shown, folders first; nothing of it is open any more.
---@param folder userdata
---@param path string  "" or with a slash at its end
---@param shows_dotfiles boolean
---@return { name: string, is_folder: boolean, size: number, modified: number }[]? entries
---@return boolean|string is_cut  there may be more; or why there is none
function http.list_folder(folder, path, shows_dotfiles) end

-- Tests (bind/lhttp_test.c) -------------------------------------------------------------------------------

---@param site srv.core.http.Site
---@param request table  { method, target, host, headers, body, ip, body_limit }
---@return table answer  { status, fields, body, pieces, interim, cut }
function http.test_request(site, request) end

--- The same for an answer that is read as it comes.
---@param site srv.core.http.Site
---@param request table
---@return srv.core.http.TestStream
function http.test_open(site, request) end

---@class srv.core.http.TestStream
local TestStream = {}

---@param seconds number?
---@return integer? status
---@return table fields  { { name, value }, ... }; or the error
function TestStream:head(seconds) end

--- "": look again; nil alone: the end.
---@param seconds number?
---@return string?
---@return srv.Error?
function TestStream:piece(seconds) end

function TestStream:close() end

--- A port on loopback that serves the site.
---@param site srv.core.http.Site
---@return srv.core.http.TestPort?
---@return srv.Error?
function http.test_listen(site) end

---@class srv.core.http.TestPort
local TestPort = {}

---@return string? url
function TestPort:url() end

function TestPort:close() end

return http
