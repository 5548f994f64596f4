# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# Under the virtual clock a program's output, times included, is the same in every run.
# usage: cmake -DTOOL=<orrery> "-DPROGRAM=<program;arguments>" -DPES=<number> "-DEXPECTED=<regular expression>"
#   -P check_repeatable.cmake
foreach(run RANGE 1 3)
  execute_process(COMMAND ${TOOL} run -n ${PES} --machine aries --clock virtual ${PROGRAM}
    OUTPUT_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL 0 OR NOT output MATCHES "${EXPECTED}")
    message(FATAL_ERROR "run ${run} ended with ${result} and said\n${output}\nexpected: ${EXPECTED}")
  endif()
  if(run GREATER 1 AND NOT output STREQUAL first)
    message(FATAL_ERROR "run ${run} said\n${output}\nand run 1\n${first}")
  endif()
  set(first "${output}")
endforeach()
