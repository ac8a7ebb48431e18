-- luacheck's settings; ctest runs it (lint/luacheck) over lua, apps, bench and tests.
std = "luajit"
cache = false
codes = true
max_line_length = 130
exclude_files = { "build" }

-- A method may ignore its object; "_" and names that begin with it are not meant to be used.
self = false
ignore = { "21[1-3]/_.*" }

-- Specs are tables of cases as much as code: a case is one line, however long.
local specs = { std = "+busted", max_line_length = false, globals = { "_" } }
files["tests/spec"] = specs
files["**/spec"] = specs

-- Runs in nginx.
files["bench/peers/nginx_postgres.lua"] = { globals = { "ngx" } }
