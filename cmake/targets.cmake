# SPDX-License-Identifier: BSD-3-Clause
# How a target of ours is made. Everything that is built names its layer here, once.

# orrery_layer(<name> <sources...>): adds sources of one emu layer to the emulator.
# emu is compiled with neither exceptions nor RTTI.
function(orrery_layer name)
  add_library(orrery_${name} OBJECT ${ARGN})
  target_link_libraries(orrery_${name} PUBLIC orrery_flags fmt::fmt Threads::Threads)
  target_compile_options(orrery_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti>)
  set_property(GLOBAL APPEND PROPERTY ORRERY_LAYERS orrery_${name})
endfunction()

# orrery_test(<name> SOURCES ... [LIBS ...] [LABELS ...] [TIMEOUT s] [ENV ...])
# A GoogleTest program over the emulator's internals; each is one ctest entry.
function(orrery_test name)
  cmake_parse_arguments(A "" "TIMEOUT" "SOURCES;LIBS;LABELS;ENV" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE orrery_emu ${A_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}" ENVIRONMENT "${A_ENV}")
endfunction()
