/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * The interfaces of Portals 3.3: there is one. */
#ifndef ORRERY_P3NAL_H
#define ORRERY_P3NAL_H

#ifndef PTL_IFACE_DEFAULT
#define PTL_IFACE_DEFAULT 0u
#endif
/* Names of Cray's. */
#define PTL_IFACE_SERVER PTL_IFACE_DEFAULT
#define PTL_IFACE_CLIENT PTL_IFACE_DEFAULT

#endif
