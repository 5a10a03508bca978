# millrace_add_plugin(NAME SOURCES FILE... [LINKS LIBRARY...]): the shared object NAME.so in the build folder, which
# `plugins = ["build/NAME.so"]` loads. What it uses of Millrace it finds in the program that opens it; LINKS are libraries
# of its own.
include_guard(GLOBAL)

# Beside this file where it is installed.
set(MILLRACE_PLUGIN_SOURCE ${CMAKE_CURRENT_LIST_DIR}/plugin.cpp)
if(NOT EXISTS ${MILLRACE_PLUGIN_SOURCE})
  set(MILLRACE_PLUGIN_SOURCE ${CMAKE_CURRENT_LIST_DIR}/../plugins/plugin.cpp)
endif()

function(millrace_add_plugin name)
  cmake_parse_arguments(PLUGIN "" "" "SOURCES;LINKS" ${ARGN})
  if(NOT PLUGIN_SOURCES OR PLUGIN_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "Write millrace_add_plugin(${name} SOURCES FILE... [LINKS LIBRARY...]).")
  endif()
  add_library(${name} MODULE ${PLUGIN_SOURCES} ${MILLRACE_PLUGIN_SOURCE})
  target_link_libraries(${name} PRIVATE millrace::millrace ${PLUGIN_LINKS})
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_EXTENSIONS OFF)
endfunction()
