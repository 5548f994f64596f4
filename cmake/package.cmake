# SPDX-License-Identifier: BSD-3-Clause
# Installs what the tree built: the emulator, each API that exists (library, headers, pkg-config file, CMake
# component) and the machine descriptions; the command installs itself. Everything finds its parts relative
# to itself, so an installed prefix can be moved.
include(CMakePackageConfigHelpers)
file(RELATIVE_PATH ORRERY_PC_PREFIX /prefix/${ORRERY_PKGCONFIGDIR} /prefix)
string(REGEX REPLACE "/$" "" ORRERY_PC_PREFIX ${ORRERY_PC_PREFIX})

# pkg-config files of an API, where clients ask for names of their own.
set(orrery_pc_ugni cray-ugni cray-gni-headers)
set(orrery_pc_pmi cray-pmi)
set(orrery_pc_dmapp cray-dmapp)
set(orrery_pc_shmem shmem cray-shmem)
set(orrery_pc_portals portals4)
set(orrery_pc_portals3 portals3)
set(orrery_pc_cci cci)
foreach(neighbour udreg alpslli alpsutil rca wlm_detect xpmem)
  set(orrery_pc_${neighbour} cray-${neighbour})
endforeach()

set_target_properties(orrery PROPERTIES INSTALL_RPATH $ORIGIN)
install(TARGETS orrery EXPORT OrreryCore LIBRARY DESTINATION ${ORRERY_LIBDIR})
install(EXPORT OrreryCore NAMESPACE Orrery:: FILE OrreryCoreTargets.cmake DESTINATION ${ORRERY_CMAKEDIR})
if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/include/orrery)
  install(DIRECTORY include/orrery DESTINATION ${ORRERY_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
endif()

get_property(orrery_apis GLOBAL PROPERTY ORRERY_APIS)
foreach(api IN LISTS orrery_apis)
  set_target_properties(${api} PROPERTIES INSTALL_RPATH $ORIGIN)
  install(TARGETS ${api} ${api}_static EXPORT Orrery_${api}
    LIBRARY DESTINATION ${ORRERY_LIBDIR} ARCHIVE DESTINATION ${ORRERY_LIBDIR})
  install(EXPORT Orrery_${api} NAMESPACE Orrery:: FILE Orrery_${api}Targets.cmake
    DESTINATION ${ORRERY_CMAKEDIR})
  get_target_property(headers ${api} ORRERY_HEADERS)
  if(headers)
    install(DIRECTORY include/${headers} DESTINATION ${ORRERY_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.fh")
  endif()
  foreach(pc IN LISTS orrery_pc_${api})
    configure_file(cmake/pkgconfig/${pc}.pc.in ${PROJECT_BINARY_DIR}/generated/${pc}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/generated/${pc}.pc DESTINATION ${ORRERY_PKGCONFIGDIR})
  endforeach()
endforeach()

string(REPLACE ";" " " ORRERY_COMPONENTS "${orrery_apis}")
configure_package_config_file(cmake/OrreryConfig.cmake.in
  ${PROJECT_BINARY_DIR}/generated/OrreryConfig.cmake INSTALL_DESTINATION ${ORRERY_CMAKEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/OrreryConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/OrreryConfig.cmake
  ${PROJECT_BINARY_DIR}/generated/OrreryConfigVersion.cmake DESTINATION ${ORRERY_CMAKEDIR})

file(GLOB machines CONFIGURE_DEPENDS machines/*.toml machines/*.csv)
if(machines)
  install(FILES ${machines} DESTINATION ${ORRERY_DATADIR}/machines)
endif()

# What is read and tried: the documents, and the examples that they speak of.
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/orrery)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/orrery FILES_MATCHING PATTERN "*.md" PATTERN "*.svg"
  PATTERN "*.csv")
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/orrery FILES_MATCHING PATTERN "*.c"
  PATTERN "*.h")

# For shells and for environment modules: variables that some configure scripts read instead of pkg-config.
file(RELATIVE_PATH ORRERY_ENV_PREFIX /prefix/${ORRERY_DATADIR} /prefix)
string(REGEX REPLACE "/$" "" ORRERY_ENV_PREFIX ${ORRERY_ENV_PREFIX})
# A plain sh cannot ask where the file that it reads lies, and only the installation knows the prefix.
set(ORRERY_INSTALLED_PREFIX "@ORRERY_INSTALLED_PREFIX@")
configure_file(cmake/environment/env.sh.in ${PROJECT_BINARY_DIR}/generated/env.sh.in @ONLY)
install(CODE "
  set(ORRERY_INSTALLED_PREFIX \"\${CMAKE_INSTALL_PREFIX}\")
  configure_file(\"${PROJECT_BINARY_DIR}/generated/env.sh.in\" \"${PROJECT_BINARY_DIR}/generated/env.sh\" @ONLY)")
install(FILES ${PROJECT_BINARY_DIR}/generated/env.sh DESTINATION ${ORRERY_DATADIR})
configure_file(cmake/environment/modulefile.in ${PROJECT_BINARY_DIR}/generated/modulefile @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/modulefile DESTINATION ${ORRERY_DATADIR}/modulefiles RENAME orrery)

# A folder for each product of the machines, with include, lib and lib64, for scripts that are given one
# (--with-ugni=DIR, PMI_HOME=DIR): links relative to themselves.
set(orrery_products ${PROJECT_BINARY_DIR}/generated/products)
file(REMOVE_RECURSE ${orrery_products})
# orrery_product(<name> <folder below ORRERY_INCLUDEDIR>)
function(orrery_product name headers)
  file(MAKE_DIRECTORY ${orrery_products}/${name})
  file(RELATIVE_PATH include /prefix/${ORRERY_DATADIR}/products/${name} /prefix/${ORRERY_INCLUDEDIR}/${headers})
  file(RELATIVE_PATH libraries /prefix/${ORRERY_DATADIR}/products/${name} /prefix/${ORRERY_LIBDIR})
  file(CREATE_LINK ${include} ${orrery_products}/${name}/include SYMBOLIC)
  file(CREATE_LINK ${libraries} ${orrery_products}/${name}/lib SYMBOLIC)
  file(CREATE_LINK ${libraries} ${orrery_products}/${name}/lib64 SYMBOLIC)
endfunction()
foreach(api IN LISTS orrery_apis)
  get_target_property(headers ${api} ORRERY_HEADERS)
  if(headers)
    orrery_product(${api} ${headers})
  endif()
endforeach()
install(DIRECTORY ${orrery_products} DESTINATION ${ORRERY_DATADIR})

# Compiler wrappers, for configure scripts that want the machine's: a folder to put in front of PATH.
file(RELATIVE_PATH ORRERY_WRAPPER_PREFIX /prefix/${ORRERY_DATADIR}/compilers /prefix)
string(REGEX REPLACE "/$" "" ORRERY_WRAPPER_PREFIX ${ORRERY_WRAPPER_PREFIX})
configure_file(cmake/environment/compiler.in ${PROJECT_BINARY_DIR}/generated/compiler @ONLY)
foreach(wrapper cc CC ftn oshcc oshc++ oshCC oshfort)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/generated/compiler DESTINATION ${ORRERY_DATADIR}/compilers RENAME ${wrapper})
endforeach()
configure_file(cmake/environment/oshrun.in ${PROJECT_BINARY_DIR}/generated/oshrun @ONLY)
install(PROGRAMS ${PROJECT_BINARY_DIR}/generated/oshrun DESTINATION ${ORRERY_DATADIR}/compilers)
# The library under the names by which programs for other SHMEMs link it.
foreach(other sma oshmem)
  install(CODE "
    file(CREATE_LINK libshmem.so \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${ORRERY_LIBDIR}/lib${other}.so\" SYMBOLIC)")
endforeach()
