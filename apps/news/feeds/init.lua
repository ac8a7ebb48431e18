--- Feeds by their names: files in the app's data folder.
local srv = require "srv"

local feeds = {}

local BYTES_MAX = 10 * 1024 * 1024

local READERS = { json = require "feeds.json", rss = require "feeds.rss", xml = require "feeds.rss" }

local function bad(name, why)
  return nil, srv.error.new(502, ("%s: %s"):format(name, why), { code = "bad_response", expose = true })
end

--- Only a plain name: a source may come from a request, and must not lead out of the folder.
local function split(name)
  if type(name) ~= "string" or #name > 100 then return nil end
  return name:match("^[%w_-]+%.(%w+)$")
end

--- The articles of a feed, tidied | nil, err: `not_found`, `bad_response`.
---@param name string  "nasa-news.json"
---@return news.Item[]?
---@return srv.Error?
function feeds.read(name)
  local reader = READERS[split(name)]
  local text, err
  if reader then text, err = srv.fs.read("data/" .. name, BYTES_MAX) end
  if err and err.code == "too_large" then return bad(name, "more than 10 MiB") end
  if not text then return nil, srv.error.new(404, "No such feed", { code = "not_found" }) end
  local items, why = reader.read(text)
  if not items then return bad(name, why) end
  return items
end

return feeds
