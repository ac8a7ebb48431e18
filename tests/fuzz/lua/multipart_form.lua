--- req:multipart() and req:parts() of one body: within their bounds, with the same parts, and what is
--- wrong with it is the client's fault. The first byte says how much may stay in memory.
local srv = require "srv"

local FILES, FIELDS, FILE_BYTES = 2, 3, 200
local TYPE = { ["content-type"] = "multipart/form-data; boundary=B" }

local app = srv.app()
local memory, taken, walked

local function note(into, name, filename, content)
  into[#into + 1] = ("%q %q %q"):format(name, tostring(filename), content)
end

app:post("/whole", function(req, res)
  local fields, files = req:multipart { files = FILES, fields = FIELDS, file_limit = FILE_BYTES, memory = memory }
  if not fields then return res:text "no body" end
  local values = 0
  taken = {}
  for name, value in pairs(fields) do
    for _, one in ipairs(type(value) == "table" and value or { value }) do
      values = values + 1
      note(taken, name, nil, one)
    end
  end
  for _, file in ipairs(files) do
    local content = file:bytes()
    if #content ~= file.size or file.size > FILE_BYTES then error "a file of another size" end
    if file.name == "" or file.name:find("[/\\%z\1-\31]") or file.name == ".." then error "a file's name is not safe" end
    note(taken, file.field, file.name, content)
  end
  if #files > FILES or values > FIELDS then error "more than is allowed" end
  res:text "taken"
end)

app:post("/parts", function(req, res)
  walked = {}
  for part in req:parts() do
    local content, err = part:all()
    if err then error(err, 0) end
    note(walked, part.name, part.filename, content or "")
  end
  res:text "taken"
end)

local client = srv.test(app)

local FAULTS = { [400] = true, [413] = true, [415] = true }

local function post(path, body)
  local answer = client:post(path, { body = body, headers = TYPE })
  if answer.status ~= 200 and not FAULTS[answer.status] then
    error(path .. ": " .. answer.status .. " " .. tostring(answer.log[1].fields.err))
  end
  return answer.status
end

return function(bytes)
  memory = (bytes:byte(1) or 0) % 2 == 0 and 1024 or 8
  taken, walked = nil, nil
  local body = bytes:sub(2)
  local whole, parts = post("/whole", body), post("/parts", body)
  if whole ~= 200 or not taken then return end
  if parts ~= 200 then error("whole it is taken, in parts it is " .. parts) end
  table.sort(taken)
  table.sort(walked)
  local a, b = table.concat(taken, "\n"), table.concat(walked, "\n")
  if a ~= b then error(("whole: %s\nin parts: %s"):format(a, b)) end
end
