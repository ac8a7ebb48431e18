local json = require "srv.base.json"
local new_findings = require "srv.cli.findings"
local srv = require "srv"

describe("findings", function()
  local function of_error(message)
    local findings = new_findings "/apps/shop"
    findings:add_error(message, "load", "app.lua")
    return findings.list[1]
  end

  it("have the place that an error begins with", function()
    assert.same({ file = "app.lua", line = 3, code = "load", message = "no such thing" },
      of_error "app.lua:3: no such thing\nstack traceback:\n\tapp.lua:1: in main chunk")
    assert.same({ file = "views/a.html", line = 1, column = 4, code = "load", message = "no end" }, of_error "views/a.html:1:4: no end")
  end)

  it("blame the module that does not load, not who requires it", function()
    local found = of_error "app.lua:2: error loading module 'a' from file '/apps/shop/a.lua':\n\ta.lua:7: unexpected symbol"
    assert.same({ "a.lua", 7, "unexpected symbol" }, { found.file, found.line, found.message })
  end)

  it("take a place from the traceback where the message has none", function()
    local found = of_error "broken\nstack traceback:\n\tsrv/web/app.lua:9: in x\n\t[C]: in y\n\troutes/a.lua:4: in z"
    assert.same({ "routes/a.lua", 4, "broken" }, { found.file, found.line, found.message })
    assert.equal("app.lua", of_error("broken").file)
  end)

  it("have files below the app's folder", function()
    assert.equal("config.lua", of_error('/apps/shop/config.lua: unknown setting "x"').file)
    assert.equal('unknown setting "x"', of_error('/apps/shop/config.lua: unknown setting "x"').message)
  end)

  it("stand in the order of files and lines, each once", function()
    local findings = new_findings "/apps/shop"
    for _, place in ipairs { { "b.lua", 1 }, { "a.lua", 12 }, { "a.lua", 2 }, { "a.lua", 12 } } do
      findings:add { file = place[1], line = place[2], code = "x", message = "y" }
    end
    local places = {}
    for i, found in ipairs(findings:sorted()) do places[i] = found.file .. ":" .. found.line end
    assert.same({ "a.lua:2", "a.lua:12", "b.lua:1" }, places)
    assert.equal(3, #json.decode(findings:json()).findings)
  end)

  it("do not speak to the terminal, whatever a file is called", function()
    local findings, written = new_findings "/apps/shop", {}
    findings:add { file = "a\27[2J.lua", line = 1, code = "x", message = "b\7", fix = "c\r\nd" }
    findings:write { paint = function(_, _, text) return text end,
      file = { write = function(_, ...) written[#written + 1] = table.concat { ... } end } }
    assert.equal("a?[2J.lua:1: b? (x)\n    c?\nd\n", table.concat(written))
  end)

  it("are an empty array in JSON where there are none", function()
    assert.equal("[]", new_findings("/"):json():match "(%[.*%])")
  end)

  it("leave out lines whose comment says so", function()
    local folder = assert(srv.fs.temp()).path .. ".d"
    assert(srv.fs.mkdir(folder))
    assert(srv.fs.write(folder .. "/a.lua", "one\ntwo -- is meant so. check: ignore\ncheck: ignore\n"))
    local findings = new_findings(folder)
    for line = 1, 3 do findings:add { file = "a.lua", line = line, code = "x", message = "y" } end
    assert.same({ 1, 3 }, { findings.list[1].line, findings.list[2].line })
    assert(srv.fs.remove(folder, { recursive = true }))
  end)
end)
