/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* What all of these programs begin and end with: the interface, an event queue, the places of all ranks. */
#pragma once

#include <cnos_mpi_os.h>
#include <portals/portals3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                       \
  do {                                                                                   \
    const int code_ = (call);                                                            \
    if (code_ != PTL_OK) {                                                               \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, PtlErrorStr(code_)); \
      exit(1);                                                                           \
    }                                                                                    \
  } while (0)

enum { kPortal = 4, kAccess = 0 };

static const ptl_process_id_t kAnyone = {PTL_NID_ANY, PTL_PID_ANY};

struct world {
  int rank, size;
  ptl_handle_ni_t ni;
  ptl_handle_eq_t events;
  cnos_nidpid_map_t* places; /* by rank */
};

static inline ptl_process_id_t process(const struct world* w, int rank) {
  const ptl_process_id_t id = {w->places[rank].nid, w->places[rank].pid};
  return id;
}

static inline struct world start(void) {
  struct world w;
  int interfaces;
  w.rank = cnos_get_rank();
  w.size = cnos_get_size();
  MUST(PtlInit(&interfaces));
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &w.ni));
  MUST(PtlEQAlloc(w.ni, 1024, PTL_EQ_HANDLER_NONE, &w.events));
  if (cnos_get_nidpid_map(&w.places) != w.size) exit(1);
  return w;
}

/* Memory with events in the queue: ends alone, each operation would tell its start too. */
static inline ptl_md_t memory(const struct world* w, void* start, ptl_size_t length, unsigned int options) {
  const ptl_md_t md = {start, length,   PTL_MD_THRESH_INF, 0, options | PTL_MD_EVENT_START_DISABLE,
                       start, w->events};
  return md;
}

/* The next event of that kind; others are passed over. */
static inline ptl_event_t await(const struct world* w, ptl_event_kind_t kind) {
  ptl_event_t event;
  do MUST(PtlEQWait(w->events, &event));
  while (event.type != kind);
  return event;
}

static inline int finish(const struct world* w, const char* name, int wrong) {
  cnos_barrier();
  MUST(PtlNIFini(w->ni));
  PtlFini();
  if (wrong || w->rank == 0) printf("%s: %s\n", name, wrong ? "WRONG" : "right");
  cnos_pm_barrier(1);
  return wrong;
}
