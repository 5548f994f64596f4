/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * A name that programs include for another network; here all interfaces are one (p3nal.h). */
#include "p3nal.h"
