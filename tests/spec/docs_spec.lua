--- The code on the pages of docs/tutorial, docs/guide and docs/coming-from, and in the README, runs.
---
--- A block of Lua, HTML or SQL whose first line is a comment that names a file is that file of the
--- page's project (a folder of its own); the same name again is the file's next version. A file of
--- spec/ is run where it stands, with the files as they are there; in a tutorial all that are in spec/ are,
--- as its reader runs them. Every block of Lua compiles. A page that holds `<!-- needs: redis -->` (or
--- postgres) has a server of its own, as REDIS_URL (DATABASE_URL) tells.
local PAGES = { "README.md", "docs/tutorial/*.md", "docs/guide/*.md", "docs/coming-from/*.md" }

local function output_of(command)
  local pipe = assert(io.popen(command .. " 2>&1; echo \"exit $?\""))
  local text = pipe:read "*a"
  pipe:close()
  local output, status = text:match("^(.*)exit (%d+)\n$")
  return output, tonumber(status)
end

--- The program that runs this spec: lua_host. It runs those of the pages too, each in its own folder.
local function this_program() return (output_of("readlink /proc/$PPID/exe"):gsub("\n$", "")) end

local function read_file(path)
  local file = assert(io.open(path))
  local text = file:read "*a"
  file:close()
  return text
end

--- The file that a block's first line names: `-- app.lua`, `{# views/list.html #}`.
local function name_in(line)
  return line:match("^%-%- (%S+%.%w+)$") or line:match("^{# (%S+%.%w+) #}$")
end

---@return { language: string, text: string, file: string?, line: integer }[]
local function blocks_of(page)
  local blocks, block, number = {}, nil, 0
  for line in read_file(page):gmatch("([^\n]*)\n") do
    number = number + 1
    if block and line == "```" then
      block = nil
    elseif block then
      if block.text == "" then block.file = name_in(line) end
      block.text = block.text .. line .. "\n"
    elseif line:find("^```%a+$") then
      block = { language = line:sub(4), text = "", line = number }
      blocks[#blocks + 1] = block
    end
  end
  return blocks
end

local function write_file(folder, block)
  local path = folder .. "/" .. block.file
  output_of(("mkdir -p '%s'"):format(path:match("^(.*)/")))
  local file = assert(io.open(path, "w"))
  file:write(block.text)
  file:close()
  return path
end

--- What a command on PAGE begins with: the servers that it needs.
local function services_of(page)
  local names = read_file(page):match "<!%-%- needs: ([%l ]+) %-%->"
  if not names then return "" end
  return ("python3 tests/support/services.py %s -- env sh -c '%s exec \"$0\" \"$@\"' "):format(names,
    "REDIS_URL=$TEST_REDIS_URL DATABASE_URL=$TEST_POSTGRES_URL")
end

--- Runs PAGE's blocks in their order.
local function run_page(page, host)
  local services = services_of(page)
  local folder = output_of("mktemp -d"):gsub("\n$", "")
  for _, block in ipairs(blocks_of(page)) do
    local place = ("%s:%d"):format(page, block.line)
    if block.language == "lua" then assert(loadstring(block.text, "@" .. place)) end
    local path = block.file and write_file(folder, block)
    if path and block.file:find("^spec/") then
      local specs = page:find "^docs/tutorial/" and folder .. "/spec" or path
      local output, status = output_of(("%s'%s' '%s' -o plainTerminal '%s'"):format(services, host, folder, specs))
      assert(status == 0, ("%s\n%s"):format(place, output))
    end
  end
  output_of(("rm -r '%s'"):format(folder))
end

describe("the code on the page", function()
  local host = this_program()
  local pages = output_of("ls " .. table.concat(PAGES, " "))
  for page in pages:gmatch("[^\n]+") do
    it(page .. " runs", function()
      if services_of(page) ~= "" and output_of "command -v python3" == "" then return pending "Python is not here" end
      run_page(page, host)
    end)
  end

  it("docs/tutorial/slow-rest.md is apps/slow-rest, step by step", function()
    local shown = blocks_of "docs/tutorial/slow-rest.md"
    local versions = {}
    for _, block in ipairs(shown) do versions[#versions + 1] = block.file == "etag.lua" and block.text or nil end
    for i, path in ipairs { "etag.lua", "step1/etag.lua", "step2/etag.lua" } do
      local code = read_file("apps/slow-rest/" .. path):gsub("%-%-%-[^\n]*\n", "")
      assert.equal(code, (versions[i]:gsub("^[^\n]*\n", "")))
    end
  end)

  it("README.md is apps/hello", function()
    local shown = blocks_of("README.md")[1]
    assert.equal("app.lua", shown.file)
    assert.equal(read_file "apps/hello/app.lua", (shown.text:gsub("^[^\n]*\n", "")))
  end)
end)
