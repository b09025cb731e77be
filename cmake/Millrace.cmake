# SPDX-License-Identifier: Apache-2.0
# The targets of this project. SOURCES are relative to the calling folder; DEPS are our libraries ("base") and
# packages ("pkg::zstd"), and are passed on to whoever links the target.
#
#   mr_library(net SOURCES frame.c DEPS base pkg::zstd)           static library mr_net, alias net for DEPS
#   mr_executable(millrace SOURCES main.c DEPS worker master)     build/<preset>/bin/millrace
#   mr_unit_test(test_frame SOURCES test_frame.c DEPS net [ONE_THREAD])
#                                                                 cmocka, label unit; ONE_THREAD: it never has a second one,
#                                                                 so that CI leaves it out of preset tsan (label one-thread)
#   mr_race_test(test_pipe SOURCES test_pipe.c DEPS pipeline)     label race; meant for preset tsan
#   mr_system_test(chain SCRIPT chain.sh [ARGS ...] [TIMEOUT s] [SERIAL] [PROCESSORS n] [COST s] [LABELS ...])
#                                                                 label system; .sh or .py, gets MR_BIN, MR_SOURCE
#                                                                 and MR_BUILD in the environment; SERIAL: what it checks
#                                                                 depends on how busy the machine is; PROCESSORS: places that
#                                                                 it takes, for what computes all the time; COST: about its
#                                                                 seconds, the long ones are started first
#   mr_fuzz_target(frame SOURCES fuzz_frame.c DEPS net CORPUS corpus/frame)
#                                                                 preset fuzz: fuzz_frame; else: test replay_frame
include_guard()

# Ends what hangs; machines are slower than one thinks.
set(MR_TEST_TIMEOUT 600)
set(MR_TEST_ENVIRONMENT
  MR_BIN=${CMAKE_BINARY_DIR}/bin
  MR_LIB=${CMAKE_BINARY_DIR}/lib
  MR_BUILD=${CMAKE_BINARY_DIR}
  MR_SOURCE=${PROJECT_SOURCE_DIR}
  MR_SANITIZE=${MR_SANITIZE}
  CMOCKA_MESSAGE_OUTPUT=STDOUT
  ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
  UBSAN_OPTIONS=print_stacktrace=1
  TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp:halt_on_error=1)

function(mr_flags target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:C>:${MR_WARNINGS_C}>"
    "$<$<COMPILE_LANGUAGE:CXX>:${MR_WARNINGS_COMMON}>")
endfunction()

function(mr_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  # The prefix keeps names such as `base` free for folders and the archive's name clear: libmr_base.a.
  add_library(mr_${name} STATIC ${arg_SOURCES})
  add_library(${name} ALIAS mr_${name})
  target_include_directories(mr_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(mr_${name} PUBLIC ${arg_DEPS})
  mr_flags(mr_${name})
endfunction()

function(mr_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  mr_flags(${name})
endfunction()

function(mr_test_properties name label)
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${MR_TEST_TIMEOUT}
    ENVIRONMENT "${MR_TEST_ENVIRONMENT}")
endfunction()

# What several cmocka tests share, built once.
function(mr_test_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  if(NOT MR_FUZZ)
    mr_library(${name} SOURCES ${arg_SOURCES} DEPS ${arg_DEPS} pkg::cmocka)
  endif()
endfunction()

# What preset tsan runs: unit and race tests that have more than one thread, and what they need.
add_custom_target(threaded-tests)

function(mr_cmocka_test label name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "ONE_THREAD" "TIMEOUT" "SOURCES;DEPS")
  if(MR_FUZZ)
    return() # libraries there carry the fuzzer's instrumentation; only fuzz targets are built
  endif()
  mr_executable(${name} SOURCES ${arg_SOURCES} DEPS ${arg_DEPS} pkg::cmocka Threads::Threads)
  add_test(NAME ${name} COMMAND ${name})
  mr_test_properties(${name} ${label})
  if(arg_ONE_THREAD)
    set_property(TEST ${name} APPEND PROPERTY LABELS one-thread)
  else()
    add_dependencies(threaded-tests ${name})
  endif()
  if(arg_TIMEOUT)
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
  endif()
endfunction()

function(mr_unit_test name)
  mr_cmocka_test(unit ${name} ${ARGN})
endfunction()

function(mr_race_test name)
  mr_cmocka_test(race ${name} ${ARGN})
  if(TEST ${name})
    # Its threads are to run at the same time: nothing beside it, however many tests there are at once.
    set_tests_properties(${name} PROPERTIES PROCESSORS 64)
  endif()
endfunction()

function(mr_system_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "SCRIPT;TIMEOUT;PROCESSORS;COST" "ARGS;LABELS")
  if(MR_FUZZ)
    return()
  endif()
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCRIPT})
  if(script MATCHES "\\.py$")
    set(interpreter python3)
  else()
    set(interpreter bash)
  endif()
  add_test(NAME ${name} COMMAND ${interpreter} ${script} ${arg_ARGS})
  mr_test_properties(${name} "system;${arg_LABELS}")
  if(arg_TIMEOUT)
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
  endif()
  if(arg_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
  if(arg_PROCESSORS)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${arg_PROCESSORS})
  endif()
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
endfunction()

function(mr_fuzz_target name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS" "SOURCES;DEPS")
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${arg_CORPUS})
  if(MR_FUZZ)
    mr_executable(fuzz_${name} SOURCES ${arg_SOURCES} DEPS ${arg_DEPS})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    # For scripts/fuzz.sh: which targets there are, and where their corpora lie.
    set_property(GLOBAL APPEND PROPERTY MR_FUZZ_TARGETS "fuzz_${name} ${corpus}\n")
  else()
    mr_executable(replay_${name}
      SOURCES ${arg_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.c DEPS ${arg_DEPS})
    add_test(NAME replay_${name} COMMAND replay_${name} ${corpus})
    mr_test_properties(replay_${name} "fuzz")
  endif()
endfunction()

# Called once, at the end of tests/CMakeLists.txt.
function(mr_write_fuzz_targets)
  get_property(lines GLOBAL PROPERTY MR_FUZZ_TARGETS)
  string(CONCAT text ${lines})
  file(WRITE ${CMAKE_BINARY_DIR}/fuzz_targets.txt "${text}")
endfunction()
