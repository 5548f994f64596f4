// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

#include <gni_pub.h>
#include <pmi.h>

// What a client of the two public interfaces begins with. One job per program; every PE runs the same tests
// in the same order, and a test talks to the next rank, which alone is the PE itself.
namespace client {

inline std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// Ends the job: a PE that stops in the middle of a test would leave the others waiting.
#define REQUIRE_SUCCESS(call)                                         \
  do {                                                                \
    const gni_return_t required = (call);                             \
    if (required != GNI_RC_SUCCESS) {                                 \
      std::fprintf(stderr, "%s: %s\n", #call, gni_err_str[required]); \
      PMI_Abort(1, #call);                                            \
    }                                                                 \
  } while (false)

struct Pmi {
  int rank = 0;
  int size = 1;
  static const Pmi& get() {
    static const Pmi pmi;
    return pmi;
  }
  template <typename T>
  std::vector<T> gather(const T& mine) const {
    struct Card {
      int rank;
      T value;
    };
    Card card{rank, mine};
    std::vector<Card> cards(static_cast<std::size_t>(size));
    EXPECT_EQ(PMI_Allgather(&card, cards.data(), sizeof card), PMI_SUCCESS);
    std::vector<T> values(static_cast<std::size_t>(size));
    for (const Card& c : cards) values[static_cast<std::size_t>(c.rank)] = c.value;
    return values;
  }
  void barrier() const { EXPECT_EQ(PMI_Barrier(), PMI_SUCCESS); }

  Pmi(const Pmi&) = delete;
  Pmi& operator=(const Pmi&) = delete;

 private:
  // mpirun takes a process that leaves without a word for one that failed.
  ~Pmi() { PMI_Finalize(); }
  Pmi() {
    int spawned = 0;
    // Nothing here means anything without: the variables of the domain come from it, too.
    if (const int rc = PMI_Init(&spawned); rc != PMI_SUCCESS) {
      std::fprintf(stderr, "PMI_Init: %d\n", rc);
      std::_Exit(1);
    }
    PMI_Get_rank(&rank);
    PMI_Get_size(&size);
  }
};

// Whether PEs may come to share memory: not when they live on several hosts, or behave as if they did.
inline bool memory_is_shared() {
  const auto is = [](const char* name, const char* value) {
    const char* const set = std::getenv(name);
    return set != nullptr && std::string_view(set) == value;
  };
  return !is("ORRERY_ADOPT", "never") && !is("ORRERY_WIRE", "ofi");
}

// The job's first domain.
inline std::uint8_t ptag() { return static_cast<std::uint8_t>(std::atoi(std::getenv("PMI_GNI_PTAG"))); }
inline std::uint32_t cookie() {
  return static_cast<std::uint32_t>(std::strtoul(std::getenv("PMI_GNI_COOKIE"), nullptr, 10));
}

struct Domain {
  gni_cdm_handle_t cdm = nullptr;
  gni_nic_handle_t nic = nullptr;
  std::uint32_t address = 0;
  std::uint32_t instance = 0;

  explicit Domain(std::uint32_t modes = 0, std::uint32_t first_instance = 100) {
    const Pmi& pmi = Pmi::get();
    instance = first_instance + static_cast<std::uint32_t>(pmi.rank);
    // Errors are events: most tests here are about those.
    REQUIRE_SUCCESS(GNI_CdmCreate(instance, ptag(), cookie(), modes | GNI_CDM_MODE_ERR_NO_KILL, &cdm));
    REQUIRE_SUCCESS(GNI_CdmAttach(cdm, 0, &address, &nic));
  }
  ~Domain() { EXPECT_EQ(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS); }
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  gni_cq_handle_t queue(std::uint32_t depth, gni_cq_mode_t mode = GNI_CQ_NOBLOCK) const {
    gni_cq_handle_t cq = nullptr;
    REQUIRE_SUCCESS(GNI_CqCreate(nic, depth, 0, mode, nullptr, nullptr, &cq));
    return cq;
  }
  gni_ep_handle_t endpoint(gni_cq_handle_t cq, std::uint32_t remote_address, std::uint32_t remote_id) const {
    gni_ep_handle_t ep = nullptr;
    REQUIRE_SUCCESS(GNI_EpCreate(nic, cq, &ep));
    REQUIRE_SUCCESS(GNI_EpBind(ep, remote_address, remote_id));
    return ep;
  }
  gni_mem_handle_t memory(const void* at, std::uint64_t bytes, gni_cq_handle_t cq = nullptr,
                          std::uint32_t flags = GNI_MEM_READWRITE) const {
    gni_mem_handle_t handle{};
    REQUIRE_SUCCESS(GNI_MemRegister(nic, address_of(at), bytes, cq, flags, UINT32_MAX, &handle));
    return handle;
  }
};

inline gni_post_descriptor_t descriptor(gni_post_type_t type, std::uint16_t cq_mode) {
  gni_post_descriptor_t d;
  std::memset(&d, 0, sizeof d);
  d.type = type;
  d.cq_mode = cq_mode;
  return d;
}

// The next event of a queue; 0 when none came for a minute.
inline gni_return_t next_event(gni_cq_handle_t cq, gni_cq_entry_t* event) {
  const std::time_t give_up = std::time(nullptr) + 60;
  gni_return_t rc = GNI_RC_NOT_DONE;
  while ((rc = GNI_CqGetEvent(cq, event)) == GNI_RC_NOT_DONE && std::time(nullptr) < give_up) {
    timespec moment{0, 20'000};
    nanosleep(&moment, nullptr);
  }
  return rc;
}

}  // namespace client
