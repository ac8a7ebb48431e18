# srv_floor(NAME LINKS ...): the static library srv_NAME from src/NAME/*.c. A floor that has
# no source yet is an interface library, so that the picture above it stays the same.
function(srv_floor name)
  cmake_parse_arguments(FLOOR "" "" "LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
  if(sources)
    add_library(srv_${name} STATIC ${sources})
    target_include_directories(srv_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(srv_${name} PUBLIC ${FLOOR_LINKS})
    srv_forget_frames(srv_${name} ${name})
  else()
    add_library(srv_${name} INTERFACE)
    target_include_directories(srv_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(srv_${name} INTERFACE ${FLOOR_LINKS})
  endif()
endfunction()

# Lua's errors jump over C frames. TSan's shadow stack never hears of the frames that were left,
# overflows after some 300,000 errors and crashes; so floors that Lua jumps over do not report
# function entry and exit. Races are still found, only their stacks are shorter.
function(srv_forget_frames target floor)
  if(NOT SRV_SANITIZE MATCHES "thread" OR NOT floor MATCHES "^(vm|bind|api)$")
    return()
  endif()
  if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-mllvm -tsan-instrument-func-entry-exit=0")
  else()
    target_compile_options(${target} PRIVATE --param=tsan-instrument-func-entry-exit=0)
  endif()
endfunction()
