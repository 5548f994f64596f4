/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * <portals/nal.h>, where programs for Cray's machines look for the interfaces (p3nal.h). */
#include "p3nal.h"
