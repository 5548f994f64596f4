/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* What all of these programs begin and end with: an interface with matching, an event queue, a portal,
 * and the ids of all processes, which the launcher's library passes around. */
#pragma once

#include <pmi.h>
#include <portals4.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                          \
  do {                                                                      \
    const int code_ = (call);                                               \
    if (code_ != PTL_OK) {                                                  \
      fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, code_); \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

enum { kMostProcesses = 64, kPortal = 4 };

struct world {
  int rank, size;
  ptl_handle_ni_t ni;
  ptl_handle_eq_t events;
  ptl_process_t process[kMostProcesses]; /* by rank */
};

static inline struct world start(void) {
  struct world w;
  int spawned;
  ptl_pt_index_t portal;
  struct card {
    int rank;
    ptl_process_t id;
  } mine, all[kMostProcesses];
  PMI_Init(&spawned);
  PMI_Get_rank(&w.rank);
  PMI_Get_size(&w.size);
  if (w.size > kMostProcesses) {
    fprintf(stderr, "%d processes: at most %d\n", w.size, kMostProcesses);
    exit(1);
  }
  MUST(PtlInit());
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &w.ni));
  MUST(PtlEQAlloc(w.ni, 1024, &w.events));
  MUST(PtlPTAlloc(w.ni, 0, w.events, kPortal, &portal));
  mine.rank = w.rank;
  MUST(PtlGetPhysId(w.ni, &mine.id));
  PMI_Allgather(&mine, all, sizeof mine);
  for (int i = 0; i < w.size; ++i) w.process[all[i].rank] = all[i].id;
  return w;
}

/* An entry that takes messages with these bits from any process. */
static inline ptl_me_t entry(void* start, ptl_size_t length, ptl_match_bits_t bits, unsigned int options) {
  ptl_me_t me;
  memset(&me, 0, sizeof me);
  me.start = start;
  me.length = length;
  me.ct_handle = PTL_CT_NONE;
  me.uid = PTL_UID_ANY;
  me.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options;
  me.match_id.phys.nid = PTL_NID_ANY;
  me.match_id.phys.pid = PTL_PID_ANY;
  me.match_bits = bits;
  return me;
}

/* Waits for an event of that kind; others on the way must be none that matter. */
static inline ptl_event_t await(const struct world* w, ptl_event_kind_t kind) {
  ptl_event_t event;
  do MUST(PtlEQWait(w->events, &event));
  while (event.type != kind);
  if (event.ni_fail_type != PTL_NI_OK) {
    fprintf(stderr, "an event of kind %d failed: %d\n", kind, event.ni_fail_type);
    exit(1);
  }
  return event;
}

static inline int finish(const struct world* w, const char* name, int wrong) {
  PMI_Barrier();
  if (wrong)
    printf("%s: WRONG on rank %d\n", name, w->rank);
  else if (w->rank == 0)
    printf("%s: right\n", name);
  PtlNIFini(w->ni);
  PtlFini();
  PMI_Finalize();
  return wrong;
}
