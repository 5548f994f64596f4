// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "bench/common/session.hpp"

#include <cstdlib>

#include <sched.h>

namespace bench {

// Two PEs with a buffer each that the other puts to, for the OSU-style programs; or, where a program takes
// more, pairs of them: PE n and PE n + half of the job.
struct OsuPair {
  Session session;
  std::byte* window = nullptr;
  std::byte* local = nullptr;
  gni_cq_handle_t queue = nullptr;
  gni_mem_handle_t local_handle{};
  gni_ep_handle_t ep = nullptr;
  Window peer;
  int partner = 0;

  explicit OsuPair(std::size_t bytes, bool pairs = false, std::uint32_t modes = 0) : session(modes) {
    if (pairs ? session.size % 2 != 0 : session.size != 2) {
      if (session.rank == 0)
        std::fprintf(stderr, "this program needs %s PEs, not %d: orrery run -n 2\n",
                     pairs ? "an even number of" : "2", session.size);
      PMI_Finalize();
      std::exit(2);
    }
    const std::size_t room = (bytes + 8191) / 4096 * 4096;
    window = static_cast<std::byte*>(std::aligned_alloc(4096, room));
    local = static_cast<std::byte*>(std::aligned_alloc(4096, room));
    std::memset(window, 0, room);
    std::memset(local, 0, room);
    queue = session.queue(1024);
    local_handle = session.registered(local, room);
    const Window mine{reinterpret_cast<std::uint64_t>(window), session.registered(window, room)};
    const int half = session.size / 2;
    partner = session.rank < half ? session.rank + half : session.rank - half;
    peer = all_gather(mine, session.rank, session.size)[static_cast<std::size_t>(partner)];
    ep = session.endpoint(partner, queue);
    PMI_Barrier();
  }

  // Posts until it is taken: a full NIC is back-pressure, not an error.
  void post(gni_post_descriptor_t& pd) {
    gni_return_t rc = GNI_RC_SUCCESS;
    const bool block = pd.type == GNI_POST_RDMA_PUT || pd.type == GNI_POST_RDMA_GET;
    while ((rc = block ? GNI_PostRdma(ep, &pd) : GNI_PostFma(ep, &pd)) == GNI_RC_ERROR_RESOURCE)
      sched_yield();
    require(rc, "GNI_Post");
  }
  // Polls the local event; gives way to the peer when both share a core.
  void reap() {
    gni_cq_entry_t event = 0;
    gni_return_t rc = GNI_RC_NOT_DONE;
    for (int spins = 0; (rc = GNI_CqGetEvent(queue, &event)) == GNI_RC_NOT_DONE; ++spins) {
      if (spins > 1000) sched_yield();
    }
    require(rc, "GNI_CqGetEvent");
    gni_post_descriptor_t* done = nullptr;
    require(GNI_GetCompleted(queue, event, &done), "GNI_GetCompleted");
  }
};

}  // namespace bench
