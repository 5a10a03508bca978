# One helper a job: flags for every target, a room, a unit test.

# Flags that every target of the project shares.
add_library(millrace_flags INTERFACE)
target_compile_features(millrace_flags INTERFACE cxx_std_20)
target_compile_options(millrace_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers
                                                $<$<BOOL:${MILLRACE_WERROR}>:-Werror>)
if(MILLRACE_SANITIZE)
  # TBB's headers trip vptr.
  target_compile_options(millrace_flags INTERFACE -fsanitize=${MILLRACE_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer)
  target_link_options(millrace_flags INTERFACE -fsanitize=${MILLRACE_SANITIZE})
endif()

# add_room(NAME SOURCES ... LINKS ... [OBJECT]): a folder of the house as the target millrace_NAME, alias millrace::NAME.
# OBJECT rooms hold components that register themselves, which a static library would lose at the link.
function(add_room name)
  cmake_parse_arguments(ROOM "OBJECT" "" "SOURCES;LINKS" ${ARGN})
  if(ROOM_OBJECT)
    add_library(millrace_${name} OBJECT ${ROOM_SOURCES})
  else()
    add_library(millrace_${name} STATIC ${ROOM_SOURCES})
  endif()
  add_library(millrace::${name} ALIAS millrace_${name})
  target_include_directories(millrace_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(millrace_${name} PUBLIC ${ROOM_LINKS} PRIVATE millrace_flags)
endfunction()

# add_test_program(NAME SOURCES ... LINKS ... [SLOW] [UNITY]): test files of the current folder in one program, where linking
# is dear; with UNITY they are compiled six at a time, since most of that work is reading libtorch's headers. Each TEST is a
# ctest entry, labelled with its room, or `slow`. The target tests_ROOM builds a room's programs.
function(add_test_program name)
  cmake_parse_arguments(TEST "SLOW;UNITY" "" "SOURCES;LINKS" ${ARGN})
  get_filename_component(room ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(label ${room})
  if(TEST_SLOW)
    set(label slow)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} millrace_flags GTest::gtest_main GTest::gmock)
  # Little of their time is in their own code, much in compiling it.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${TEST_UNITY} UNITY_BUILD_BATCH_SIZE 6)
  if(NOT TARGET tests_${room})
    add_custom_target(tests_${room})
  endif()
  add_dependencies(tests_${room} ${name})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${room}/"
                       WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                       PROPERTIES LABELS ${label} ENVIRONMENT OMP_WAIT_POLICY=passive)  # tests run side by side
endfunction()

# add_unit_test(ROOM/NAME LINKS ... [SLOW]): tests/ROOM/NAME_test.cpp as one test program.
function(add_unit_test name)
  string(REPLACE "/" "_" target ${name}_test)
  add_test_program(${target} SOURCES ${PROJECT_SOURCE_DIR}/tests/${name}_test.cpp ${ARGN})
endfunction()
