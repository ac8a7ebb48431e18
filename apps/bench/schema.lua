--- What bench/run micro asks for: what a schema costs, measured in the VM that serves.
local srv = require "srv"

local app = srv.app()

--- Ten fields of the kinds that an API has.
local article = srv.schema {
  title = "string 1..200",
  slug = "slug ..80",
  url = "url",
  email = "email",
  pages = "integer 1..10000",
  draft = "boolean",
  state = "draft|published|archived",
  tags = "slug[] ..8",
  author = { name = "string 1..80", role = "author|editor" },
  published = "date",
}

local text = [[{"title":"What a request costs","slug":"what-a-request-costs",]]
  .. [["url":"https://news.example/articles/cost","email":"ann@example.com","pages":12,"draft":false,]]
  .. [["state":"draft","tags":["http","lua","servers"],"author":{"name":"Ann Example","role":"editor"},]]
  .. [["published":"2026-11-30"}]]
local faulty = text:gsub("ann@example.com", "ann"):gsub('"pages":12', '"pages":0')
local value, wrong = srv.json.decode(text), srv.json.decode(faulty)

local CASES = {
  { "ten fields: check alone", function() return article:check(value) end },
  { "ten fields: JSON alone", function() return srv.json.decode(text) end },
  { "ten fields: JSON and check", function() return article:decode(text) end },
  { "ten fields, two of them wrong: check", function() return article:check(wrong) end },
}
for _, field in ipairs {
  { "string 1..200", value.title }, { "slug ..80", value.slug }, { "url", value.url }, { "email", value.email },
  { "integer 1..10000", 12 }, { "boolean", false }, { "draft|published|archived", "draft", "one of three words" },
  { "slug[] ..8", value.tags }, { "date", value.published }, { "datetime", "2026-11-30T12:00:00Z" },
  { "uuid", "6b29fc40-ca47-1067-b31d-00dd010662da" }, { "ipv4", "192.0.2.17" }, { "host", "www.news.example" },
} do
  local one = srv.schema { v = field[1] }
  local holder = { v = field[2] }
  CASES[#CASES + 1] = { "one field: " .. (field[3] or field[1]), function() return one:check(holder) end }
end

local ROUND_SECONDS, ROUNDS = 0.01, 9

--- ns of CPU time for each call, the best of several rounds.
local function cost(fn)
  local best, turns, spent = math.huge, 100, 0
  while spent < ROUND_SECONDS do
    turns = turns * 2
    local start = os.clock()
    for _ = 1, turns do fn() end
    spent = os.clock() - start
  end
  for _ = 1, ROUNDS do
    local start = os.clock()
    for _ = 1, turns do fn() end
    best = math.min(best, (os.clock() - start) / turns * 1e9)
  end
  return best
end

app:get("/", function() return "schemas" end)

app:get("/schema", { timeout = "60s" }, function()
  local rows = {}
  for i, case in ipairs(CASES) do rows[i] = { case[1], ("%.0f"):format(cost(case[2])) } end
  return rows
end)

return app
