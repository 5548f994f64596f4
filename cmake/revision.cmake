# SPDX-License-Identifier: BSD-3-Clause
# Which commit a benchmark was built from. Included by the top CMakeLists.txt it makes the target
# `orrery_revision` (link it and include "bench/revision.hpp"); run as a script at build time it writes that
# header, touching it only when the commit or the state of the tree has changed.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(header ${PROJECT_BINARY_DIR}/generated/bench/revision.hpp)
  add_custom_target(orrery_revision_header BYPRODUCTS ${header} COMMENT ""
    COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D HEADER=${header}
      -P ${CMAKE_CURRENT_LIST_DIR}/revision.cmake)
  add_library(orrery_revision INTERFACE)
  target_link_libraries(orrery_revision INTERFACE orrery_flags)
  add_dependencies(orrery_revision orrery_revision_header)
  return()
endif()

execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(revision unknown)
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT [[
// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

// Written at build time by cmake/revision.cmake.
namespace orrery::bench {

inline constexpr char kRevision[] = "@revision@";

}  // namespace orrery::bench
]] @ONLY)
