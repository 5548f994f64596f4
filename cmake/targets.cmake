# SPDX-License-Identifier: BSD-3-Clause
# How a target of ours is made. Everything that is built names its layer here, once.

# orrery_layer(<name> <sources...>): adds sources of one emu layer to the emulator.
# emu is compiled with neither exceptions nor RTTI.
function(orrery_layer name)
  add_library(orrery_${name} OBJECT ${ARGN})
  target_link_libraries(orrery_${name} PUBLIC orrery_flags fmt::fmt Threads::Threads)
  target_compile_options(orrery_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti> -ffunction-sections)
  set_property(GLOBAL APPEND PROPERTY ORRERY_LAYERS orrery_${name})
endfunction()

# orrery_interposes(<sources>...): sources of a layer that define functions of libc. Never compiled together with
# others: a program takes them out of the archive when it has no such function yet, and a sanitizer's come first.
function(orrery_interposes)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# orrery_api(<name> SOURCES ... MAP <file> [HEADERS <dir>] [COMMON])
# One machine API over the emulator: targets <name> (lib<name>.so.0, exports decided by the map file) and
# <name>_static (lib<name>.a), both over liborrery.so. HEADERS is the API's folder below include/; it is on
# the include path of every target that links the library, and it is installed with it (cmake/package.cmake).
# COMMON: it uses lib/common.
# The sources use libfmt only through emu/base (log, check): a client links no libfmt.
function(orrery_api name)
  cmake_parse_arguments(A "COMMON" "MAP;HEADERS" "SOURCES" ${ARGN})
  if(NOT A_MAP OR NOT A_SOURCES)
    message(FATAL_ERROR "orrery_api(${name}): SOURCES and MAP are needed")
  endif()
  get_filename_component(map ${A_MAP} ABSOLUTE)
  add_library(${name}_objects OBJECT ${A_SOURCES})
  target_link_libraries(${name}_objects PRIVATE orrery_flags fmt::fmt Threads::Threads)
  target_compile_options(${name}_objects PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti> -ffunction-sections)
  set(objects $<TARGET_OBJECTS:${name}_objects>)
  if(A_COMMON)
    list(APPEND objects $<TARGET_OBJECTS:orrery_common>)
  endif()
  get_property(service_new GLOBAL PROPERTY ORRERY_SERVICE_NEW)
  add_library(${name} SHARED ${objects} ${service_new})
  add_library(${name}_static STATIC ${objects})
  target_link_options(${name} PRIVATE -Wl,--version-script=${map} -Wl,-Bsymbolic-functions -Wl,-z,nodelete
    -Wl,-z,$<IF:$<BOOL:${ORRERY_SANITIZE}>,undefs,defs>)
  set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS ${map})
  set_target_properties(${name}_static PROPERTIES OUTPUT_NAME ${name})
  foreach(library ${name} ${name}_static)
    target_link_libraries(${library} PUBLIC orrery)
    # A program names liborrery.so itself, before libc: the calls that it takes care of for adopted memory
    # (madvise, read, ...) are then its own.
    target_link_options(${library} INTERFACE -Wl,--no-as-needed)
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
    if(A_HEADERS)
      target_include_directories(${library} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/${A_HEADERS}>
        $<INSTALL_INTERFACE:${ORRERY_INCLUDEDIR}/${A_HEADERS}>)
    endif()
  endforeach()
  if(A_HEADERS)
    target_include_directories(${name}_objects PRIVATE ${PROJECT_SOURCE_DIR}/include/${A_HEADERS})
  endif()
  set_target_properties(${name} PROPERTIES ORRERY_MAP ${map} ORRERY_HEADERS "${A_HEADERS}")
  set_property(GLOBAL APPEND PROPERTY ORRERY_APIS ${name})
endfunction()

# orrery_call_log(<api> EXPORTS <pattern> HEADERS <folders or files below include/> INCLUDES <folders below include/>)
# liborrery_log_<api>.so, for LD_PRELOAD: `orrery run --log <api>`. In lib/<api>/log, which has calls.json (what the
# headers do not say of the calls) and call_log.cpp (how its structures are shown); lib/common/log has the rest.
function(orrery_call_log api)
  cmake_parse_arguments(A "" "EXPORTS" "HEADERS;INCLUDES" ${ARGN})
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(common ${PROJECT_SOURCE_DIR}/lib/common/log)
  set(calls ${PROJECT_BINARY_DIR}/generated/lib/${api}/log/calls.cpp)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated/lib/${api}/log)
  set(declared)
  foreach(header ${A_HEADERS})
    set(header ${PROJECT_SOURCE_DIR}/include/${header})
    if(IS_DIRECTORY ${header})
      file(GLOB header CONFIGURE_DEPENDS ${header}/*.h)
    endif()
    list(APPEND declared ${header})
  endforeach()
  add_custom_command(OUTPUT ${calls}
    COMMAND ${Python3_EXECUTABLE} ${common}/generate_calls.py ${CMAKE_CURRENT_SOURCE_DIR}/calls.json ${calls} ${declared}
    DEPENDS ${common}/generate_calls.py calls.json ${declared} COMMENT "Writing the log of ${api}'s calls")
  set(library orrery_log_${api})
  add_library(${library} MODULE ${common}/call_line.cpp ${PROJECT_SOURCE_DIR}/emu/base/output_file.cpp call_log.cpp
    ${calls})
  target_link_libraries(${library} PRIVATE orrery_flags ${CMAKE_DL_LIBS})
  foreach(folder ${A_INCLUDES})
    target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/include/${folder})
  endforeach()
  # Nothing of the emulator, and no library that the client would not have: it is loaded into shells, too. Without
  # the tree's sanitizers, which want to be loaded first. Of its own only the calls are seen, with no version: they
  # stand in front of the library's own, whatever version a client names.
  set(unsanitized)
  if(ORRERY_SANITIZE)
    set(unsanitized -fno-sanitize=all)
  endif()
  target_compile_options(${library} PRIVATE -fno-exceptions -fno-rtti ${unsanitized})
  set(map ${PROJECT_BINARY_DIR}/generated/lib/${api}/log/calls.map)
  file(CONFIGURE OUTPUT ${map} CONTENT "{\n  global: ${A_EXPORTS};\n  local: *;\n};\n")
  target_link_options(${library} PRIVATE -static-libstdc++ -static-libgcc -Wl,--version-script=${map} ${unsanitized})
  # Next to the API libraries, where the command looks for it.
  install(TARGETS ${library} LIBRARY DESTINATION ${ORRERY_LIBDIR})
  set_property(GLOBAL APPEND PROPERTY ORRERY_LOGGED_APIS ${api})
endfunction()

# The emulator has no RTTI: there is nothing that UBSan's check of dynamic types could look at.
set(orrery_no_vptr $<$<BOOL:${ORRERY_SANITIZE}>:-fno-sanitize=vptr>)
# The models, the simulator and the command read and write their own objects alone, never at an address that a peer or
# a client gave: there none is misaligned, and AddressSanitizer sees null as well. These two checks are made at every
# access, and are a third of what such a source takes to compile.
set(orrery_own_objects $<$<BOOL:${ORRERY_SANITIZE}>:-fno-sanitize=null,alignment>)

# orrery_precompile(<target>): the headers that nearly every test includes, compiled once for all of them; in a folder
# that sets orrery_test_headers with those of ours that nearly every test there includes.
# With ccache each translation unit is found by its own contents, which serves better; clang is stricter about
# what may differ between a precompiled header and its users.
function(orrery_precompile target)
  get_target_property(sources ${target} SOURCES)
  if(ORRERY_CCACHE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR sources MATCHES "\\.c(;|$)")
    return()
  endif()
  string(MAKE_C_IDENTIFIER "test_headers${orrery_test_headers}" headers)
  if(NOT TARGET ${headers})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/test_headers.cpp CONTENT "int main() {}\n")
    add_executable(${headers} ${PROJECT_BINARY_DIR}/generated/test_headers.cpp)
    target_link_libraries(${headers} PRIVATE orrery_flags fmt::fmt Threads::Threads GTest::gtest GTest::gmock)
    target_compile_options(${headers} PRIVATE ${orrery_no_vptr})
    target_precompile_headers(${headers} PRIVATE <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> ${orrery_test_headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()

# orrery_test(<name> SOURCES ... [LIBS ...] [LABELS ...] [TIMEOUT s] [ENV ...] [SANITIZED filter])
# A GoogleTest program over the emulator's internals; each is one ctest entry. The label `inprocess` says
# that the program needs no other process, which is what ThreadSanitizer can watch; the target
# `inprocess_tests` builds those, and what orrery_api_test() says of TSAN. SANITIZED: where an instrumented program takes several times as long, the
# selection of its tests that is run then, as a filter of GoogleTest.
function(orrery_test name)
  cmake_parse_arguments(A "" "TIMEOUT;SANITIZED" "SOURCES;LIBS;LABELS;ENV" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE orrery_emu ${A_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${orrery_no_vptr})
  orrery_precompile(${name})
  add_test(NAME ${name} COMMAND ${name})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  if(A_SANITIZED AND ORRERY_SANITIZE)
    list(APPEND A_ENV "GTEST_FILTER=${A_SANITIZED}")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}" ENVIRONMENT "${A_ENV}")
  if("inprocess" IN_LIST A_LABELS)
    add_dependencies(inprocess_tests ${name})
  endif()
endfunction()

# orrery_api_test(<name> SOURCES ... [LIBS ...] [NPES n] [LABELS ...] [TIMEOUT s]
#                 [ADOPT modes...] [TSAN modes...] [RUN options of orrery run])
# A GoogleTest program over the public interfaces alone, linked as a client is: with the shared libraries. It
# runs under `orrery run -n NPES`, or by itself without NPES, once for each value of ORRERY_ADOPT in ADOPT;
# `frames` is never, and no cross-memory attach either; `wire` sends everything by the wire between hosts.
# TSAN: those of the modes that ThreadSanitizer watches as well, each process by itself: the label `tsan`.
function(orrery_api_test name)
  cmake_parse_arguments(A "" "NPES;TIMEOUT" "SOURCES;LIBS;LABELS;ADOPT;TSAN;RUN" ${ARGN})
  add_executable(${name} ${A_SOURCES} ${PROJECT_SOURCE_DIR}/tests/leaks_of_others.c)
  target_link_libraries(${name} PRIVATE orrery_flags ${A_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  orrery_precompile(${name})
  set(command ${name})
  if(A_NPES)
    set(command $<TARGET_FILE:orrery_tool> run -n ${A_NPES} ${A_RUN} $<TARGET_FILE:${name}>)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  if(NOT A_ADOPT)
    set(A_ADOPT hot)
  endif()
  foreach(adopt ${A_ADOPT})
    set(environment ORRERY_ADOPT=${adopt})
    if(adopt STREQUAL frames)
      set(environment ORRERY_ADOPT=never ORRERY_ATTACH=off)
    elseif(adopt STREQUAL wire)
      set(environment ORRERY_WIRE=ofi)
    endif()
    set(labels ${A_LABELS})
    if(adopt IN_LIST A_TSAN)
      list(APPEND labels tsan)
      list(APPEND environment TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp)
      add_dependencies(inprocess_tests ${name} orrery_tool)
    endif()
    add_test(NAME ${name}-${adopt} COMMAND ${command})
    set_tests_properties(${name}-${adopt} PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS "${labels}"
      ENVIRONMENT "${environment}")
  endforeach()
endfunction()

# orrery_fuzz(<name> SOURCES ... [LIBS ...] [CORPUS <dir>])
# A libFuzzer target (extern "C" int LLVMFuzzerTestOneInput) for a parser of bytes from outside. With
# ORRERY_FUZZ it is a fuzzer in <build>/fuzz; without, a test that replays every file of the corpus and
# short mutations of each by seed.
function(orrery_fuzz name)
  cmake_parse_arguments(A "" "CORPUS" "SOURCES;LIBS" ${ARGN})
  set(corpus)
  if(A_CORPUS)
    get_filename_component(corpus ${A_CORPUS} ABSOLUTE)
  endif()
  if(ORRERY_FUZZ)
    add_executable(${name} ${A_SOURCES})
    target_link_libraries(${name} PRIVATE orrery_emu ${A_LIBS})
    target_compile_options(${name} PRIVATE ${orrery_no_vptr})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
    if(NOT TARGET fuzz_targets)
      add_custom_target(fuzz_targets)
    endif()
    add_dependencies(fuzz_targets ${name})
    # A run starts from the corpus; what it finds goes into a folder of its own, not into the tree.
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/fuzz/${name}.corpus CONTENT "${corpus}\n")
  else()
    add_executable(${name} ${A_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz_replay.cpp)
    target_link_libraries(${name} PRIVATE orrery_emu ${A_LIBS})
    target_compile_options(${name} PRIVATE ${orrery_no_vptr})
    add_test(NAME ${name} COMMAND ${name} ${corpus})
    set_tests_properties(${name} PROPERTIES TIMEOUT 120)
  endif()
endfunction()
