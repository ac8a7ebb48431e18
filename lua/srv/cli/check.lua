--- `srv check [APP]`: every mistake of an app that can be found without a request, each with its place and the way out.
local check_app = require "srv.cli.check_app"
local check_files = require "srv.cli.check_files"
local check_luacheck = require "srv.cli.check_luacheck"
local env = require "srv.core.env"
local new_findings = require "srv.cli.findings"
local options = require "srv.cli.options"
local terminal = require "srv.cli.terminal"

local LINE = options.new("check", "[APP]", "looks for mistakes: file, line, and the way out", {
  { false, "json", false, "findings as JSON: file, line, column, code, message, fix" },
  { false, "luacheck", false, "luacheck's findings too, if it is installed; --no-luacheck: without", default = true },
}, [[
What is looked for: Lua that does not compile, globals that nobody declares, calls that hold up a worker (io.open,
os.execute, socket.http), what raises when the app loads (rules, routes, variables that are missing), routes, routers and
files that nothing reaches, views that do not compile, migrations and settings with wrong names.

A comment "check: ignore" at the end of a line says that it is meant so.
Exit status 0: nothing found; 1: findings.

  srv check apps/shop
  srv check --json | jq '.findings[].file'
]])

local function has_app(app_file, root)
  if app_file ~= "" then return true end
  io.stderr:write("srv check: no app.lua in ", root, "\n")
  return false
end

local function find(app_file, fault, opts)
  local findings, root = new_findings(env.root), env.root
  local is_single = app_file:match "[^/]*$" ~= "app.lua"
  local paths = is_single and { app_file:match "[^/]*$" } or check_files.paths(root, findings)
  if fault then findings:add_error(fault, "setting", "config.lua", "srv --help lists the settings") end
  local files = check_files.read(root, paths, findings)
  check_app.app(app_file, findings)
  check_files.all(files, findings)
  local had_luacheck = not opts.luacheck or check_luacheck(root, paths, findings)
  return findings, #paths, had_luacheck
end

local function tell(findings, count, had_luacheck)
  local found, out = #findings:sorted(), terminal.out
  findings:write(out)
  io.stdout:write(("%s in %s%s\n"):format(
    found == 0 and out:paint("green", "nothing found") or out:paint("red", terminal.counted(found, "finding")),
    terminal.counted(count, "file"), had_luacheck and "" or " (luacheck is not installed: `apt install lua-check` finds more)"))
end

---@param args string[]
---@param app_file string
---@param fault string?  what is wrong with the settings
---@return integer exit_status
return function(args, app_file, fault)
  local opts, rest = LINE:read(args)
  if not opts then return rest end
  if #rest > 1 then return LINE:refuse "one APP is enough" end
  if not has_app(app_file, rest[1] or "this folder") then return 1 end
  local findings, count, had_luacheck = find(app_file, fault, opts)
  if opts.json then io.stdout:write(findings:json()) else tell(findings, count, had_luacheck) end
  return #findings:sorted() == 0 and 0 or 1
end
