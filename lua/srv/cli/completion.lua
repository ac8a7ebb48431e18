--- `srv completion SHELL`: the script by which a shell completes srv's commands and options; `man`: the manual page.
local help = require "srv.cli.help"
local man = require "srv.cli.man"
local options = require "srv.cli.options"
local scripts = require "srv.cli.completion_scripts"

local LINE = options.new("completion", "bash|zsh|fish|man", "what a shell needs to complete srv's commands and options", {}, [[
  source <(srv completion bash)                                          # in ~/.bashrc
  srv completion zsh > ~/.zfunc/_srv
  srv completion fish > ~/.config/fish/completions/srv.fish
  srv completion man > ~/.local/share/man/man1/srv.1                     # man srv
]])

local MAKE = {
  bash = function(pages) return scripts.bash(pages.commands) end,
  zsh = function(pages) return scripts.zsh(pages.commands) end,
  fish = function(pages) return scripts.fish(pages.commands) end,
  man = man,
}

---@param args string[]
---@return integer exit_status
return function(args)
  local opts, rest = LINE:read(args)
  if not opts then return rest end
  local make = #rest == 1 and MAKE[rest[1]]
  if not make then return LINE:refuse "which one: bash, zsh, fish or man?" end
  io.stdout:write(make(help.read()))
  return 0
end
