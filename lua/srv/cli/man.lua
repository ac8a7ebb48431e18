--- The manual page srv(1), made of what --help says: docs/man/srv.1.
local function escape(text)
  return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("^([.'])", "\\&%1"))
end

local function verbatim(text)
  local lines = { ".nf" }
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do lines[#lines + 1] = escape(line) end
  lines[#lines + 1] = ".fi"
  return table.concat(lines, "\n")
end

local function option_text(option)
  local left = "\\fB\\-\\-" .. escape(option.name) .. "\\fR"
  if option.letter then left = "\\fB\\-" .. option.letter .. "\\fR, " .. left end
  if option.value then left = left .. " \\fI" .. escape(option.value) .. "\\fR" end
  return ".TP\n" .. left .. "\n" .. escape(option.about)
end

local function command_text(command)
  local form = command.form ~= "" and " \\fI" .. escape(command.form) .. "\\fR" or ""
  local parts = { (".SS srv %s%s"):format(command.name, form), escape(command.about) .. "." }
  for _, option in ipairs(command.options) do parts[#parts + 1] = option_text(option) end
  if command.rest ~= "" then parts[#parts + 1] = ".PP\n" .. verbatim(command.rest) end
  return table.concat(parts, "\n")
end

local HEAD = [[
.\" Made by `srv completion man`: change what \-\-help says, not this file.
.TH SRV 1 "" "srv %s" "User Commands"
.SH NAME
srv \- HTTP application server programmed in Lua
.SH SYNOPSIS
.B srv
.I APP
.RI [ flags ]
.br
.B srv
.I command
.RI [ arguments ]
.SH DESCRIPTION
Serves an app that is written in Lua: a folder with \fBapp.lua\fR, one Lua file, or a folder of files. The other
commands begin, test, check, measure and look into such an app.
.SH COMMANDS]]

local TAIL = [[
.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
The app or the run failed: it does not load, a spec failed, something was found, a threshold was broken.
.TP
.B 2
The command line cannot be meant.
.SH ENVIRONMENT
.TP
.B SRV_\fINAME\fR
Each flag of \fBsrv run\fR in capitals: \fBSRV_BODY_LIMIT=2MiB\fR. Flags come before it, \fBconfig.lua\fR after it.
.TP
.B PORT\fR, \fBHOST\fR, \fBDATABASE_URL\fR, \fBREDIS_URL
What platforms set.
.TP
.B NO_COLOR
No colours on a terminal.
.SH FILES
.TP
.I app.lua
What is served.
.TP
.I config.lua
Settings, beside it.
.TP
.I $XDG_RUNTIME_DIR/srv/PID.sock\fR, \fI/tmp/srv\-UID/PID.sock
By which \fBsrv flame\fR, \fBsrv doctor\fR and \fBsrv repl\fR look into a running server; its owner's alone.
]]

---@param pages { commands: srv.cli.HelpCommand[], version: string }
---@return string
return function(pages)
  local parts = { HEAD:format(pages.version) }
  for _, command in ipairs(pages.commands) do parts[#parts + 1] = command_text(command) end
  parts[#parts + 1] = TAIL
  return table.concat(parts, "\n")
end
