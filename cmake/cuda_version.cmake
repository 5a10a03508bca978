# Finds the CUDA version of a libtorch and checks that nvcc has the same major version. Otherwise
# one process would have two CUDA runtimes, which do not share streams or memory and differ in
# headers.
include_guard(GLOBAL)

# Sets RESULT to the major version; empty if it cannot be found in ROOT.
function(millrace_libtorch_cuda root result)
  set(found "")
  if(EXISTS "${root}/lib/libc10_cuda.so")  # the runtime that it is linked to
    file(STRINGS "${root}/lib/libc10_cuda.so" found
         REGEX "^libcudart[^/]*\\.so\\.[0-9]+" LIMIT_COUNT 1)
  endif()
  if(NOT found)
    file(GLOB found "${root}/lib/libcudart*.so.*")
  endif()
  string(REGEX MATCH "libcudart[^/;]*\\.so\\.([0-9]+)" found "${found}")
  set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# Sets RESULT to an error message if nvcc VERSION does not match the libtorch in ROOT; empty if it
# does.
function(millrace_cuda_mismatch version root result)
  string(REGEX MATCH "^[0-9]+" major "${version}")
  millrace_libtorch_cuda("${root}" wanted)
  set(${result} "" PARENT_SCOPE)
  if(wanted AND major AND NOT wanted EQUAL major)
    string(CONCAT problem
      "nvcc is from CUDA ${version}, but the libtorch in ${root} is built for CUDA ${wanted}; "
      "plugins/cuda requires the same major version. Pass -DCMAKE_CUDA_COMPILER=FILE for the nvcc "
      "of CUDA toolkit ${wanted}, or -DLIBTORCH=DIR for a libtorch for CUDA ${major}.")
    set(${result} "${problem}" PARENT_SCOPE)
  endif()
endfunction()
