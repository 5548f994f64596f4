// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <gni_pub.h>
#include <pmi.h>

// What every benchmark program over uGNI begins with: PMI, one CDM, endpoints to all peers.
namespace bench {

// Ends the job with the name of the call that failed.
inline void require(gni_return_t rc, const char* call) {
  if (rc == GNI_RC_SUCCESS) return;
  std::fprintf(stderr, "%s: %s\n", call, gni_err_str[rc]);
  PMI_Abort(1, call);
  std::exit(1);
}
#define BENCH_REQUIRE(call) ::bench::require(call, #call)

// Gathers one T from every PE, in the order of ranks. (PMI_Allgather promises no order.)
template <typename T>
std::vector<T> all_gather(const T& mine, int rank, int size) {
  struct Card {
    int rank;
    T value;
  };
  const Card card{rank, mine};
  std::vector<Card> cards(static_cast<std::size_t>(size));
  if (PMI_Allgather(const_cast<Card*>(&card), cards.data(), sizeof card) != PMI_SUCCESS) {
    std::fprintf(stderr, "PMI_Allgather failed\n");
    std::exit(1);
  }
  std::vector<T> values(static_cast<std::size_t>(size));
  for (const Card& c : cards) values[static_cast<std::size_t>(c.rank)] = c.value;
  return values;
}

struct Session {
  int rank = 0;
  int size = 1;
  gni_cdm_handle_t cdm = nullptr;
  gni_nic_handle_t nic = nullptr;
  std::vector<std::uint32_t> addresses;

  // `modes`: GNI_CDM_MODE_ bits besides the one that lets errors be returned.
  explicit Session(std::uint32_t modes = 0) {
    int spawned = 0;
    if (PMI_Init(&spawned) != PMI_SUCCESS) {
      std::fprintf(stderr, "PMI_Init failed: start this with `orrery run -n 2`\n");
      std::exit(2);
    }
    PMI_Get_rank(&rank);
    PMI_Get_size(&size);
    const auto ptag = static_cast<std::uint8_t>(std::atoi(std::getenv("PMI_GNI_PTAG")));
    const auto cookie = static_cast<std::uint32_t>(std::strtoul(std::getenv("PMI_GNI_COOKIE"), nullptr, 10));
    BENCH_REQUIRE(GNI_CdmCreate(static_cast<std::uint32_t>(rank), ptag, cookie,
                                GNI_CDM_MODE_ERR_NO_KILL | modes, &cdm));
    std::uint32_t address = 0;
    BENCH_REQUIRE(GNI_CdmAttach(cdm, 0, &address, &nic));
    addresses = all_gather(address, rank, size);
  }
  ~Session() { PMI_Finalize(); }

  gni_ep_handle_t endpoint(int peer, gni_cq_handle_t source_queue) {
    gni_ep_handle_t ep = nullptr;
    BENCH_REQUIRE(GNI_EpCreate(nic, source_queue, &ep));
    BENCH_REQUIRE(
        GNI_EpBind(ep, addresses[static_cast<std::size_t>(peer)], static_cast<std::uint32_t>(peer)));
    return ep;
  }
  gni_cq_handle_t queue(std::uint32_t depth) {
    gni_cq_handle_t cq = nullptr;
    BENCH_REQUIRE(GNI_CqCreate(nic, depth, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &cq));
    return cq;
  }
  gni_mem_handle_t registered(void* address, std::size_t bytes, gni_cq_handle_t queue = nullptr) {
    gni_mem_handle_t handle{};
    BENCH_REQUIRE(GNI_MemRegister(nic, reinterpret_cast<std::uint64_t>(address), bytes, queue,
                                  GNI_MEM_READWRITE, UINT32_MAX, &handle));
    return handle;
  }
};

// Where a peer's buffer is.
struct Window {
  std::uint64_t address = 0;
  gni_mem_handle_t handle{};
};

inline gni_post_descriptor_t put_descriptor(gni_post_type_t type, std::uint16_t cq_mode, const void* from,
                                            const Window& to, std::uint64_t offset, std::uint64_t bytes) {
  gni_post_descriptor_t pd;
  std::memset(&pd, 0, sizeof pd);
  pd.type = type;
  pd.cq_mode = cq_mode;
  pd.dlvr_mode = GNI_DLVMODE_PERFORMANCE;
  pd.local_addr = reinterpret_cast<std::uint64_t>(from);
  pd.remote_addr = to.address + offset;
  pd.remote_mem_hndl = to.handle;
  pd.length = bytes;
  return pd;
}

// Waits for one local event and collects its descriptor.
inline void reap(gni_cq_handle_t queue) {
  gni_cq_entry_t event = 0;
  gni_return_t rc = GNI_RC_NOT_DONE;
  while ((rc = GNI_CqGetEvent(queue, &event)) == GNI_RC_NOT_DONE) {
  }
  require(rc, "GNI_CqGetEvent");
  gni_post_descriptor_t* done = nullptr;
  require(GNI_GetCompleted(queue, event, &done), "GNI_GetCompleted");
}

}  // namespace bench
