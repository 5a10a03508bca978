# One helper a job: flags for every target, a room, a unit test.

# Flags that every target of the project shares.
add_library(millrace_flags INTERFACE)
target_compile_features(millrace_flags INTERFACE cxx_std_20)
target_compile_options(millrace_flags INTERFACE
                       -Wall -Wextra -Wpedantic -Wshadow
                       -Wno-missing-field-initializers
                       # GCC takes the sources of a unity batch for headers.
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
                       # GCC's garbage collector, first at 1 GiB, takes 5 % of a build.
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>
                       $<$<BOOL:${MILLRACE_WERROR}>:-Werror>)
if(MILLRACE_SANITIZE)
  # TBB's headers trip vptr, and instrumented code GCC's warning of uninitialized values.
  target_compile_options(millrace_flags INTERFACE -fsanitize=${MILLRACE_SANITIZE}
                         -fno-sanitize=vptr -fno-omit-frame-pointer
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(millrace_flags INTERFACE -fsanitize=${MILLRACE_SANITIZE})
endif()

# The allocator of programs that take and give back the same large blocks again and again, training
# steps and batches (docs/decisions/0009). Sanitizers bring a malloc of their own.
add_library(millrace_malloc INTERFACE)
find_library(TCMALLOC NAMES tcmalloc_minimal libtcmalloc_minimal.so.4)
if(TCMALLOC AND NOT MILLRACE_SANITIZE)
  target_link_options(millrace_malloc INTERFACE
                      -Wl,--push-state,--no-as-needed,${TCMALLOC},--pop-state)
endif()

# compile_together(TARGET [MOST]): compiles the sources of TARGET in unity batches of equal size, up
# to MOST files each (default 16). Half of the time goes into the headers of libtorch and the
# templates of fmt, nlohmann and CLI11, which each translation unit compiles again.
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

# add_room(NAME SOURCES ... LINKS ... [OBJECT]): a folder of the house as the target millrace_NAME,
# alias millrace::NAME. OBJECT rooms hold components that register themselves, which a static
# library would lose at the link.
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

# add_flagged_sources(ROOM NAME SOURCES ... FLAGS ...): adds sources with other flags to an OBJECT
# room. (CMake leaves sources with their own COMPILE_OPTIONS out of unity batches.)
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

# add_test_program(NAME SOURCES ... LINKS ... [SLOW]): test files of the current folder in one
# program, where linking is dear, compiled a few at a time, as rooms are. Each TEST is a ctest
# entry, labelled with its room, or `slow`. The target tests_ROOM builds a room's programs.
function(add_test_program name)
  cmake_parse_arguments(TEST "SLOW" "" "SOURCES;LINKS" ${ARGN})
  get_filename_component(room ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(label ${room})
  if(TEST_SLOW)
    set(label slow)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} millrace_flags GTest::gtest_main GTest::gmock)
  # Little of their time is in their own code, much in compiling it.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  compile_together(${name} 6)
  if(NOT TARGET tests_${room})
    add_custom_target(tests_${room})
  endif()
  add_dependencies(tests_${room} ${name})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${room}/" NO_PRETTY_VALUES
                       WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                       # Tests run side by side.
                       PROPERTIES LABELS ${label} ENVIRONMENT OMP_WAIT_POLICY=passive)
endfunction()

# add_unit_test(ROOM/NAME LINKS ... [SLOW]): NAME_test.cpp of this folder as one test program.
function(add_unit_test name)
  string(REPLACE "/" "_" target ${name}_test)
  get_filename_component(file ${name} NAME)
  add_test_program(${target} SOURCES ${file}_test.cpp ${ARGN})
endfunction()

# add_cluster_test(NAME RANKS SOURCES ... LINKS ...): a test program whose tests are run by each of
# RANKS ranks together, as one ctest entry. The program is made once, whatever the numbers of ranks.
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
  # Containers run as root.
  set(run_as_root "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
  set_tests_properties(${room}/${name}.${ranks} PROPERTIES LABELS ${room} TIMEOUT 120 ENVIRONMENT
    "OMP_WAIT_POLICY=passive;OMPI_MCA_rmaps_base_oversubscribe=1;${run_as_root}")
endfunction()
