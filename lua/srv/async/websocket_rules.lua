--- The options that both ends of a WebSocket have (API, section 12): what may stand in them, and what C is to know of it.
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local text = require "srv.base.text"

local rules = {}

local MIB = 1024 * 1024
local LIMIT, BUFFER, HEARTBEAT, MESSAGE_TIMEOUT = MIB, MIB, 30, 30
local SECONDS_MIN = 0.001 -- C counts milliseconds
local PROTOCOLS_MAX = 16 -- also in bind/lws_state.h

--- RFC 6455, 4.1: different tokens.
local function check_protocols(where, list)
  if #list == 0 or #list > PROTOCOLS_MAX then
    misuse(("%s: protocols must be a list of 1 to %d names"):format(where, PROTOCOLS_MAX))
  end
  local seen = {}
  for _, name in ipairs(list) do
    if type(name) ~= "string" or not text.is_token(name) then
      misuse(("%s: %q is no name of a protocol"):format(where, tostring(name)))
    end
    if seen[name] then misuse(("%s: the protocol %s is there twice"):format(where, name)) end
    seen[name] = true
  end
end

local function check_sizes(where, opts)
  for _, name in ipairs { "limit", "buffer" } do
    if opts[name] and opts[name] < 1 then misuse(("%s: %s must be at least 1 byte"):format(where, name)) end
  end
end

--- Seconds; 0: none.
local function seconds_of(where, name, value, default)
  if value == nil then return default end
  if value == false then return 0 end
  local seconds = options.check(where, { [name] = value }, { [name] = "duration" })[name]
  if seconds <= 0 then misuse(("%s: %s must be longer than 0, or false"):format(where, name)) end
  return math.max(seconds, SECONDS_MIN)
end

--- What core.rules() is to have of OPTS, which options.check() has seen.
---@param where string
---@param opts table
---@return table
function rules.of(where, opts)
  if opts.protocols then check_protocols(where, opts.protocols) end
  check_sizes(where, opts)
  return {
    limit = opts.limit or LIMIT, buffer = opts.buffer or BUFFER,
    heartbeat = seconds_of(where, "heartbeat", opts.heartbeat, HEARTBEAT),
    message_timeout = seconds_of(where, "message_timeout", opts.message_timeout, MESSAGE_TIMEOUT),
    compress = opts.compress ~= false, closes = opts.overflow == "close", protocols = opts.protocols,
  }
end

return rules
