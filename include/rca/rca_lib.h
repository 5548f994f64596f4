/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Which node this is, and which there are. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name of a component. */
typedef union rs_node {
  struct {
    uint64_t _type : 8;
    uint64_t _reserved : 24;
    uint64_t _node_id : 32;
  } rs_node_s;
  uint64_t rs_node_flat;
} rs_node_t;

/* Nodes of the system, in the order of their numbers. */
typedef struct rs_node_array {
  int32_t na_len;    /* of na_ids */
  rs_node_t* na_ids; /* the caller frees it with free() */
} rs_node_array_t;

/* This process's node. Returns 0; -1 NULL, or no job. May join the job. Any thread. */
int rca_get_nodeid(rs_node_t* node);

/* The job's nodes. Returns 0; -1 NULL, no job, no memory. May join the job. Any thread. */
int rca_get_sysnodes(rs_node_array_t* nodes);

/* Where a node is in its network. Gemini: its router in the torus (x, y, z), which two nodes share. Aries: x
 * the group, y the chassis of the group (0 to 5), z the slot of the chassis (0 to 15), which four nodes
 * share. */
typedef struct mesh_coord {
  uint16_t mesh_x;
  uint16_t mesh_y;
  uint16_t mesh_z;
} mesh_coord_t;
typedef mesh_coord_t rca_mesh_coord_t;

/* The coordinates of node `nid`, on the machine of the job (ORRERY_MACHINE), or, where time is the host's
 * own, on one of the device's kind (ORRERY_DEVICE) as large as needed. Returns 0; -1 NULL, no such node, or a
 * machine that is neither a torus nor of Aries' kind. Any thread. */
int rca_get_meshcoord(uint16_t nid, rca_mesh_coord_t* coordinates);

/* The largest coordinate in each dimension: the dimensions are one more. Returns 0; -1 as above. May join the
 * job. Any thread. */
int rca_get_max_dimension(rca_mesh_coord_t* largest);

#ifdef __cplusplus
}
#endif
