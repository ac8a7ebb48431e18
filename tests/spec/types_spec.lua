--- lua/types/srv tells an editor what `require "srv"` gives. Here the files are read as the language server reads
--- them, and held against what is there: every public function with its parameters, every option, every type.
local srv = require "srv"

local FOLDER = "lua/types/srv/"

-- Reading the files -----------------------------------------------------------------------------------

local function output_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "*a"
  pipe:close()
  return text
end

local function read_file(path)
  local file = assert(io.open(path))
  local text = file:read "*a"
  file:close()
  return text
end

---@class Declarations
---@field classes table<string, { fields: table, functions: table, parents: string[], place: string }>
---@field aliases table<string, string>
---@field mentioned table<string, string>  names of types, with a place
---@field faults string[]

local function new_declarations() return { classes = {}, aliases = {}, mentioned = {}, faults = {} } end

local function complain(all, place, ...) all.faults[#all.faults + 1] = place .. ": " .. string.format(...) end

--- The names of srv's types in TEXT, which stand outside of strings and descriptions.
local function note_types(all, text, place)
  for name in text:gsub('"[^"]*"', ""):gmatch "%f[%w_.]srv%.[%w_.]*[%w_]" do all.mentioned[name] = all.mentioned[name] or place end
end

--- What a tag says without its description: two spaces part them.
local function said(line) return (line:gsub("  .*$", "")) end

local function open_class(all, line, place)
  local name, rest = said(line):match "^%-%-%-@class ([%w_.]+):?(.*)$"
  local class = all.classes[name] or { fields = {}, functions = {}, parents = {}, place = place }
  for parent in rest:gmatch "srv%.[%w_.]+" do class.parents[#class.parents + 1] = parent end
  all.classes[name] = class
  note_types(all, rest, place)
  return class
end

local function add_field(all, class, line, place)
  local name = line:match "^%-%-%-@field ([%w_]+)%?? "
  local text = line:gsub("^%-%-%-@field %S+", "")
  note_types(all, text, place)
  if name then class.fields[name] = text:match "%f[%w_]fun%(" and "function" or "value" end
end

--- "self, name, ...": what stands in the declaration of a function.
local function names_of(list)
  local names = {}
  for name in list:gmatch "[%w_.]+" do names[#names + 1] = name end
  return names
end

--- Each parameter is annotated, in order, and no other.
local function check_annotated(all, place, names, tags)
  local annotated = {}
  for _, tag in ipairs(tags) do annotated[#annotated + 1] = tag:match "^%-%-%-@param ([%w_.]+)" end
  if table.concat(annotated, " ") ~= table.concat(names, " ") then
    complain(all, place, "takes (%s), annotated are (%s)", table.concat(names, ", "), table.concat(annotated, ", "))
  end
end

local function add_function(all, locals, line, tags, place)
  local owner, kind, name, list = line:match "^function ([%w_]+)([.:])([%w_]+)%((.-)%) end$"
  local class = owner and locals[owner]
  if not class then return complain(all, place, "stands in no class") end
  local names = names_of(list)
  check_annotated(all, place, names, tags)
  if class.functions[name] then complain(all, place, "%s is declared twice", name) end
  class.functions[name] = { names = names, is_method = kind == ":", place = place }
end

--- One file: a class is the next local's, functions are the local's.
local function read_declarations(all, path)
  local locals, class, tags, number = {}, nil, {}, 0
  for line in read_file(path):gmatch "([^\n]*)\n" do
    number = number + 1
    local place = path .. ":" .. number
    if line:find "^%-%-%-@class" then
      class = open_class(all, line, place)
    elseif line:find "^%-%-%-@field" then
      add_field(all, assert(class, place), line, place)
    elseif line:find "^%-%-%-@alias" then
      local name, meaning = line:match "^%-%-%-@alias ([%w_.]+) (.*)$"
      all.aliases[name] = place
      note_types(all, said(meaning), place)
    elseif line:find "^%-%-%-@overload" then
      note_types(all, line, place)
      if class and #tags == 0 then class.is_called = true end
    elseif line:find "^%-%-%-@" then
      note_types(all, said(line:gsub("^%-%-%-@%a+ ", "")), place)
      tags[#tags + 1] = line
    elseif line:find "^local [%w_]+ = {}$" and class then
      locals[line:match "^local ([%w_]+)"] = class
    elseif line:find "^function " then
      add_function(all, locals, line, tags, place)
      tags = {}
    elseif line == "" then
      tags = {}
    elseif not line:find "^%-%-" and not line:find "^return " then
      complain(all, place, "is read by nobody: %s", line)
    end
  end
end

local all = new_declarations()
for path in output_of("ls " .. FOLDER .. "*.d.lua"):gmatch "[^\n]+" do read_declarations(all, path) end

-- Holding them against what is there ---------------------------------------------------------------------

--- Public, and not for apps: tables and functions that srv's own modules share.
local INNER = {
  ["srv.ErrorModule"] = "adopt coded raise with", ["srv.SchemaModule"] = "invalid new of options",
  ["srv.Schema"] = "answerer checker openapi_part wants_file", ["srv.JsonModule"] = "is_array is_object resolve",
  ["srv.TemplateModule"] = "check locate media_type use", ["srv.TestModule"] = "drop_dbs restore",
  ["srv.Log"] = "print tap wants", ["srv.Timer"] = "run runs_here", ["srv.Router"] = "listen",
  ["srv.Shared"] = "claim replace", ["srv.Subscription"] = "end_of",
}

local function inner_of(class)
  local inner = {}
  for name in (INNER[class] or ""):gmatch "%S+" do inner[name] = true end
  return inner
end

--- What is declared under NAME in CLASS or what it stands on.
local function find(class, kind, name)
  local declared = all.classes[class]
  if not declared then return nil end
  if declared[kind][name] then return declared[kind][name] end
  for _, parent in ipairs(declared.parents) do
    local found = find(parent, kind, name)
    if found then return found end
  end
end

--- The methods that an object's class gives it; nil for a module. A class whose __index is a function keeps them in a
--- table that this one looks into.
local function methods_of(object)
  local meta = debug.getmetatable(object)
  local index = meta and meta.__index
  if type(index) == "table" then return index end
  for i = 1, type(index) == "function" and 8 or 0 do
    local name, value = debug.getupvalue(index, i)
    if name == "methods" then return value end
  end
end

local function functions_of(object)
  local found = {}
  for name, value in pairs(methods_of(object) or object) do
    if type(name) == "string" and not name:find "^__" and type(value) == "function" then found[name] = value end
  end
  return found
end

local function is_object_first(fn, declared)
  return declared.is_method and debug.getinfo(fn, "u").nparams > 0
end

--- What a method looks at only to refuse it.
local REFUSED = "more"

--- The parameters as the code has them; nil for C, where nobody can ask.
local function parameters_of(fn, declared)
  local info = debug.getinfo(fn, "Su")
  if info.what == "C" then return nil end
  local names = {}
  for i = is_object_first(fn, declared) and 2 or 1, info.nparams do
    local name = debug.getlocal(fn, i)
    if name ~= REFUSED then names[#names + 1] = name end
  end
  if info.isvararg then names[#names + 1] = "..." end
  return names
end

local function check_parameters(class, name, fn, declared)
  local names = parameters_of(fn, declared)
  if not names then return end
  local wanted, got = table.concat(names, ", "), table.concat(declared.names, ", ")
  assert(wanted == got, ("%s: %s.%s takes (%s), not (%s)"):format(declared.place, class, name, wanted, got))
end

--- Every function of OBJECT is declared in CLASS, and every function that is declared is there.
local function check_object(class, object)
  assert(all.classes[class], class .. " is not declared")
  local inner, there = inner_of(class), functions_of(object)
  for name, fn in pairs(there) do
    local declared = find(class, "functions", name)
    if not inner[name] and find(class, "fields", name) ~= "function" then
      assert(declared, ("%s.%s is not declared"):format(class, name))
      check_parameters(class, name, fn, declared)
    end
  end
  for name, declared in pairs(all.classes[class].functions) do
    assert(there[name] or object[name] ~= nil, ("%s: there is no %s.%s"):format(declared.place, class, name))
  end
end

--- The keys of the table that stands in FILE behind BEGINNING.
local function keys_of(file, beginning)
  local text = assert(read_file(file):match(beginning .. " = (%b{})"), file .. ": " .. beginning)
  local keys = {}
  for key in text:gsub("%-%-[^\n]*", ""):sub(2, -2):gsub("%b{}", "{}"):gmatch "([%a_][%w_]*) = " do keys[key] = true end
  return keys
end

--- Modules, and the classes that declare them.
local MODULES = {
  error = "ErrorModule", schema = "SchemaModule", template = "TemplateModule", test = "TestModule", json = "JsonModule",
  time = "TimeModule", format = "FormatModule", url = "UrlModule", html = "HtmlModule", crypto = "CryptoModule", http = "Http",
  tcp = "TcpModule", unix = "UnixModule", udp = "UdpModule", dns = "DnsModule", fs = "FsModule", exec = "ExecModule",
  bus = "BusModule", metrics = "MetricsModule", log = "Log", cache = "Shared",
}

--- Objects of each class that a spec can make; those that belong to a request are made in one.
local function objects_in_request(req, res)
  return { Request = req, Response = res, Session = req.session }
end

local function objects()
  local app = srv.app()
  local r = srv.redis "redis://127.0.0.1:1"
  local listener = assert(srv.tcp.listen("127.0.0.1:0", function() end))
  local process = assert(srv.exec.start { "true" })
  app:ws("/ws", function(ws) ws:receive() end)
  local t = srv.test(app)
  app:get("/", function() return "x" end)
  local url = t:listen():gsub("^http", "ws") .. "/ws"
  return {
    Router = app, Timer = app:every("1h", function() end), TestClient = t, TestClock = srv.test.clock(), TestAnswer = t:get "/",
    TestStream = t:open("GET", "/"), TestSocket = t:ws "/ws", WebSocket = assert(srv.websocket(url)), Schema = srv.schema "string", Task = srv.spawn(function() end), Channel = srv.channel(),
    Event = srv.event(), Semaphore = srv.semaphore(1), Mutex = srv.mutex(), Db = srv.sqlite("sqlite::memory:", { migrations = false }),
    Shared = srv.shared "types", Subscription = srv.bus.subscribe "types", Counter = srv.metrics.counter("types_total", "help"),
    Gauge = srv.metrics.gauge("types_now", "help"), Histogram = srv.metrics.histogram("types_seconds", "help"), Udp = srv.udp.bind "127.0.0.1:0",
    Listener = listener, Socket = srv.tcp.connect("127.0.0.1", tonumber(listener.address:match "%d+$")), Process = process,
    ProcessInput = process.stdin, Reader = process.stdout, File = srv.fs.temp(), HttpClient = srv.http.client {}, Redis = r,
    RedisScript = r:script "return 1", Log = srv.log.with {},
  }
end

describe("the types for editors", function()
  it("are files that a language server can read: classes, aliases, functions of these, all parameters annotated", function()
    assert.same({}, all.faults)
    local count = 0
    for _, class in pairs(all.classes) do for _ in pairs(class.functions) do count = count + 1 end end
    assert(count > 200, count .. " functions")
  end)

  it("are Lua, without code that does something", function()
    for path in output_of("ls " .. FOLDER .. "*.d.lua"):gmatch "[^\n]+" do
      assert(loadfile(path))
      assert(read_file(path):find "^%-%-%-@meta", path)
    end
  end)

  it("are all carried in the binary, for `srv types`", function()
    local names = {}
    for name in output_of("ls " .. FOLDER):gmatch "%S+" do names[#names + 1] = FOLDER .. name end
    assert.same(names, require "srv.core.asset".list(FOLDER))
  end)

  it("name no type that is not declared", function()
    for name, place in pairs(all.mentioned) do
      assert(all.classes[name] or all.aliases[name], ("%s: %s is not declared"):format(place, name))
    end
  end)

  it("have each part of srv", function()
    for name in pairs(keys_of("lua/srv/init.lua", "local PARTS")) do
      local declared = all.classes.srv.functions[name]
      assert(declared or all.classes.srv.fields[name], "srv." .. name .. " is not declared")
      if declared then check_parameters("srv", name, srv[name], declared) end
    end
    for name, declared in pairs(all.classes.srv.functions) do
      assert(type(srv[name]) == "function", declared.place .. ": there is no srv." .. name)
    end
  end)

  for name, class in pairs(MODULES) do
    it("have all of srv." .. name, function()
      check_object("srv." .. class, srv[name])
      local meta = type(srv[name]) == "table" and getmetatable(srv[name])
      assert.equal(meta and meta.__call ~= nil or nil, all.classes["srv." .. class].is_called)
    end)
  end

  it("have all methods of each object", function()
    local all_of_them = objects()
    finally(function() all_of_them.TestClient:close() end) -- with the app's timer
    for name, object in pairs(all_of_them) do check_object("srv." .. name, object) end
  end)

  it("have all methods and fields of requests and answers", function()
    local app, ran = srv.app(), false
    app:use(srv.session())
    app:get("/", function(req, res)
      for name, object in pairs(objects_in_request(req, res)) do check_object("srv." .. name, object) end
      ran = true
      return ""
    end)
    srv.test(app):get("/"):expect(200)
    assert.is_true(ran)
    for class, file in pairs { ["srv.Request"] = "lua/srv/web/request.lua", ["srv.Response"] = "lua/srv/web/response.lua" } do
      for name in read_file(file):gmatch "\n[%a ]*fields%.([%w_]+)[ %(]" do
        assert(name == "body" or all.classes[class].fields[name], class .. "." .. name .. " is not declared")
      end
    end
  end)

  it("have what a form, a response of srv.http and a stream of events give", function()
    local app = srv.app()
    app:post("/form", function(req)
      local _, files = req:multipart()
      check_object("srv.Upload", files[1])
      return ""
    end)
    app:post("/parts", function(req)
      for part in req:parts() do check_object("srv.Part", part) part:close() end
      return ""
    end)
    app:get("/events", function(_, res) check_object("srv.EventStream", res:sse()) end)
    local t = srv.test(app)
    local form = { file = { name = "a.txt", type = "text/plain", body = "x" } }
    t:post("/form", { multipart = form }):expect(200)
    t:post("/parts", { multipart = form }):expect(200)
    t:get("/events"):expect(200)
    check_object("srv.HttpResponse", srv.http.get(t:listen() .. "/none"))
    t:close()
  end)

  it("have each option", function()
    for class, from in pairs {
      RouterOptions = { "lua/srv/web/router.lua", "local ROUTER_OPTIONS" }, RouteOptions = { "lua/srv/web/router.lua", "local ROUTE_OPTIONS" },
      StaticOptions = { "lua/srv/web/router.lua", "local STATIC_OPTIONS" }, FileOptions = { "lua/srv/web/response.lua", "local FILE_OPTIONS" },
      CookieOptions = { "lua/srv/web/cookie.lua", "local OPTIONS" }, TimerOptions = { "lua/srv/web/timer.lua", "local OPTIONS" },
      HttpOptions = { "lua/srv/async/fetch_request.lua", "local KNOWN" }, ForwardOptions = { "lua/srv/async/fetch_forward.lua", "local KNOWN" },
      DbOptions = { "lua/srv/db/pool.lua", "local OPTIONS" }, SchemaOptions = { "lua/srv/web/schema.lua", "local OPTIONS" },
      CsrfOptions = { "lua/srv/plugins/csrf.lua", "local OPTIONS" }, HealthOptions = { "lua/srv/plugins/health.lua", "local OPTIONS" },
      MetricsOptions = { "lua/srv/plugins/metrics.lua", "local OPTIONS" }, ProxyTrust = { "lua/srv/plugins/proxy_trust.lua", "local OPTIONS" },
      RateLimitOptions = { "lua/srv/plugins/rate_limit.lua", "local OPTIONS" }, RequestIdOptions = { "lua/srv/plugins/request_id.lua", "local OPTIONS" },
      SessionOptions = { "lua/srv/plugins/session.lua", "local OPTIONS" }, HelmetOptions = { "lua/srv/plugins/helmet.lua", "local OPTIONS" },
      CorsOptions = { "lua/srv/plugins/cors.lua", "local OPTIONS" }, EtagOptions = { "lua/srv/plugins/etag.lua", "local OPTIONS" },
      BasicAuthOptions = { "lua/srv/plugins/basic_auth.lua", "local OPTIONS" }, BearerOptions = { "lua/srv/plugins/bearer.lua", "local OPTIONS" },
      JwtOptions = { "lua/srv/plugins/jwt.lua", "local OPTIONS" }, CompressOptions = { "lua/srv/plugins/compress.lua", "local OPTIONS" },
      OpenapiOptions = { "lua/srv/plugins/openapi.lua", "local OPTIONS" }, SocketOptions = { "lua/srv/web/websocket.lua", "local KNOWN" },
      WebSocketOptions = { "lua/srv/async/websocket.lua", "local OPTIONS" }, TestOptions = { "lua/srv/testing.lua", "local REQUEST_OPTIONS" },
    } do
      local keys, fields = keys_of(from[1], from[2]), all.classes["srv." .. class].fields
      for key in pairs(keys) do assert(fields[key], ("srv.%s lacks %s (%s)"):format(class, key, from[1])) end
      for field in pairs(fields) do assert(keys[field], ("srv.%s has %s, which %s does not know"):format(class, field, from[1])) end
    end
  end)

  it("have every function that the reference names", function()
    local known = {}
    for _, class in pairs(all.classes) do
      for name in pairs(class.functions) do known[name] = true end
      for name in pairs(class.fields) do known[name] = true end
    end
    -- Lua's own, and names that stand for somebody's.
    for name in ("srv require error assert pcall print unpack ipairs setmetatable fn f g table.sort string.gsub tonumber " ..
      "app r t req res db s json name name_or data raw url asset date next v match read write"):gmatch "%S+" do known[name] = true end
    local page = read_file "docs/reference/api.md"
    local asked = 0
    for object, name in page:gmatch "%f[%w_]([%w_]+)[.:]([%a_][%w_]*)%(" do
      if object ~= "table" and object ~= "string" and object ~= "os" and object ~= "io" and object ~= "coroutine" and object ~= "news" then
        asked = asked + 1
        assert(known[name] or name == "ws" or name == "websocket", ("%s.%s of docs/reference/api.md is not declared"):format(object, name))
      end
    end
    assert(asked > 100, asked .. " names")
  end)
end)
