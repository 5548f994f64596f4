# SPDX-License-Identifier: BSD-3-Clause
# Build options. Tests, examples and benchmarks default to "am I the root project".
option(ORRERY_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(ORRERY_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(ORRERY_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
# Not by default: a newer compiler has warnings that were not seen here. The presets, which CI uses, set it.
option(ORRERY_ENCRYPTION "Let the wire between hosts encrypt, by OpenSSL 3 (headers only; opened at run time)" ON)
option(ORRERY_WERROR "Treat warnings as errors" OFF)
option(ORRERY_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(ORRERY_CHECK_LOCKS "Abort at a lock of the NIC that is taken against the order of locks" OFF)
set(ORRERY_SANITIZE "" CACHE STRING "Sanitizers: empty, address;undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
find_program(ORRERY_CCACHE ccache)
if(ORRERY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the tree, so that a second checkout of it finds what the first one compiled.
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    ${ORRERY_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
# Messages and debug information name a source by its place in the tree, not by where the tree stands.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# One interface target carries what every target of ours is compiled with.
add_library(orrery_flags INTERFACE)
target_include_directories(orrery_flags INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/generated)
target_compile_options(orrery_flags INTERFACE -Wall -Wextra -Wpedantic
  $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>
  $<$<BOOL:${ORRERY_WERROR}>:-Werror>
  # At -O3 gcc finds these in std::string, std::vector, std::sort and after std::make_unique, where none are.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>
  -fno-semantic-interposition
  $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-mcx16>)
target_compile_definitions(orrery_flags INTERFACE _GNU_SOURCE $<$<BOOL:${ORRERY_CHECK_LOCKS}>:ORRERY_CHECK_LOCKS>)
if(ORRERY_SANITIZE)
  string(REPLACE ";" "," orrery_sanitize "${ORRERY_SANITIZE}")
  # Applied to the whole tree so that fixtures and programs agree with the library.
  add_compile_options(-fsanitize=${orrery_sanitize} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${orrery_sanitize})
endif()
# Tests take longer to compile than to run, tools too under AddressSanitizer: with less optimisation, and tests
# without UBSan's checks of what they do themselves, which is up to half of that time. The libraries that they test
# have both.
set(orrery_optimise_tests)
set(orrery_optimise_tools)
if("address" IN_LIST ORRERY_SANITIZE AND NOT ORRERY_FUZZ)
  set(orrery_optimise_tests -O0 -fno-sanitize=undefined)
  set(orrery_optimise_tools -O0)
elseif(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(orrery_optimise_tests -O1)
  set(orrery_optimise_tools -O1)
endif()
# Where the sources of a target are compiled together (CMAKE_UNITY_BUILD, which the presets of the test suites set:
# the headers are read once for all of them), a dozen at a time.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)

if(ORRERY_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "ORRERY_FUZZ needs clang's libFuzzer; the compiler is ${CMAKE_CXX_COMPILER_ID}")
  endif()
  # The whole tree tells the fuzzer which branches an input took.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
