# Tests which CUDA version libtorch needs, and which nvcc matches it.
# usage: cmake -DFOLDER=DIR -P version_test.cmake
cmake_minimum_required(VERSION 3.21)
include(${CMAKE_CURRENT_LIST_DIR}/../../../cmake/cuda_version.cmake)

function(expect what is wanted)
  if(NOT "${is}" STREQUAL "${wanted}")
    message(SEND_ERROR "${what}: '${is}', expected '${wanted}'")
  endif()
endfunction()

file(REMOVE_RECURSE "${FOLDER}")
# cpu: unpacked without the CUDA libraries; pip: the CUDA runtime is in a package of its own; old:
# the file name of CUDA 11; plain: no CUDA.
file(WRITE "${FOLDER}/cpu/lib/libcudart.so.13" "")
file(WRITE "${FOLDER}/pip/lib/libc10_cuda.so" "ELF\nlibc10.so\nlibcudart.so.12\nlibcudart.so.1\n")
file(WRITE "${FOLDER}/old/lib/libcudart-d0da41ae.so.11.0" "")
file(WRITE "${FOLDER}/plain/lib/libc10.so" "")
foreach(case "cpu;13" "pip;12" "old;11" "plain;")
  list(GET case 0 name)
  list(GET case 1 wanted)
  millrace_libtorch_cuda("${FOLDER}/${name}" found)
  expect("CUDA of libtorch '${name}'" "${found}" "${wanted}")
endforeach()

foreach(fits "13.0.88;cpu" "13.2;cpu" "12.4.131;pip" "9.1;plain" ";cpu")
  list(GET fits 0 version)
  list(GET fits 1 name)
  millrace_cuda_mismatch("${version}" "${FOLDER}/${name}" mismatch)
  expect("nvcc ${version} with '${name}'" "${mismatch}" "")
endforeach()
millrace_cuda_mismatch("12.4.131" "${FOLDER}/cpu" mismatch)
foreach(part "12.4.131" "${FOLDER}/cpu" "toolkit 13"
        "libtorch for CUDA 12.")
  string(FIND "${mismatch}" "${part}" place)
  if(place EQUAL -1)
    message(SEND_ERROR "'${mismatch}' does not contain '${part}'")
  endif()
endforeach()
