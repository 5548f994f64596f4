/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* What the parts of the placement interface share. */

#include <stdint.h>

/* Where the processes of one application live. */
typedef struct alpsAppLayout {
  int depth;
  int numNodes;
  int numPesHere; /* processes on this node, */
  int firstPe;    /* and the lowest number among them */
  int numPes;     /* of the application */
  int numCmds;    /* commands that it was started from: 1 */
} alpsAppLayout_t;
