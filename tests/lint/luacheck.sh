#!/bin/sh
# luacheck over all Lua, by .luacheckrc; exit status 77 (skipped) without it.
#
#   tests/lint/luacheck.sh [ROOT]
set -eu
cd "${1:-.}"
command -v luacheck > /dev/null || { echo "luacheck is not here: skipped"; exit 77; }
find lua apps bench tests -name '*.lua' -print0 2>/dev/null | xargs -0 luacheck --quiet --no-color
