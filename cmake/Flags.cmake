# SPDX-License-Identifier: Apache-2.0
# Flags that every target gets; the presets set the options.
option(MR_WERROR "Warnings are errors" OFF)
option(MR_COVERAGE "Count executed lines (gcov)" OFF)
option(MR_FAULTS "Build the programs with a planted fault, one for each of tests/differential/faults.py" OFF)
set(MR_SANITIZE "" CACHE STRING "Value of -fsanitize for everything, such as address,undefined")

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# The probe is a shared library made of the same static libraries, and exports only what says MR_EXPORT.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

string(FIND "${MR_SANITIZE}" "fuzzer" at)
if(at EQUAL -1)
  set(MR_FUZZ OFF)
else()
  set(MR_FUZZ ON)
endif()

# Debug keeps MR_DEBUG_ASSERT but is optimised: the tests push hundreds of millions of events. With a sanitizer gcc spends most of
# -O2 on its checks, which -O1 leaves as they are, in half of the time. What is cross-built is neither run nor debugged.
set(MR_DEBUG_FLAGS "-O2 -g")
if(MR_SANITIZE AND NOT MR_FUZZ)
  set(MR_DEBUG_FLAGS "-O1 -g")
elseif(CMAKE_CROSSCOMPILING)
  set(MR_DEBUG_FLAGS "-O2")
endif()
set(CMAKE_C_FLAGS_DEBUG "${MR_DEBUG_FLAGS}")
set(CMAKE_CXX_FLAGS_DEBUG "${MR_DEBUG_FLAGS}")

set(MR_WARNINGS_COMMON -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Wcast-qual -Wundef
  -Wimplicit-fallthrough)
set(MR_WARNINGS_C ${MR_WARNINGS_COMMON} -Wstrict-prototypes -Wmissing-prototypes)
if(MR_WERROR)
  list(APPEND MR_WARNINGS_COMMON -Werror)
  list(APPEND MR_WARNINGS_C -Werror)
endif()

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-fno-omit-frame-pointer)
if(MR_SANITIZE)
  add_compile_options(-fsanitize=${MR_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MR_SANITIZE})
endif()
if(MR_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
