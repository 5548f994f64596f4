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

#ifdef __cplusplus
}
#endif
