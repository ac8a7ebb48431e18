#!/bin/sh
# The checks of this folder find what they are for: a small tree with one offence of each kind is
# made, and each must be named with its file and line.
#
#   tests/lint/self_test.sh LUA
set -u
here=$(cd "$(dirname "$0")" && pwd)
lua=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0
passed=0

# put PATH TEXT
put() {
    mkdir -p "$tree/$(dirname "$1")"
    printf '%b' "$2" > "$tree/$1"
}

# expect CHECK TEXT: a line of CHECK's output has TEXT
expect() {
    if grep -qF -- "$2" "$tree/$1.out"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "tests/lint/$1 did not say: $2"
    fi
}

put docs/internals/ARCHITECTURE.md '
| floor | may include | holds |\n|---|---|---|\n| base | - | x |\n| ev | base | x |\n| http | base ev | x |\n| vm | base | x |\n
| Lua floor | may require |\n|---|---|\n| base | - |\n| async | base |\n| web, db | base async |\n| cli | all |\n
| library | headers | home |\n|---|---|---|\n| LuaJIT | `lua.h` | vm/ |\n| parser | `http_parser.h` | http/h1 |\n'
put docs/internals/lonely.md ''
put src/base/up.c '#include "ev/loop.h"\n'
put src/ev/loop.h '#include "base/a.h"\n'
put src/base/a.h '#include "base/b.h"\n'
put src/base/b.h '\n#include "base/a.h"\n'
put src/ev/low.h 'void low_go(void);\nvoid high_go(void);\n'
put src/ev/low.c '#include "ev/low.h"\n\nvoid low_go(void)\n{\n    high_go();\n}\n'
put src/ev/high.c '#include "ev/low.h"\n\n/* low_end() */\nvoid high_go(void)\n{\n    low_go();\n}\n'
put src/http/table.c 'const struct row *const TABLE[2] = { 0 };\n\nstatic int find(int x)\n{\n    return find_it("x(");\n}\n'
put src/http/find.c 'int find_it(char *\n     s)\n{\n    return TABLE[0] == s;\n}\n'
put src/http/other.c 'static void quote(char c)\n{\n    use(\x27"\x27, find);\n}\n'
put src/http/own.h ''
put src/http/own.c '#include "base/a.h"\n#include "http/own.h"\n'
put src/http/lua.c '#include <lua.h>\n#include "vm/vm.h"\n'
put src/http/h1.c '#include <http_parser.h>\n#include <stdio.h>\n#include <curl.h>\n'
put src/vm/vm.h '#include <lua.h>\n#include "nofloor.h"\n'
put src/misc/x.c ''
put lua/srv/base/text.lua 'require "srv.web.app"\n-- require "srv.cli.x"\n'
put lua/srv/web/app.lua 'local a = require("srv.web.router")\nrequire "srv.core.http"\nrequire "lpeg"\n'
put lua/srv/web/router.lua 'require "srv.web.app"\nrequire "ffi"\n'
put lua/srv/cli/run.lua 'require "srv.db.pool"\n'
"$lua" "$here/floors.lua" "$tree" > "$tree/floors.lua.out"
[ $? -eq 1 ] || { failed=$((failed + 1)); echo "tests/lint/floors.lua accepted a tree of offences"; }
expect floors.lua 'docs/internals/lonely.md: docs/internals/ARCHITECTURE.md does not name it'
expect floors.lua 'src/base/up.c:1: "ev/loop.h": base may not include ev'
expect floors.lua 'circle: base/a -> base/b (base/b.h) -> base/a (base/a.h)'
expect floors.lua 'circle: ev/high -> ev/low (low_go) -> ev/high (high_go)'
expect floors.lua 'circle: http/find -> http/table (TABLE) -> http/find (find_it)'
expect floors.lua 'src/http/own.c:1: "http/own.h" comes first'
expect floors.lua 'src/http/lua.c:1: <lua.h>: LuaJIT is named in vm/ alone'
expect floors.lua 'src/http/lua.c:2: "vm/vm.h": http may not include vm'
expect floors.lua 'src/http/h1.c:3: <curl.h> is no header of the C library'
expect floors.lua 'src/vm/vm.h:2: "nofloor.h": an include names its floor'
expect floors.lua 'src/misc/x.c: floor misc is not in'
expect floors.lua 'lua/srv/base/text.lua:1: require "srv.web.app": base may not require web'
expect floors.lua 'lua/srv/web/app.lua:3: require "lpeg"'
expect floors.lua 'circle: srv.web.app -> srv.web.router -> srv.web.app'
expect floors.lua '16 C files, 4 Lua files, 14 offences'

put src/base/calls.c '/* strcpy(a) */\nvoid f(void)\n{\n    strcpy(a, b);\n    s->gets(x);\n    p("sprintf(");\n    my_strcat(x);\n}\n'
put src/base/long.c "void g(void)\n{\n$(yes '    h();' | head -61 | sed 's/$/\\n/' | tr -d '\n')}\n"
put docs/guide.md "see /home"'/someone/srv/README\n'
put lua/srv/base/open.lua '-- TO''DO: later\n'
"$lua" "$here/source.lua" "$tree" > "$tree/source.lua.out"
[ $? -eq 1 ] || { failed=$((failed + 1)); echo "tests/lint/source.lua accepted a tree of offences"; }
expect source.lua 'src/base/calls.c:4: strcpy(): use memcpy or buf_add'
expect source.lua 'note: src/base/long.c:2: a function of 61 lines'
expect source.lua 'docs/guide.md:1: a path of one machine'
expect source.lua 'lua/srv/base/open.lua:1: TO''DO'
expect source.lua '3 offences, 1 notes'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
