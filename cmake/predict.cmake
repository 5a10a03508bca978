# What millraceConfig.cmake gives programs that detect. The library finds libtorch where the build
# had it, or on LD_LIBRARY_PATH.
if(NOT TARGET millrace::predict)
  add_library(millrace::predict SHARED IMPORTED)
  get_filename_component(prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
  set_target_properties(millrace::predict PROPERTIES
    IMPORTED_LOCATION ${prefix}/lib/libmillrace_predict.so
    IMPORTED_SONAME libmillrace_predict.so.1
    INTERFACE_INCLUDE_DIRECTORIES ${prefix}/include)
  if(CMAKE_CXX_COMPILER_LOADED)  # programs in C have no such features
    set_target_properties(millrace::predict PROPERTIES INTERFACE_COMPILE_FEATURES cxx_std_20)
  endif()
endif()
