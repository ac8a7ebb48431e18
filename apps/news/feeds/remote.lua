--- A feed over HTTP, asked for only what has changed: what its server said of the last answer (ETag,
--- Last-Modified) is kept in srv.cache, so that no worker, and with Redis no machine, takes it twice.
local srv = require "srv"

local remote = {}

local KEPT = "7d"

local READERS = { json = require "feeds.json", rss = require "feeds.rss" }

local function request(url)
  local known = srv.cache:get("feed:" .. url) or {}
  return srv.http.get(url, {
    limit = "10MiB", expect = { 200, 304 },
    headers = { ["If-None-Match"] = known.etag, ["If-Modified-Since"] = known.modified },
  })
end

--- By what the server says it is, else by its first character.
local function reader_for(response)
  local type = response:header "content-type" or ""
  if type:find "json" then return READERS.json end
  if type:find "xml" or type:find "rss" then return READERS.rss end
  return response.body:find "^%s*[{%[]" and READERS.json or READERS.rss
end

--- The articles of a feed; false: nothing has changed | nil, err.
---@param url string
---@return news.Item[]|false|nil items
---@return (fun())|srv.Error|nil keep  to be called when they have been taken in
function remote.read(url)
  local response, err = request(url)
  if not response then return nil, err end
  if response.status == 304 then return false end
  local items, why = reader_for(response).read(response.body)
  if not items then
    return nil, srv.error.new(502, ("%s: %s"):format(url, why), { code = "bad_response" })
  end
  return items, function()
    srv.cache:set("feed:" .. url, { etag = response:header "etag", modified = response:header "last-modified" }, KEPT)
  end
end

return remote
