--- RSS 2.0, by lua-expat. Other vocabularies inside an item (dc:identifier, media:*) have a colon in
--- their names and are passed over.
local lxp = require "lxp"
local item = require "feeds.item"

local rss = {}

local ITEMS_MAX = 1000

local WANTED = { guid = "guid", link = "url", title = "title", description = "summary", pubDate = "published_at" }

local ENTITIES = { amp = "&", lt = "<", gt = ">", quot = '"', apos = "'", nbsp = " " }

--- A description is HTML more often than not: it is shown as the text it stands for.
local function plain(html)
  return (html:gsub("<[^>]*>", " "):gsub("&(%a+);", ENTITIES):gsub("&#39;", "'"))
end

--- Collects the text of the wanted elements; expat hands a text over in pieces.
local function collector()
  local found = { items = {}, channel = nil }
  local path, raw, pieces = {}, nil, nil

  local function is_in(...)
    for i = 1, select("#", ...) do
      if path[i] ~= select(i, ...) then return false end
    end
    return #path == select("#", ...)
  end

  local callbacks = {}

  function callbacks.StartElement(parser, name, attributes)
    path[#path + 1] = name
    if is_in("rss", "channel", "item") then
      if #found.items == ITEMS_MAX then parser:stop() end
      raw = { tag = found.channel }
    elseif name == "enclosure" and raw and (attributes.type or ""):find("^image/") then
      raw.image = attributes.url
    end
    pieces = {}
  end

  function callbacks.CharacterData(_, text)
    if pieces then pieces[#pieces + 1] = text end
  end

  function callbacks.EndElement(_, name)
    local text = pieces and table.concat(pieces)
    pieces = nil
    if raw and #path == 4 and WANTED[name] then
      raw[WANTED[name]] = text
    elseif is_in("rss", "channel", "title") then
      found.channel = text
    elseif is_in("rss", "channel", "item") then
      raw.summary = raw.summary and plain(raw.summary)
      found.items[#found.items + 1] = item.make(raw)
      raw = nil
    end
    path[#path] = nil
  end

  --- A feed needs no document type, and entities that grow without end live there.
  function callbacks.StartDoctypeDecl(parser) parser:stop() end

  return callbacks, found
end

---@param text string
---@return news.Item[]? items  at most 1,000
---@return string? why
function rss.read(text)
  local callbacks, found = collector()
  local parser = lxp.new(callbacks)
  local ok, message, line = parser:parse(text)
  if ok then ok, message, line = parser:parse() end
  if not ok and #found.items < ITEMS_MAX then
    return nil, ("no RSS: %s in line %s"):format(message, line)
  end
  return found.items
end

return rss
