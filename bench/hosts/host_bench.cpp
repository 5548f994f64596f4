// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What uGNI costs between two PEs that reach each other by the wire between hosts. One table, medians:
//   put_event    8 B put, half round trip, the target polls an event queue
//   put_memory   8 B put, half round trip, the target polls its memory and calls nothing
//   get          8 B get, until its event is there
//   amo          8 B fetching add, likewise
//   put_rate     8 B puts with events, 64 under way
//   put_1m       1 MiB puts with events, 8 under way
// usage: ORRERY_WIRE=ofi orrery run -n 2 host_bench, or under any launcher on two hosts. Beside it
// ofi_wire_bench measures bare libfabric by the same provider.
#include "bench/common/clock.hpp"
#include "bench/revision.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <gni_pub.h>
#include <pmi.h>

namespace {

using bench::now_ns;

constexpr int kTurns = 9;
constexpr int kRounds = 2000;
constexpr int kPuts = 100'000;
constexpr int kLongPuts = 400;
constexpr std::size_t kLong = std::size_t{1} << 20;
constexpr int kLongWindow = 8;

void must(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "host_bench: %s failed\n", what);
  PMI_Abort(1, what);
}

struct Card {
  int rank;
  std::uint32_t nic;
  std::uint64_t word, block;
  gni_mem_handle_t word_handle, block_handle;
};

class Pe {
 public:
  Pe() : block_(kLong), local_(kLong) {
    int spawned = 0;
    must(PMI_Init(&spawned) == PMI_SUCCESS, "PMI_Init");
    int size = 0;
    PMI_Get_rank(&rank_);
    PMI_Get_size(&size);
    must(size == 2, "a job of two PEs");
    const auto ptag = static_cast<std::uint8_t>(std::atoi(std::getenv("PMI_GNI_PTAG")));
    const auto cookie = static_cast<std::uint32_t>(std::strtoul(std::getenv("PMI_GNI_COOKIE"), nullptr, 10));
    gni_cdm_handle_t cdm = nullptr;
    Card card{};
    card.rank = rank_;
    must(GNI_CdmCreate(static_cast<std::uint32_t>(rank_), ptag, cookie, 0, &cdm) == GNI_RC_SUCCESS,
         "CdmCreate");
    must(GNI_CdmAttach(cdm, 0, &card.nic, &nic_) == GNI_RC_SUCCESS, "CdmAttach");
    must(GNI_CqCreate(nic_, 4096, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &sources_) == GNI_RC_SUCCESS,
         "CqCreate");
    must(GNI_CqCreate(nic_, 1u << 18, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &arrivals_) == GNI_RC_SUCCESS,
         "CqCreate");
    card.word = reinterpret_cast<std::uint64_t>(&word_);
    card.block = reinterpret_cast<std::uint64_t>(block_.data());
    must(GNI_MemRegister(nic_, card.word, sizeof word_, arrivals_, GNI_MEM_READWRITE, -1,
                         &card.word_handle) == GNI_RC_SUCCESS,
         "MemRegister");
    must(GNI_MemRegister(nic_, card.block, kLong, nullptr, GNI_MEM_READWRITE, -1, &card.block_handle) ==
             GNI_RC_SUCCESS,
         "MemRegister");
    must(GNI_MemRegister(nic_, reinterpret_cast<std::uint64_t>(local_.data()), kLong, nullptr,
                         GNI_MEM_READWRITE, -1, &local_handle_) == GNI_RC_SUCCESS,
         "MemRegister");
    Card cards[2];
    must(PMI_Allgather(&card, cards, sizeof card) == PMI_SUCCESS, "PMI_Allgather");
    peer_ = cards[0].rank == rank_ ? cards[1] : cards[0];
    must(GNI_EpCreate(nic_, sources_, &endpoint_) == GNI_RC_SUCCESS, "EpCreate");
    must(GNI_EpBind(endpoint_, peer_.nic, static_cast<std::uint32_t>(peer_.rank)) == GNI_RC_SUCCESS,
         "EpBind");
    meet();
  }
  ~Pe() {
    meet();
    PMI_Finalize();
  }
  Pe(const Pe&) = delete;
  Pe& operator=(const Pe&) = delete;

  bool measures() const { return rank_ == 0; }
  void meet() { must(PMI_Barrier() == PMI_SUCCESS, "PMI_Barrier"); }

  gni_post_descriptor_t put_of(std::uint64_t* value, bool event) const {
    gni_post_descriptor_t put{};
    put.type = GNI_POST_FMA_PUT;
    put.cq_mode = static_cast<std::uint16_t>(event ? GNI_CQMODE_REMOTE_EVENT : GNI_CQMODE_SILENT);
    put.local_addr = reinterpret_cast<std::uint64_t>(value);
    put.remote_addr = peer_.word;
    put.remote_mem_hndl = peer_.word_handle;
    put.length = 8;
    return put;
  }
  void post(gni_post_descriptor_t* put) {
    gni_return_t rc = GNI_RC_SUCCESS;
    while ((rc = GNI_PostFma(endpoint_, put)) == GNI_RC_ERROR_RESOURCE) {
    }
    must(rc == GNI_RC_SUCCESS, "PostFma");
  }
  gni_post_descriptor_t* take() {
    gni_cq_entry_t event = 0;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_CqGetEvent(sources_, &event)) == GNI_RC_NOT_DONE) {
    }
    must(rc == GNI_RC_SUCCESS, "CqGetEvent");
    gni_post_descriptor_t* done = nullptr;
    must(GNI_GetCompleted(sources_, event, &done) == GNI_RC_SUCCESS, "GetCompleted");
    return done;
  }
  void arrival() {
    gni_cq_entry_t event = 0;
    while (GNI_CqGetEvent(arrivals_, &event) == GNI_RC_NOT_DONE) {
    }
  }
  void wait_for(std::uint64_t value) {
    while (std::atomic_ref<std::uint64_t>(word_).load(std::memory_order_acquire) != value) {
    }
  }

  // Half a round trip, in ns.
  double ping_pong(bool event) {
    meet();
    const double begin = now_ns();
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      std::uint64_t value = next_ + i;
      auto put = put_of(&value, event);
      if (!measures()) event ? arrival() : wait_for(value);
      post(&put);
      if (measures()) event ? arrival() : wait_for(value);
    }
    const double end = now_ns();
    next_ += kRounds;
    meet();
    return (end - begin) / kRounds / 2;
  }
  // One operation of ours, in ns; the other side polls for nothing.
  double fetch(bool amo) {
    meet();
    double each = 0;
    if (measures()) {
      const double begin = now_ns();
      for (int i = 0; i < kRounds; ++i) {
        gni_post_descriptor_t get{};
        get.type = amo ? GNI_POST_AMO : GNI_POST_FMA_GET;
        get.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
        get.local_addr = reinterpret_cast<std::uint64_t>(local_.data());
        get.local_mem_hndl = local_handle_;
        get.remote_addr = peer_.block;
        get.remote_mem_hndl = peer_.block_handle;
        get.length = 8;
        if (amo) {
          get.amo_cmd = GNI_FMA_ATOMIC_FADD;
          get.first_operand = 1;
        }
        post(&get);
        (void)take();
      }
      each = (now_ns() - begin) / kRounds;
      std::uint64_t stop = next_ + 1;
      auto put = put_of(&stop, true);
      post(&put);
    } else {
      arrival();  // polls: what an event loop does
    }
    next_ += 1;
    meet();
    return each;
  }
  // Puts per second, or bytes per second.
  double stream(bool is_long) {
    meet();
    const int puts = is_long ? kLongPuts : kPuts;
    const int window = is_long ? kLongWindow : 64;
    double rate = 0;
    if (measures()) {
      std::vector<gni_post_descriptor_t> posts(static_cast<std::size_t>(window));
      const double begin = now_ns();
      for (int i = 0; i < puts + window; ++i) {
        gni_post_descriptor_t* const put = i < window ? &posts[static_cast<std::size_t>(i)] : take();
        if (i >= puts) continue;
        *put = {};
        put->type = is_long ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT;
        put->cq_mode = GNI_CQMODE_GLOBAL_EVENT;
        put->local_addr = reinterpret_cast<std::uint64_t>(local_.data());
        put->local_mem_hndl = local_handle_;
        put->remote_addr = peer_.block;
        put->remote_mem_hndl = peer_.block_handle;
        put->length = is_long ? kLong : 8;
        if (!is_long) {
          post(put);
          continue;
        }
        while (GNI_PostRdma(endpoint_, put) == GNI_RC_ERROR_RESOURCE) {
        }
      }
      const double seconds = (now_ns() - begin) * 1e-9;
      rate = puts * (is_long ? static_cast<double>(kLong) : 1.0) / seconds;
      std::uint64_t stop = next_ + 1;
      auto last = put_of(&stop, true);
      post(&last);
    } else {
      arrival();
    }
    next_ += 1;
    meet();
    return rate;
  }

 private:
  int rank_ = 0;
  gni_nic_handle_t nic_ = nullptr;
  gni_cq_handle_t sources_ = nullptr;
  gni_cq_handle_t arrivals_ = nullptr;
  gni_ep_handle_t endpoint_ = nullptr;
  gni_mem_handle_t local_handle_{};
  Card peer_{};
  std::uint64_t word_ = 0;
  std::uint64_t next_ = 0;
  std::vector<unsigned char> block_;
  std::vector<unsigned char> local_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  Pe pe;
  std::vector<double> rows[6];
  for (int turn = 0; turn < kTurns; ++turn) {
    rows[0].push_back(pe.ping_pong(true));
    rows[1].push_back(turn < 3 ? pe.ping_pong(false) : rows[1].back());
    rows[2].push_back(pe.fetch(false));
    rows[3].push_back(pe.fetch(true));
    rows[4].push_back(pe.stream(false));
    rows[5].push_back(pe.stream(true));
  }
  if (!pe.measures()) return 0;
  std::printf("# host_bench %s, medians of %d turns\n", orrery::bench::kRevision, kTurns);
  std::printf("%-12s %10.2f us\n", "put_event", median(rows[0]) * 1e-3);
  std::printf("%-12s %10.2f us\n", "put_memory", median(rows[1]) * 1e-3);
  std::printf("%-12s %10.2f us\n", "get", median(rows[2]) * 1e-3);
  std::printf("%-12s %10.2f us\n", "amo", median(rows[3]) * 1e-3);
  std::printf("%-12s %10.2f M/s\n", "put_rate", median(rows[4]) * 1e-6);
  std::printf("%-12s %10.2f GB/s\n", "put_1m", median(rows[5]) * 1e-9);
  return 0;
}
