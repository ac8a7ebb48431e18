--- docs/reference/api.md names all there is, and the sections that comments speak of.
local function read_file(path)
  local file = assert(io.open(path))
  local text = file:read "*a"
  file:close()
  return text
end

local function output_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "*a"
  pipe:close()
  return text
end

local PAGE = read_file "docs/reference/api.md"

local function assert_named(name, what)
  assert(PAGE:find("%f[%w_]" .. name:gsub("%p", "%%%0") .. "%f[^%w_]"), ("docs/reference/api.md does not name %s (%s)"):format(name, what))
end

--- The keys of the table that stands in FILE behind BEGINNING.
local function keys_of(file, beginning)
  local text = assert(read_file(file):match(beginning .. " = (%b{})"), file .. ": " .. beginning)
  local keys = {}
  for key in text:gsub("%-%-[^\n]*", ""):sub(2, -2):gsub("%b{}", "{}"):gmatch "([%a_][%w_]*) = " do keys[#keys + 1] = key end
  return keys
end

describe("the reference of the Lua API", function()
  it("has each part of srv", function()
    local parts = keys_of("lua/srv/init.lua", "local PARTS")
    assert.is_true(#parts > 40)
    for _, name in ipairs(parts) do assert_named(name, "lua/srv/init.lua") end
  end)

  it("has each option of apps, routes, plugins and the like", function()
    for _, from in ipairs {
      { "lua/srv/web/router.lua", "local ROUTER_OPTIONS" }, { "lua/srv/web/router.lua", "local ROUTE_OPTIONS" },
      { "lua/srv/web/router.lua", "local STATIC_OPTIONS" }, { "lua/srv/web/response.lua", "local FILE_OPTIONS" },
      { "lua/srv/web/cookie.lua", "local OPTIONS" }, { "lua/srv/web/timer.lua", "local OPTIONS" },
      { "lua/srv/async/fetch_request.lua", "local KNOWN" }, { "lua/srv/async/fetch_forward.lua", "local KNOWN" },
      { "lua/srv/db/pool.lua", "local OPTIONS" }, { "lua/srv/plugins/csrf.lua", "local OPTIONS" },
      { "lua/srv/plugins/health.lua", "local OPTIONS" }, { "lua/srv/plugins/metrics.lua", "local OPTIONS" },
      { "lua/srv/plugins/proxy_trust.lua", "local OPTIONS" }, { "lua/srv/plugins/rate_limit.lua", "local OPTIONS" },
      { "lua/srv/plugins/request_id.lua", "local OPTIONS" }, { "lua/srv/plugins/session.lua", "local OPTIONS" },
      { "lua/srv/plugins/helmet.lua", "local OPTIONS" }, { "lua/srv/plugins/cors.lua", "local OPTIONS" },
      { "lua/srv/plugins/etag.lua", "local OPTIONS" }, { "lua/srv/plugins/basic_auth.lua", "local OPTIONS" },
      { "lua/srv/plugins/bearer.lua", "local OPTIONS" }, { "lua/srv/plugins/jwt.lua", "local OPTIONS" },
      { "lua/srv/testing.lua", "local REQUEST_OPTIONS" }, { "lua/srv/web/websocket.lua", "local KNOWN" },
      { "lua/srv/async/websocket.lua", "local OPTIONS" },
    } do
      for _, name in ipairs(keys_of(from[1], from[2])) do assert_named(name, from[1]) end
    end
  end)

  it("has each method of requests, answers and databases", function()
    for _, file in ipairs { "lua/srv/web/request.lua", "lua/srv/web/response.lua", "lua/srv/web/body.lua", "lua/srv/db/handle.lua" } do
      local text = read_file(file)
      for _, pattern in ipairs { "\nfunction methods[:.](%a[%w_]*)%(", "\nmethods%.(%a[%w_]*) = ", "\nfunction fields%.(%a[%w_]*)%(", "\nfunction Db:(%a[%w_]*)%(" } do
        for name in text:gmatch(pattern) do assert_named(name, file) end
      end
    end
  end)

  it("has each setting and each code of an error", function()
    for name in read_file("src/server/config.c"):gmatch '{ "([%l_]+)", SETTING' do assert_named(name, "src/server/config.c") end
    for name in read_file("src/bind/lerror.c"):gmatch '\n    { "([%l_]+)", %d+ }' do assert_named(name, "src/bind/lerror.c") end
  end)

  it("has the sections that the sources speak of", function()
    local asked = 0
    for number in output_of([[grep -rhoE 'API(\.md)?,? sections? [0-9]+( and [0-9]+)?' src lua tests]]):gmatch "%d+" do
      assert(PAGE:find("\n## " .. number .. ". ", 1, true), "docs/reference/api.md has no section " .. number)
      asked = asked + 1
    end
    assert.is_true(asked > 40)
  end)
end)

describe("the pages", function()
  it("link to pages and headings that are there", function()
    local function heading_of(line) return (line:gsub("^#+ ", ""):lower():gsub("[^%w _-]", ""):gsub(" ", "-")) end
    for page in output_of("ls README.md docs/*.md docs/*/*.md"):gmatch "[^\n]+" do
      local text, folder = read_file(page):gsub("```.-\n```", ""), page:match "^(.*/)" or ""
      for target in text:gmatch "%]%(([^)%s]+)%)" do
        local path, anchor = target:match "^([^#]*)#?(.*)$"
        if not target:find "^%a+:" then
          local linked = path == "" and page or folder .. path
          local file = io.open(linked)
          assert(file, page .. " links to " .. target)
          local found = anchor == ""
          for line in file:lines() do found = found or line:find "^#" and heading_of(line) == anchor end
          file:close()
          assert(found, page .. " links to " .. target)
        end
      end
    end
  end)
end)
