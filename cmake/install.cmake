# SPDX-License-Identifier: BSD-3-Clause
# Where things go. The libraries live in a private directory with an rpath: Slurm owns
# libpmi.so.0 of the system's library directory, and a client is to find ours.
set(ORRERY_LIBDIR ${CMAKE_INSTALL_LIBDIR}/orrery)
set(ORRERY_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR}/orrery)
set(ORRERY_DATADIR ${CMAKE_INSTALL_DATADIR}/orrery)
set(ORRERY_PKGCONFIGDIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(ORRERY_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/Orrery)
