# Looks for CUDA's compiler and sets MILLRACE_CUDA to whether there is one. It is taken from
# CUDACXX, PATH or the toolkit's usual folder.
include_guard(GLOBAL)
include(CheckLanguage)

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(MILLRACE_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(MILLRACE_NVCC)
    set(CMAKE_CUDA_COMPILER ${MILLRACE_NVCC})
  endif()
endif()
# Turing to Hopper as machine code; what is newer compiles the last one's on first use.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
endif()
check_language(CUDA)
set(MILLRACE_CUDA OFF)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  set(MILLRACE_CUDA ON)
else()
  message(STATUS "no CUDA compiler: plugins/cuda is left out")
endif()
