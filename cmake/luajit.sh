#!/bin/sh
# Builds LuaJIT from Debian's own source package with LUAJIT_ENABLE_CHECKHOOK, so that the
# watchdog can stop a compiled loop and the profiler can sample one. Debian's binary is built
# without that flag; nothing else differs.
#
#   cmake/luajit.sh DIR      leaves DIR/lib/libluajit.a, DIR/include/*.h and DIR/bin/luajit
#
# A private apt configuration with a deb-src line for each deb line of this machine is used, so
# the machine's own sources are not touched. Exit status 1: the source package cannot be had.
set -eu

dir=$1
[ -f "$dir/lib/libluajit.a" ] && exit 0
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/apt/sources.d"

# One-line entries: deb -> deb-src. Deb822 entries: Types: deb -> Types: deb-src.
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$list" ] || continue
    sed -n 's/^deb /deb-src /p' "$list" > "$dir/apt/sources.d/$(basename "$list")"
done
for deb822 in /etc/apt/sources.list.d/*.sources; do
    [ -f "$deb822" ] || continue
    sed 's/^Types:.*/Types: deb-src/' "$deb822" > "$dir/apt/sources.d/$(basename "$deb822")"
done

private_apt() {
    apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$dir/apt/sources.d" \
        -o Dir::State::Lists="$dir/apt/lists" -o Dir::Cache="$dir/apt/cache" \
        -o APT::Sandbox::User=root -o APT::Get::List-Cleanup=0 "$@"
}
private_apt update > "$dir/apt.log" 2>&1
source=luajit2
private_apt source --download-only --only-source "$source" > /dev/null 2>&1 || source=luajit
(cd "$dir" && private_apt source --only-source "$source" >> apt.log 2>&1)

tree=$(find "$dir" -maxdepth 1 -type d -name "$source-*" | head -1)
[ -n "$tree" ] || { echo "luajit.sh: no source package ($dir/apt.log)" >&2; exit 1; }
make -C "$tree/src" -j"$(nproc)" BUILDMODE=static XCFLAGS="-DLUAJIT_ENABLE_CHECKHOOK -fPIC" \
    > "$dir/make.log" 2>&1
mkdir -p "$dir/lib" "$dir/include" "$dir/bin" "$dir/share"
cp "$tree/src/luajit" "$dir/bin/luajit"
cp "$tree/src/lua.h" "$tree/src/lauxlib.h" "$tree/src/lualib.h" "$tree/src/luaconf.h" \
    "$tree/src/luajit.h" "$dir/include/"
cp -r "$tree/src/jit" "$dir/share/"
cp "$tree/src/libluajit.a" "$dir/lib/libluajit.a"
