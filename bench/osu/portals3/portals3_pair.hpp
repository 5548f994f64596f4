// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "bench/osu/model.hpp"
#include "bench/osu/table.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include <p3rt/p3rt.h>
#include <pmi.h>
#include <portals3.h>

namespace bench {

inline void require_ok(int code, const char* call) {
  if (code == PTL_OK) return;
  std::fprintf(stderr, "%s: %s\n", call, PtlErrorStr(code));
  PMI_Abort(1, call);
  std::exit(1);
}
#define BENCH_PORTALS3(call) ::bench::require_ok(call, #call)

// Two PEs with an entry each that the other puts to. How a message leaves: by a descriptor that is bound for
// it and unlinked again, or (copies) by one that stands, into whose memory the program's bytes are copied.
struct Portals3Pair {
  static constexpr ptl_pt_index_t kPortal = 4;
  static constexpr ptl_size_t kAll = 1 << 22;

  unsigned int rank = 0, size = 1;
  bool first = false;
  bool copies;
  bool acknowledged;
  std::optional<Model> model;
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t arrivals{}, departures{};
  ptl_process_id_t peer{};
  std::vector<char> window, program, bound;
  ptl_handle_md_t standing{};

  Portals3Pair(const OsuOptions& options, bool copy, bool ack)
      : copies(copy), acknowledged(ack), window(kAll), program(kAll), bound(kAll) {
    int spawned = 0;
    if (PMI_Init(&spawned) != PMI_SUCCESS) {
      std::fprintf(stderr, "PMI_Init failed: start this with `orrery run -n 2`\n");
      std::exit(2);
    }
    BENCH_PORTALS3(PtlInit(nullptr));
    BENCH_PORTALS3(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, nullptr, nullptr, &ni));
    BENCH_PORTALS3(PtlGetRank(ni, &rank, &size));
    if (size != 2 || options.largest > kAll) {
      if (rank == 0)
        std::fprintf(stderr, "%u PEs, messages up to %zu: 2 PEs, 4 MiB\n", size, options.largest);
      PMI_Finalize();
      std::exit(2);
    }
    first = rank == 0;
    if (options.model) model.emplace(static_cast<int>(rank), static_cast<int>(size));
    BENCH_PORTALS3(PtlGetRankId(ni, 1 - rank, &peer));
    BENCH_PORTALS3(PtlEQAlloc(ni, 1024, PTL_EQ_HANDLER_NONE, &arrivals));
    BENCH_PORTALS3(PtlEQAlloc(ni, 1024, PTL_EQ_HANDLER_NONE, &departures));
    ptl_handle_me_t me{};
    BENCH_PORTALS3(
        PtlMEAttach(ni, kPortal, {PTL_NID_ANY, PTL_PID_ANY}, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
    ptl_handle_md_t md{};
    BENCH_PORTALS3(PtlMDAttach(me, memory(window, kAll, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, arrivals),
                               PTL_RETAIN, &md));
    BENCH_PORTALS3(PtlMDBind(ni, memory(bound, kAll, 0, departures), PTL_RETAIN, &standing));
    PMI_Barrier();
  }
  ~Portals3Pair() {
    PMI_Barrier();
    PtlNIFini(ni);
    PtlFini();
    PMI_Finalize();
  }
  Portals3Pair(const Portals3Pair&) = delete;
  Portals3Pair& operator=(const Portals3Pair&) = delete;

  static ptl_md_t memory(std::vector<char>& bytes, ptl_size_t length, unsigned int options,
                         ptl_handle_eq_t queue) {
    return {bytes.data(), length, PTL_MD_THRESH_INF, 0, options | PTL_MD_EVENT_START_DISABLE, nullptr, queue};
  }
  static ptl_event_t next(ptl_handle_eq_t queue) {
    ptl_event_t event{};
    BENCH_PORTALS3(PtlEQWait(queue, &event));
    return event;
  }

  // A message begins. Its descriptor, for end().
  ptl_handle_md_t begin(ptl_size_t bytes) {
    ptl_handle_md_t md = standing;
    if (copies)
      std::memcpy(bound.data(), program.data(), bytes);
    else
      BENCH_PORTALS3(PtlMDBind(ni, memory(program, bytes, 0, departures), PTL_RETAIN, &md));
    BENCH_PORTALS3(
        PtlPutRegion(md, 0, bytes, acknowledged ? PTL_ACK_REQ : PTL_NO_ACK_REQ, peer, kPortal, 0, 1, 0, 0));
    return md;
  }
  // `messages` have left, and are acknowledged where that was asked for.
  void reap(int messages) {
    for (int left = acknowledged ? 2 * messages : messages; left > 0; --left) next(departures);
  }
  void end(ptl_handle_md_t md) const {
    if (!copies) BENCH_PORTALS3(PtlMDUnlink(md));
  }
  void receive(int messages) {
    for (int left = messages; left > 0; --left) next(arrivals);
  }
};

}  // namespace bench
