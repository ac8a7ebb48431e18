# What bind/script.c finds by name: the Lua files under lua/srv as bytecode, and the Lua modules
# written in C, which are all src/bind/lNAME.c that define lNAME_open.
set(generated ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated})

add_executable(embed cmake/embed.c)
target_link_libraries(embed PRIVATE lib_luajit)

file(GLOB_RECURSE embedded_lua CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lua/srv/*.lua)
add_custom_command(
  OUTPUT ${generated}/embedded.c
  COMMAND embed ${generated}/embedded.c ${CMAKE_SOURCE_DIR}/lua ${embedded_lua}
  DEPENDS embed ${embedded_lua}
  VERBATIM)

file(GLOB bound_c CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/bind/l*.c)
set(core_declarations "")
set(core_entries "")
foreach(source IN LISTS bound_c)
  get_filename_component(stem ${source} NAME_WE)
  file(STRINGS ${source} opens REGEX "^int ${stem}_open\\(lua_State \\*L\\)")
  if(opens)
    string(SUBSTRING ${stem} 1 -1 name)
    string(APPEND core_declarations "int ${stem}_open(lua_State *L);\n")
    string(APPEND core_entries "    { \"srv.core.${name}\", ${stem}_open },\n")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
endforeach()
file(CONFIGURE OUTPUT ${generated}/core_modules.c @ONLY CONTENT
"/* Made by cmake/embed.cmake. */
#include \"bind/embedded.h\"

@core_declarations@
const struct core_module CORE_MODULES[] = {
@core_entries@    { 0, 0 },
};
")

target_sources(srv_bind PRIVATE ${generated}/embedded.c ${generated}/core_modules.c)

# Where this distribution keeps modules for Lua 5.1, in Lua and in C.
set(SRV_LUA_SHARE "/usr/local/share/lua/5.1;/usr/share/lua/5.1" CACHE STRING
    "folders of Lua modules, searched after the app's own")
set(SRV_LUA_LIB "/usr/local/lib/lua/5.1;/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/lua/5.1" CACHE STRING
    "folders of Lua modules in C")
string(REPLACE ";" ":" lua_share "${SRV_LUA_SHARE}")
string(REPLACE ";" ":" lua_lib "${SRV_LUA_LIB}")
target_compile_definitions(srv_bind PRIVATE SRV_LUA_SHARE="${lua_share}" SRV_LUA_LIB="${lua_lib}")
