# Helper functions for targets: common flags, rooms (folders that are one library each), tests.

# Flags that every target of the project shares.
add_library(millrace_flags INTERFACE)
target_compile_features(millrace_flags INTERFACE cxx_std_20)
target_compile_options(millrace_flags INTERFACE
                       -Wall -Wextra -Wpedantic -Wshadow
                       -Wno-missing-field-initializers
                       # GCC treats the sources in a unity batch as headers.
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
                       # Collecting garbage below 1 GiB of memory takes 5 % of GCC's time.
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>
                       $<$<BOOL:${MILLRACE_WERROR}>:-Werror>)
if(MILLRACE_SANITIZE)
  # TBB's headers cause false vptr reports, and instrumented code causes false GCC warnings about
  # uninitialized values.
  target_compile_options(millrace_flags INTERFACE -fsanitize=${MILLRACE_SANITIZE}
                         -fno-sanitize=vptr -fno-omit-frame-pointer
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(millrace_flags INTERFACE -fsanitize=${MILLRACE_SANITIZE})
endif()

# The allocator of programs that repeatedly allocate and free the same large blocks: training steps
# and batches (docs/decisions/0003). Sanitizers have their own malloc.
add_library(millrace_malloc INTERFACE)
find_library(TCMALLOC NAMES tcmalloc_minimal libtcmalloc_minimal.so.4)
if(TCMALLOC AND NOT MILLRACE_SANITIZE)
  target_link_options(millrace_malloc INTERFACE
                      -Wl,--push-state,--no-as-needed,${TCMALLOC},--pop-state)
endif()

# compile_together(TARGET [MOST]) compiles the sources of TARGET in unity batches of equal size, up
# to MOST files each (default 16). Half of the compile time is spent on headers of libtorch and
# templates of fmt, nlohmann and CLI11, which each translation unit would process again.
function(compile_together target)
  set(most 16 ${ARGN})
  list(GET most -1 most)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR batches "(${count} + ${most} - 1) / ${most}")
  math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MILLRACE_UNITY}
                                             UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# add_room(NAME SOURCES ... LINKS ... [OBJECT]) adds a folder as the library target millrace_NAME,
# alias millrace::NAME. OBJECT is for rooms with components that register themselves: the linker
# would drop these from a static library.
function(add_room name)
  cmake_parse_arguments(ROOM "OBJECT" "" "SOURCES;LINKS" ${ARGN})
  if(ROOM_OBJECT)
    add_library(millrace_${name} OBJECT ${ROOM_SOURCES})
  else()
    add_library(millrace_${name} STATIC ${ROOM_SOURCES})
  endif()
  add_library(millrace::${name} ALIAS millrace_${name})
  compile_together(millrace_${name})
  target_include_directories(millrace_${name} PUBLIC ${MILLRACE_INCLUDE})
  target_link_libraries(millrace_${name} PUBLIC ${ROOM_LINKS} PRIVATE millrace_flags)
endfunction()

# add_flagged_sources(ROOM NAME SOURCES ... FLAGS ...) adds sources to an OBJECT room that need
# other compile flags. (CMake excludes sources with COMPILE_OPTIONS from unity batches.)
function(add_flagged_sources room name)
  cmake_parse_arguments(FLAGGED "" "" "SOURCES;FLAGS" ${ARGN})
  set(target millrace_${room}_${name})
  add_library(${target} OBJECT ${FLAGGED_SOURCES})
  compile_together(${target})
  target_compile_options(${target} PRIVATE ${FLAGGED_FLAGS}
                                           $<TARGET_PROPERTY:millrace_${room},COMPILE_OPTIONS>)
  target_link_libraries(${target} PRIVATE $<TARGET_PROPERTY:millrace_${room},LINK_LIBRARIES>)
  target_include_directories(${target} PRIVATE ${MILLRACE_INCLUDE})
  target_sources(millrace_${room} INTERFACE $<TARGET_OBJECTS:${target}>)
endfunction()

# add_test_program(NAME SOURCES ... LINKS ... [SLOW]) adds one program with several test files of
# the current folder, since linking is slow; like rooms, it is compiled in unity batches. Each TEST
# is a ctest entry with the label of its room, or `slow`. The target tests_ROOM builds all test
# programs of a room.
function(add_test_program name)
  cmake_parse_arguments(TEST "SLOW" "" "SOURCES;LINKS" ${ARGN})
  get_filename_component(room ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(label ${room})
  if(TEST_SLOW)
    set(label slow)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} millrace_flags GTest::gtest_main GTest::gmock)
  # Tests spend little time in their own code, but compiling it is slow.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  compile_together(${name} 6)
  if(NOT TARGET tests_${room})
    add_custom_target(tests_${room})
  endif()
  add_dependencies(tests_${room} ${name})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${room}/" NO_PRETTY_VALUES
                       WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                       # Passive, since tests run in parallel.
                       PROPERTIES LABELS ${label} ENVIRONMENT OMP_WAIT_POLICY=passive)
endfunction()

# add_unit_test(ROOM/NAME LINKS ... [SLOW]) adds NAME_test.cpp of this folder as one test program.
function(add_unit_test name)
  string(REPLACE "/" "_" target ${name}_test)
  get_filename_component(file ${name} NAME)
  add_test_program(${target} SOURCES ${file}_test.cpp ${ARGN})
endfunction()

# add_cluster_test(NAME RANKS SOURCES ... LINKS ...) adds a test program that RANKS ranks run
# together, as one ctest entry. Calls with a different number of ranks share the program.
function(add_cluster_test name ranks)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINKS" ${ARGN})
  get_filename_component(room ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(program ${room}_${name}_test)
  if(NOT TARGET ${program})
    add_executable(${program} ${TEST_SOURCES})
    target_link_libraries(${program} PRIVATE ${TEST_LINKS} millrace_flags GTest::gtest GTest::gmock)
    add_dependencies(tests_${room} ${program})
  endif()
  add_test(NAME ${room}/${name}.${ranks}
           COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                   $<TARGET_FILE:${program}>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # Needed in containers, which run as root.
  set(run_as_root "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
  set_tests_properties(${room}/${name}.${ranks} PROPERTIES LABELS ${room} TIMEOUT 120 ENVIRONMENT
    "OMP_WAIT_POLICY=passive;OMPI_MCA_rmaps_base_oversubscribe=1;${run_as_root}")
endfunction()
