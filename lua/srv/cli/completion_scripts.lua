--- Scripts that complete srv's command line, in the language of each shell.
local scripts = {}

local function names_of(commands)
  local names = {}
  for i, command in ipairs(commands) do names[i] = command.name end
  return names
end

--- All options as words: "--connections -c".
local function words_of(command)
  local words = {}
  for _, option in ipairs(command.options) do
    words[#words + 1] = "--" .. option.name
    words[#words + 1] = option.letter and "-" .. option.letter or nil
  end
  words[#words + 1] = command.name ~= "run" and "--help" or nil
  return table.concat(words, " ")
end

--- What takes no app is told from what does: bench, new and completion.
local function wants_files(command)
  return command.form:find "APP" ~= nil or command.form:find "URL" ~= nil
end

local function fill(template, values)
  return (template:gsub("@([%u_]+)@", values))
end

-- bash -----------------------------------------------------------------------------------------------------------

local BASH = [=[
# bash completion for srv, made by `srv completion bash`. For yourself:
#   srv completion bash > ~/.local/share/bash-completion/completions/srv
_srv() {
  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} options
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ] && [[ $word != -* ]]; then
    COMPREPLY=($(compgen -W "@COMMANDS@" -- "$word"))
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$word")
    return
  fi
  case $command in
@CASES@
    *) options="@RUN@" ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [ "$command" = completion ]; then
    COMPREPLY=($(compgen -W "bash zsh fish man" -- "$word"))
  fi
}
complete -o bashdefault -o default -F _srv srv
]=]

function scripts.bash(commands)
  local cases, run = {}, ""
  for _, command in ipairs(commands) do
    if command.name == "run" then run = words_of(command) end
    cases[#cases + 1] = ('    %s) options="%s" ;;'):format(command.name, words_of(command))
  end
  return fill(BASH, {
    COMMANDS = table.concat(names_of(commands), " "), CASES = table.concat(cases, "\n"),
    RUN = run .. " --help --version",
  })
end

-- zsh ------------------------------------------------------------------------------------------------------------

local ZSH = [=[
#compdef srv
# zsh completion for srv, made by `srv completion zsh`. Into a folder of $fpath:
#   srv completion zsh > ~/.zfunc/_srv
_srv() {
  local -a commands options
  commands=(
@COMMANDS@
  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe command commands
    _files -/
    return
  fi
  case $words[2] in
@CASES@
    *) options=(
@RUN@
    ) ;;
  esac
  _arguments -s : "${options[@]}" '*:file:_files'
}
_srv "$@"
]=]

local function zsh_quote(text)
  return "'" .. text:gsub("[%[%]:\\]", "\\%0"):gsub("'", "'\\''") .. "'"
end

local function zsh_options(command)
  local lines = {}
  for _, option in ipairs(command.options) do
    local value = option.value and ":" .. option.value:gsub("[:'%[%]]", "") .. ":_files" or ""
    local about = zsh_quote(option.about):sub(2, -2)
    lines[#lines + 1] = ("      '--%s%s[%s]%s'"):format(option.name, option.value and "=" or "", about, value)
  end
  return table.concat(lines, "\n")
end

function scripts.zsh(commands)
  local told, cases, run = {}, {}, ""
  for i, command in ipairs(commands) do
    told[i] = "    " .. zsh_quote(command.name):sub(1, -2) .. ":" .. zsh_quote(command.about):sub(2)
    cases[i] = ("    %s) options=(\n%s\n    ) ;;"):format(command.name, zsh_options(command))
    if command.name == "run" then run = zsh_options(command) end
  end
  return fill(ZSH, { COMMANDS = table.concat(told, "\n"), CASES = table.concat(cases, "\n"), RUN = run })
end

-- fish -----------------------------------------------------------------------------------------------------------

local function fish_quote(text)
  return "'" .. text:gsub("[\\']", "\\%0") .. "'"
end

local function fish_option(condition, option)
  local letter = option.letter and " -s " .. option.letter or ""
  local takes = option.value and " -r" or ""
  return ("complete -c srv -n %s%s -l %s%s -d %s"):format(fish_quote(condition), letter, option.name, takes,
    fish_quote(option.about))
end

function scripts.fish(commands)
  local all = table.concat(names_of(commands), " ")
  local lines = {
    "# fish completion for srv, made by `srv completion fish`. For yourself:",
    "#   srv completion fish > ~/.config/fish/completions/srv.fish",
  }
  for _, command in ipairs(commands) do
    lines[#lines + 1] = ("complete -c srv -n __fish_use_subcommand -a %s -d %s"):format(command.name, fish_quote(command.about))
  end
  for _, command in ipairs(commands) do
    local condition = "__fish_seen_subcommand_from " .. command.name
    if command.name == "run" then condition = condition .. "; or not __fish_seen_subcommand_from " .. all end
    if not wants_files(command) then lines[#lines + 1] = ("complete -c srv -n %s -f"):format(fish_quote(condition)) end
    for _, option in ipairs(command.options) do lines[#lines + 1] = fish_option(condition, option) end
  end
  lines[#lines + 1] = "complete -c srv -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish man'"
  return table.concat(lines, "\n") .. "\n"
end

return scripts
