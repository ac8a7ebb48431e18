--- Templates of JSON, XML and plain text: their places are few. The same functions as
--- template_html, for the generator.
local template_data = {}

local find, match, sub = string.find, string.match, string.sub

local function fail(offset, message) error({ offset = offset, message = message }, 0) end

--- A copy of A if B is the same place.
local function join(a, b)
  if a.state ~= b.state or a.quote ~= b.quote then return nil end
  return { state = a.state, quote = a.quote }
end

local function machine(states, start, escapes)
  local m = { join = join }
  function m.start() return { state = start } end
  function m.feed(context, text)
    local at = 1
    while at <= #text do at = states[context.state](context, text, at) end
  end
  function m.cut(context)
    if context.state == "open" then fail(0, "a template tag cannot stand right after <") end
    if context.escaped then fail(0, "a template tag cannot stand right after a backslash") end
  end
  function m.value(context, is_raw)
    local escape = escapes[context.state]
    if escape then return escape end
    if is_raw then return "trusted" end
    fail(0, "a value cannot stand in " .. context.state)
  end
  function m.settled(_, text) return text end
  function m.begin_loop() end
  function m.may_repeat() return true end
  function m.end_block() end
  function m.may_hold_block() return true end
  function m.is_text(context) return context.state == start end
  function m.describe(context) return "in " .. context.state end
  return m
end

--- On to STOP, which leads to the state NEXT.
local function until_text(stop, next_state)
  return function(context, text, at)
    local _, last = find(text, stop, at, true)
    if not last then return #text + 1 end
    context.state = next_state
    return last + 1
  end
end

-- ---- plain text -----------------------------------------------------------------------------------

template_data.txt = machine({ text = function(_, text) return #text + 1 end }, "text", { text = "plain" })

-- ---- JSON (RFC 8259): values, and the inside of strings -------------------------------------------

local json_states = { ["a value"] = until_text('"', "a string") }

json_states["a string"] = function(context, text, at)
  local stop = find(text, '["\\]', at)
  if not stop then return #text + 1 end
  if sub(text, stop, stop) == "\\" then
    context.escaped = stop == #text or nil
    return stop + 2
  end
  context.state = "a value"
  return stop + 1
end

template_data.json = machine(json_states, "a value", { ["a value"] = "json_value", ["a string"] = "json_string" })

-- ---- XML 1.0 --------------------------------------------------------------------------------------

local xml_states = { text = until_text("<", "open") }

local SECTIONS = {
  { "^!%-%-()", "a comment" },
  { "^!%[CDATA%[()", "a CDATA section" },
  { "^%?()", "an instruction" },
  { "^!()", "a declaration" },
}

local OPENINGS = { "!--", "![CDATA[" }

function xml_states.open(context, text, at)
  for _, opening in ipairs(OPENINGS) do
    local rest = sub(text, at)
    if #rest < #opening and sub(opening, 1, #rest) == rest then return #text + 1 end -- a tag stands in it
  end
  for _, section in ipairs(SECTIONS) do
    local after = match(text, section[1], at)
    if after then
      context.state = section[2]
      return after
    end
  end
  context.state = "a tag"
  return at
end

xml_states["a tag"] = function(context, text, at)
  local stop = find(text, "[>\"']", at)
  if not stop then return #text + 1 end
  local char = sub(text, stop, stop)
  context.state, context.quote = char == ">" and "text" or "an attribute", char ~= ">" and char or nil
  return stop + 1
end

xml_states["an attribute"] = function(context, text, at)
  local stop = find(text, context.quote, at, true)
  if not stop then return #text + 1 end
  context.state, context.quote = "a tag", nil
  return stop + 1
end

xml_states["a comment"] = until_text("-->", "text")
xml_states["a CDATA section"] = until_text("]]>", "text")
xml_states["an instruction"] = until_text("?>", "text")
xml_states["a declaration"] = until_text(">", "text")

template_data.xml = machine(xml_states, "text", { text = "xml", ["an attribute"] = "xml" })

return template_data
