# The part of millraceConfig.cmake for programs that detect objects. The library finds libtorch in
# the folder that the build used, or through LD_LIBRARY_PATH.
if(NOT TARGET millrace::predict)
  add_library(millrace::predict SHARED IMPORTED)
  get_filename_component(prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
  set_target_properties(millrace::predict PROPERTIES
    IMPORTED_LOCATION ${prefix}/lib/libmillrace_predict.so
    IMPORTED_SONAME libmillrace_predict.so.1
    INTERFACE_INCLUDE_DIRECTORIES ${prefix}/include)
  if(CMAKE_CXX_COMPILER_LOADED)  # C programs have no C++ features
    set_target_properties(millrace::predict PROPERTIES INTERFACE_COMPILE_FEATURES cxx_std_20)
  endif()
endif()
