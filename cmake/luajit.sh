#!/bin/sh
# Builds LuaJIT from Debian's own source package with LUAJIT_ENABLE_CHECKHOOK, so that the
# watchdog can stop a compiled loop and the profiler can sample one. Debian's binary is built
# without that flag; nothing else differs.
#
#   cmake/luajit.sh DIR      leaves DIR/lib/libluajit.a, DIR/include/*.h and DIR/bin/luajit
#
# A private apt configuration with a deb-src line for each deb line of this machine is used, so
# the machine's own sources are not touched. All is made in DIR.part and moved at the end: a
# build that was cut off leaves nothing that looks finished. Exit status 1: the source package
# cannot be had or does not build; DIR.part/*.log say why.
set -eu

mkdir -p "$(dirname "$1")"
dir=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
[ -f "$dir/lib/libluajit.a" ] && exit 0
part=$dir.part
rm -rf "$part"
mkdir -p "$part/apt/lists/partial" "$part/apt/cache/archives/partial" "$part/apt/sources.d"

# One-line entries: deb -> deb-src. Deb822 entries: Types: deb -> Types: deb-src.
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$list" ] || continue
    sed -n 's/^deb /deb-src /p' "$list" > "$part/apt/sources.d/$(basename "$list")"
done
for deb822 in /etc/apt/sources.list.d/*.sources; do
    [ -f "$deb822" ] || continue
    sed 's/^Types:.*/Types: deb-src/' "$deb822" > "$part/apt/sources.d/$(basename "$deb822")"
done

private_apt() {
    apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$part/apt/sources.d" \
        -o Dir::State::Lists="$part/apt/lists" -o Dir::Cache="$part/apt/cache" \
        -o APT::Sandbox::User=root -o APT::Get::List-Cleanup=0 "$@"
}

# fetch PACKAGE: its source, unpacked. Some mirrors keep of a source package the upstream archive
# alone; that will do, for Debian's patches are about other processors and the build system.
fetch() {
    private_apt source --only-source "$1" && return
    private_apt source --only-source --tar-only "$1" && tar -xf "$1"_*.orig.tar.*
}

# Debian 12 calls the package luajit2, Debian 13 luajit. apt-get source writes where it stands.
fetch_source() {
    cd "$part"
    private_apt update
    fetch luajit2 || fetch luajit
}
(fetch_source) > "$part/apt.log" 2>&1 || {
    echo "luajit.sh: LuaJIT's source package cannot be had ($part/apt.log)" >&2
    exit 1
}

tree=$(find "$part" -maxdepth 1 -type d -iname 'luajit*-*' | head -1)
make -C "$tree/src" -j"$(nproc)" BUILDMODE=static XCFLAGS="-DLUAJIT_ENABLE_CHECKHOOK -fPIC" \
    > "$part/make.log" 2>&1 || {
    echo "luajit.sh: LuaJIT does not build ($part/make.log)" >&2
    exit 1
}
mkdir -p "$part/lib" "$part/include" "$part/bin" "$part/share"
cp "$tree/src/luajit" "$part/bin/luajit"
cp "$tree/src/lua.h" "$tree/src/lauxlib.h" "$tree/src/lualib.h" "$tree/src/luaconf.h" \
    "$tree/src/luajit.h" "$part/include/"
cp -r "$tree/src/jit" "$part/share/"
cp "$tree/src/libluajit.a" "$part/lib/libluajit.a"
rm -rf "$tree" "$part/apt" "$part"/luajit*.xz "$part"/luajit*.gz "$part"/luajit*.dsc "$dir"
mv "$part" "$dir"
