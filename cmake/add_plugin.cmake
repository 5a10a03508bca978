# millrace_add_plugin(NAME SOURCES FILE... [LINKS LIBRARY...]) builds the shared object NAME.so in
# the build folder, which `plugins = ["build/NAME.so"]` loads. Millrace's symbols are resolved in
# the program that loads it. LINKS: the plug-in's own libraries.
include_guard(DIRECTORY)  # variables are set in the folder that includes this file

# An installation has these files beside this one.
set(MILLRACE_PLUGIN_FILES ${CMAKE_CURRENT_LIST_DIR})
if(NOT EXISTS ${MILLRACE_PLUGIN_FILES}/plugin.cpp)
  set(MILLRACE_PLUGIN_FILES ${CMAKE_CURRENT_LIST_DIR}/../plugins)
endif()
set(MILLRACE_BUILD_ID ${CMAKE_CURRENT_LIST_DIR}/build_id.cmake)

function(millrace_add_plugin name)
  cmake_parse_arguments(PLUGIN "" "" "SOURCES;LINKS" ${ARGN})
  if(NOT PLUGIN_SOURCES OR PLUGIN_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "Write millrace_add_plugin(${name} SOURCES FILE... [LINKS LIBRARY...]).")
  endif()
  add_library(${name} MODULE ${PLUGIN_SOURCES} ${MILLRACE_PLUGIN_FILES}/plugin.cpp)
  target_link_libraries(${name} PRIVATE millrace::millrace ${PLUGIN_LINKS})
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_EXTENSIONS OFF)

  # A plug-in contains a digest of the public headers that its sources find. Each build computes it
  # again.
  set(own ${CMAKE_CURRENT_BINARY_DIR}/${name}_build_id)
  set(roots "")
  foreach(source IN LISTS PLUGIN_SOURCES)
    get_filename_component(file ${source} ABSOLUTE)
    get_filename_component(folder ${file} DIRECTORY)
    list(APPEND roots ${folder})
  endforeach()
  list(REMOVE_DUPLICATES roots)
  list(JOIN roots "|" roots)
  add_custom_target(${name}_build_id
    COMMAND ${CMAKE_COMMAND} -DTEMPLATE=${MILLRACE_PLUGIN_FILES}/build_id.h.in
            -DOUT=${own}/millrace/plugins/build_id.h
            -DRELEASE=$<TARGET_PROPERTY:millrace::millrace,MILLRACE_RELEASE>
            "-DHEADERS=$<TARGET_PROPERTY:millrace::millrace,MILLRACE_HEADERS>"
            "-DROOTS=${roots}|$<JOIN:$<TARGET_PROPERTY:${name},INCLUDE_DIRECTORIES>,|>"
            -P ${MILLRACE_BUILD_ID}
    BYPRODUCTS ${own}/millrace/plugins/build_id.h
    COMMENT "Computing the digest of the headers of ${name}"
    VERBATIM)
  add_dependencies(${name} ${name}_build_id)
  target_include_directories(${name} BEFORE PRIVATE ${own})
endfunction()
