--- A client of PostgreSQL on nginx's cosockets, as pgmoon is one: the simple protocol, values quoted
--- into the text, rows of text read into tables, connections kept by the pool of cosockets.
local cjson = require "cjson"

local M = {}

local floor, char = math.floor, string.char

local function int32(n) return char(floor(n / 16777216) % 256, floor(n / 65536) % 256, floor(n / 256) % 256, n % 256) end

local function read_int32(s, at)
  local a, b, c, d = s:byte(at, at + 3)
  local n = ((a * 256 + b) * 256 + c) * 256 + d
  return n >= 2147483648 and n - 4294967296 or n
end

local function read_int16(s, at)
  local a, b = s:byte(at, at + 1)
  return a * 256 + b
end

local function receive(sock)
  local head = assert(sock:receive(5))
  local length = read_int32(head, 2) - 4
  return head:sub(1, 1), length > 0 and assert(sock:receive(length)) or ""
end

local function send(sock, kind, body) assert(sock:send(kind .. int32(#body + 4) .. body)) end

local function connect(port)
  local sock = ngx.socket.tcp()
  assert(sock:connect("127.0.0.1", port))
  if sock:getreusedtimes() == 0 then
    send(sock, "", int32(196608) .. "user\0postgres\0database\0postgres\0\0")
    repeat
      local kind, body = receive(sock)
      assert(kind ~= "E", body)
    until kind == "Z"
  end
  return sock
end

local INTEGERS = { [20] = true, [21] = true, [23] = true }

local function read_columns(body)
  local columns, at = {}, 3
  for i = 1, read_int16(body, 1) do
    local stop = body:find("\0", at, true)
    columns[i] = { name = body:sub(at, stop - 1), integer = INTEGERS[read_int32(body, stop + 7)] }
    at = stop + 19
  end
  return columns
end

local function read_row(columns, body)
  local row, at = {}, 3
  for i = 1, read_int16(body, 1) do
    local length = read_int32(body, at)
    at = at + 4
    if length >= 0 then
      local text = body:sub(at, at + length - 1)
      row[columns[i].name] = columns[i].integer and tonumber(text) or text
      at = at + length
    end
  end
  return row
end

local function query(sock, sql)
  send(sock, "Q", sql .. "\0")
  local columns, rows = nil, {}
  while true do
    local kind, body = receive(sock)
    if kind == "T" then columns = read_columns(body)
    elseif kind == "D" then rows[#rows + 1] = read_row(columns, body)
    elseif kind == "E" then error(body)
    elseif kind == "Z" then return rows end
  end
end

function M.row(port, id)
  local sock = connect(port)
  local rows = query(sock, "select id, title, body from items where id = '" .. id:gsub("'", "''") .. "'")
  sock:setkeepalive(60000, 20)
  if not rows[1] then return ngx.exit(404) end
  local body = cjson.encode(rows[1])
  ngx.header.content_length = #body
  ngx.print(body)
end

return M
