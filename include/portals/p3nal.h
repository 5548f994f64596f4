/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * The interfaces of Portals 3.3: there is one, and every name that programs for Cray's machines know is its.
 */
#ifndef ORRERY_P3NAL_H
#define ORRERY_P3NAL_H

#ifndef PTL_IFACE_DEFAULT
#define PTL_IFACE_DEFAULT 0u
#endif
#define PTL_IFACE_SS PTL_IFACE_DEFAULT
#define PTL_IFACE_SERVER PTL_IFACE_DEFAULT
#define PTL_IFACE_CLIENT PTL_IFACE_DEFAULT
#define CRAY_UK_SSNAL PTL_IFACE_DEFAULT
#define CRAY_USER_NAL PTL_IFACE_DEFAULT
#define CRAY_QK_NAL PTL_IFACE_DEFAULT
#define PTL_BRIDGE_UK 0u
#define PTL_BRIDGE_QK 0u
/* The interface that a bridge to the NIC and the NIC together name. */
#define IFACE_FROM_BRIDGE_AND_NALID(bridge, nal) (((bridge) | (nal)) & PTL_IFACE_DEFAULT)

#endif
