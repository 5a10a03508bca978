# What millraceConfig.cmake gives programs that detect. The library finds libtorch where the build
# had it, or on LD_LIBRARY_PATH. Its C++ header asks for C++20.
if(NOT TARGET millrace::predict)
  add_library(millrace::predict SHARED IMPORTED)
  get_filename_component(prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
  set_target_properties(millrace::predict PROPERTIES
    IMPORTED_LOCATION ${prefix}/lib/libmillrace_predict.so
    IMPORTED_SONAME libmillrace_predict.so.1
    INTERFACE_INCLUDE_DIRECTORIES ${prefix}/include)
endif()
