/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * The interfaces of Portals 3.3: there is one, and every name that programs for Cray's machines know is its.
 */
#ifndef ORRERY_P3NAL_H
#define ORRERY_P3NAL_H

/* A program may have said before which of the names below is its default. */
#ifndef PTL_IFACE_DEFAULT
#define PTL_IFACE_DEFAULT 0u
#endif
#define PTL_IFACE_SS 0u
#define PTL_IFACE_SERVER 0u
#define PTL_IFACE_CLIENT 0u
#define CRAY_UK_SSNAL 0u
#define CRAY_USER_NAL 0u
#define CRAY_QK_NAL 0u
#define PTL_BRIDGE_UK 0u
#define PTL_BRIDGE_QK 0u
/* The interface that a bridge to the NIC and the NIC together name. */
#define IFACE_FROM_BRIDGE_AND_NALID(bridge, nal) (((bridge) | (nal)) & 0u)

#endif
