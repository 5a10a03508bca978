# Finds libtorch and defines
#   millrace::torch       the CPU library: headers, torch_cpu, c10
#   millrace::torch_cuda  if this libtorch has a CUDA part: the above, torch_cuda, c10_cuda
#
# Searches, in this order: -DLIBTORCH=DIR, the environment variable LIBTORCH, CMAKE_PREFIX_PATH,
# MILLRACE_LIBTORCH (the default of the including file). DIR contains include/ and lib/: an unpacked
# libtorch, or the torch package of a Python installation. Sets libtorch_root and libtorch_version.
# The wheel's own TorchConfig.cmake is not used, because it requires a CUDA toolkit.
include_guard(GLOBAL)

set(LIBTORCH "" CACHE PATH "libtorch folder with include/ and lib/; empty = search for one")

function(millrace_find_libtorch result)
  set(asked "${LIBTORCH}")
  if(NOT asked)
    set(asked "$ENV{LIBTORCH}")
  endif()
  if(asked)
    set(candidates "${asked}")
  else()
    string(REPLACE ":" ";" prefixes "$ENV{CMAKE_PREFIX_PATH}")
    foreach(prefix IN LISTS CMAKE_PREFIX_PATH prefixes)
      # The format that torch.utils.cmake_prefix_path prints.
      string(REGEX REPLACE "/share/cmake.*$" "" root "${prefix}")
      list(APPEND candidates "${root}" "${root}/torch")
    endforeach()
    list(APPEND candidates "${MILLRACE_LIBTORCH}")
  endif()
  foreach(candidate IN LISTS candidates)
    if(EXISTS "${candidate}/lib/libtorch_cpu.so" AND EXISTS "${candidate}/include/ATen/ATen.h")
      file(REAL_PATH "${candidate}" candidate)
      set(${result} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(asked)
    message(FATAL_ERROR "LIBTORCH=${asked} is not a libtorch folder: "
                        "it lacks lib/libtorch_cpu.so or include/ATen/ATen.h.")
  endif()
  message(FATAL_ERROR "libtorch not found; run `make setup`, "
                      "or pass -DLIBTORCH=DIR to use your own.")
endfunction()

function(millrace_check_libtorch root)
  set(version_h "${root}/include/torch/headeronly/version.h")  # since 2.9
  if(NOT EXISTS "${version_h}")
    set(version_h "${root}/include/torch/csrc/api/include/torch/version.h")
  endif()
  file(STRINGS "${version_h}" lines REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  list(TRANSFORM lines REPLACE "^.* ([0-9]+).*$" "\\1")
  list(JOIN lines "." version)
  if(version VERSION_LESS 2.4)
    message(FATAL_ERROR "The libtorch in ${root} is version ${version}; "
                        "Millrace needs 2.4 or newer (2.11 is tested).")
  endif()
  file(STRINGS "${root}/lib/libc10.so" new_abi REGEX "_ZN3c105Error.*__cxx11" LIMIT_COUNT 1)
  if(NOT new_abi)
    message(FATAL_ERROR "The libtorch in ${root} is built with the old C++ ABI of GCC; "
                        "get the cxx11-ABI build.")
  endif()
  message(STATUS "libtorch ${version} in ${root}")
  set(libtorch_version ${version} PARENT_SCOPE)
endfunction()

# Sets RESULT to the include folders. A full libtorch also ships fmt, protobuf, pybind11 and more,
# which would shadow the system's. In that case, torch's own folders are linked into the build tree,
# and only these are used.
function(millrace_libtorch_headers root result)
  set(headers "${root}/include")
  if(EXISTS "${root}/include/fmt")
    set(headers "${CMAKE_BINARY_DIR}/libtorch/include")
    file(MAKE_DIRECTORY "${headers}")
    foreach(folder ATen c10 caffe2 torch)
      file(CREATE_LINK "${root}/include/${folder}" "${headers}/${folder}" SYMBOLIC)
    endforeach()
  endif()
  set(${result} "${headers}" "${headers}/torch/csrc/api/include" PARENT_SCOPE)
endfunction()

function(millrace_import_libtorch target root)
  set(libraries ${ARGN})
  add_library(millrace::${target} INTERFACE IMPORTED GLOBAL)
  foreach(library IN LISTS libraries)
    add_library(millrace::lib${library} SHARED IMPORTED GLOBAL)
    set_target_properties(millrace::lib${library} PROPERTIES
                          IMPORTED_LOCATION "${root}/lib/lib${library}.so")
    target_link_libraries(millrace::${target} INTERFACE millrace::lib${library})
  endforeach()
endfunction()

millrace_find_libtorch(libtorch_root)
millrace_check_libtorch("${libtorch_root}")
millrace_libtorch_headers("${libtorch_root}" libtorch_headers)

millrace_import_libtorch(torch "${libtorch_root}" torch_cpu c10)
target_include_directories(millrace::torch SYSTEM INTERFACE ${libtorch_headers})
# libtorch's macros write header paths into the objects; this removes the build machine's folders.
list(GET libtorch_headers 0 headers)
target_compile_options(millrace::torch INTERFACE
                       $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${headers}/=>)
# at::parallel_for is a template that runs on one thread unless its caller is compiled with OpenMP.
# Only the flags are used, not the target OpenMP::OpenMP_CXX: the runtime that is loaded must be the
# libgomp beside libtorch, which the search path above finds.
find_package(OpenMP COMPONENTS CXX)
if(OpenMP_CXX_FOUND)
  target_compile_options(millrace::torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${OpenMP_CXX_FLAGS}>)
  target_link_options(millrace::torch INTERFACE $<$<LINK_LANGUAGE:CXX>:${OpenMP_CXX_FLAGS}>)
endif()
if(EXISTS "${libtorch_root}/lib/libtorch_cuda.so")
  millrace_import_libtorch(torch_cuda "${libtorch_root}" torch_cuda c10_cuda)
  target_link_libraries(millrace::torch_cuda INTERFACE millrace::torch)
endif()
