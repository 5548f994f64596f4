/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * <catamount/cnos_mpi_os.h>, the older place of cnos_mpi_os.h. */
#include "../cnos_mpi_os.h"
