# Files that the binary carries as they are, for the commands: pages of reports (pages/), projects of
# `srv new` (templates/), types for editors (lua/types/). bind/lasset.c finds them by their path from
# here. The assembler takes the bytes in; nothing is copied or translated.
file(GLOB_RECURSE assets CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
  ${CMAKE_SOURCE_DIR}/pages/* ${CMAKE_SOURCE_DIR}/templates/* ${CMAKE_SOURCE_DIR}/lua/types/*)

set(asset_bytes "")
set(asset_entries "")
set(asset_number 0)
foreach(asset IN LISTS assets)
  set(symbol "asset_${asset_number}")
  string(APPEND asset_bytes
"__asm__(\".section .rodata\\n${symbol}: .incbin \\\"${CMAKE_SOURCE_DIR}/${asset}\\\"\\n\"
        \"${symbol}_end: .byte 0\\n.previous\\n\");
extern const char ${symbol}[], ${symbol}_end[];
")
  string(APPEND asset_entries "    { \"${asset}\", ${symbol}, ${symbol}_end },\n")
  math(EXPR asset_number "${asset_number} + 1")
endforeach()
file(CONFIGURE OUTPUT ${generated}/assets.c @ONLY CONTENT
"/* Made by cmake/assets.cmake. */
#include \"bind/embedded.h\"

@asset_bytes@
const struct asset ASSETS[] = {
@asset_entries@    { 0, 0, 0 },
};
")
list(TRANSFORM assets PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE asset_files)
set_source_files_properties(${generated}/assets.c PROPERTIES OBJECT_DEPENDS "${asset_files}")
target_sources(srv_bind PRIVATE ${generated}/assets.c)
