// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// One PE of a job in which one PE is killed under load: `kill_worker <seed>`. The seed chooses which PE dies
// and when. The others put to and get from all until they hear that the victim is gone; then everything
// that they have outstanding must end, and what they exchange among each other must still arrive.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include <gni_pub.h>
#include <pmi.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr std::size_t kBytes = 64 << 10;
constexpr std::size_t kFlags = 32 << 10;  // where in a window the last words lie, one per PE
constexpr std::uint32_t kDepth = 64;
constexpr double kPatience = 20;  // seconds until something that must end is called a hang

[[noreturn]] void give_up(int rank, const char* what, int code = 1) {
  std::fprintf(stderr, "PE %d: %s\n", rank, what);
  _exit(code);
}

void require(int rank, gni_return_t rc, const char* call) {
  if (rc != GNI_RC_SUCCESS) give_up(rank, call);
}

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Card {
  int rank;
  std::uint32_t nic_address;
  std::uint64_t window;
  gni_mem_handle_t handle;
};

// The victim's end. A timer decides, so that it is anywhere in what it does.
void die(int) { kill(getpid(), SIGKILL); }

class Worker {
 public:
  Worker(int rank, int size) : rank_(rank), done_with_(static_cast<std::size_t>(size)) {
    const auto ptag = static_cast<std::uint8_t>(std::atoi(std::getenv("PMI_GNI_PTAG")));
    const auto cookie = static_cast<std::uint32_t>(std::strtoul(std::getenv("PMI_GNI_COOKIE"), nullptr, 10));
    gni_cdm_handle_t cdm = nullptr;
    std::uint32_t address = 0;
    require(rank,
            GNI_CdmCreate(static_cast<std::uint32_t>(rank), ptag, cookie, GNI_CDM_MODE_ERR_NO_KILL, &cdm),
            "GNI_CdmCreate");
    require(rank, GNI_CdmAttach(cdm, 0, &address, &nic_), "GNI_CdmAttach");
    require(rank, GNI_CqCreate(nic_, kDepth, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &queue_), "GNI_CqCreate");
    require(rank, GNI_CqCreate(nic_, 4096, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &arrivals_), "GNI_CqCreate");
    window_ = static_cast<std::uint8_t*>(std::aligned_alloc(4096, kBytes));
    local_ = static_cast<std::uint8_t*>(std::aligned_alloc(4096, kBytes));
    std::memset(window_, 0, kBytes);
    std::memset(local_, 1, kBytes);
    Card mine{rank, address, reinterpret_cast<std::uint64_t>(window_), {}};
    require(
        rank,
        GNI_MemRegister(nic_, mine.window, kBytes, arrivals_, GNI_MEM_READWRITE, UINT32_MAX, &mine.handle),
        "GNI_MemRegister");
    require(rank,
            GNI_MemRegister(nic_, reinterpret_cast<std::uint64_t>(local_), kBytes, nullptr, GNI_MEM_READWRITE,
                            UINT32_MAX, &local_handle_),
            "GNI_MemRegister");
    cards_.resize(static_cast<std::size_t>(size));
    std::vector<Card> any_order(cards_.size());
    if (PMI_Allgather(&mine, any_order.data(), sizeof mine) != PMI_SUCCESS) give_up(rank, "PMI_Allgather");
    for (const Card& card : any_order) cards_[static_cast<std::size_t>(card.rank)] = card;
    for (int peer = 0; peer < size; ++peer) {
      gni_ep_handle_t ep = nullptr;
      require(rank, GNI_EpCreate(nic_, queue_, &ep), "GNI_EpCreate");
      require(rank,
              GNI_EpBind(ep, cards_[static_cast<std::size_t>(peer)].nic_address,
                         static_cast<std::uint32_t>(peer)),
              "GNI_EpBind");
      endpoints_.push_back(ep);
    }
    pool_.resize(kDepth);
    for (auto& operation : pool_) free_.push_back(&operation);
  }

  // Posts one operation to `peer`, if there is room. False: the peer cannot be reached.
  bool post(int peer, std::mt19937_64& random) {
    if (free_.empty()) return true;
    Operation& operation = *free_.back();
    operation = {};
    operation.peer = peer;
    gni_post_descriptor_t& pd = operation.descriptor;
    const bool block = random() % 4 == 0;
    const bool put = random() % 3 != 0;
    pd.type =
        block ? (put ? GNI_POST_RDMA_PUT : GNI_POST_RDMA_GET) : (put ? GNI_POST_FMA_PUT : GNI_POST_FMA_GET);
    pd.cq_mode = GNI_CQMODE_GLOBAL_EVENT | (random() % 2 == 0 && put ? GNI_CQMODE_REMOTE_EVENT : 0);
    pd.dlvr_mode = GNI_DLVMODE_PERFORMANCE;
    pd.length = random() % 8 == 0 ? 16384 : 8 * (1 + random() % 16);
    pd.local_addr = reinterpret_cast<std::uint64_t>(local_);
    pd.remote_addr = cards_[static_cast<std::size_t>(peer)].window;
    pd.remote_mem_hndl = cards_[static_cast<std::size_t>(peer)].handle;
    pd.local_mem_hndl = local_handle_;
    gni_ep_handle_t ep = endpoints_[static_cast<std::size_t>(peer)];
    const gni_return_t rc = block ? GNI_PostRdma(ep, &pd) : GNI_PostFma(ep, &pd);
    if (rc == GNI_RC_ERROR_RESOURCE) return true;
    if (rc != GNI_RC_SUCCESS) {
      if (rc != GNI_RC_TRANSACTION_ERROR && rc != GNI_RC_TIMEOUT && rc != GNI_RC_NO_MATCH)
        give_up(rank_, gni_err_str[rc]);
      return false;
    }
    free_.pop_back();
    return true;
  }

  // Collects what has ended. Returns how much.
  int collect(int may_fail) {
    int collected = 0;
    gni_cq_entry_t event = 0;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_CqGetEvent(queue_, &event)) != GNI_RC_NOT_DONE) {
      if (rc != GNI_RC_SUCCESS && rc != GNI_RC_TRANSACTION_ERROR) give_up(rank_, "GNI_CqGetEvent");
      gni_post_descriptor_t* done = nullptr;
      const gni_return_t got = GNI_GetCompleted(queue_, event, &done);
      if (done == nullptr || (got != GNI_RC_SUCCESS && got != GNI_RC_TRANSACTION_ERROR)) {
        give_up(rank_, "GNI_GetCompleted");
      }
      auto* operation = reinterpret_cast<Operation*>(done);
      if (rc == GNI_RC_TRANSACTION_ERROR) {
        if (operation->peer != may_fail) give_up(rank_, "an operation between the living failed");
        done_with_[static_cast<std::size_t>(operation->peer)] = true;
      }
      free_.push_back(operation);
      ++collected;
    }
    while (GNI_CqGetEvent(arrivals_, &event) == GNI_RC_SUCCESS) {
    }
    return collected;
  }

  // A word of `peer`'s window is ours: tells it that we post to it no more.
  void say_done(int peer) {
    Operation& operation = *free_.back();
    free_.pop_back();
    operation = {};
    operation.peer = peer;
    gni_post_descriptor_t& pd = operation.descriptor;
    pd.type = GNI_POST_FMA_PUT;
    pd.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    pd.length = 8;
    pd.local_addr = reinterpret_cast<std::uint64_t>(local_ + kFlags);
    pd.remote_addr =
        cards_[static_cast<std::size_t>(peer)].window + kFlags + 8 * static_cast<std::uint64_t>(rank_);
    pd.remote_mem_hndl = cards_[static_cast<std::size_t>(peer)].handle;
    require(rank_, GNI_PostFma(endpoints_[static_cast<std::size_t>(peer)], &pd), "GNI_PostFma");
  }
  bool is_done(int peer) const {
    auto* flag = reinterpret_cast<std::uint64_t*>(window_ + kFlags) + peer;
    return std::atomic_ref<std::uint64_t>(*flag).load(std::memory_order_acquire) != 0;
  }

  bool heard_of(int peer) const { return done_with_[static_cast<std::size_t>(peer)]; }
  void heard(int peer) { done_with_[static_cast<std::size_t>(peer)] = true; }
  bool all_ended() const { return free_.size() == pool_.size(); }

 private:
  struct Operation {
    gni_post_descriptor_t descriptor;  // first: a descriptor's address is its operation's
    int peer;
  };

  const int rank_;
  gni_nic_handle_t nic_ = nullptr;
  gni_cq_handle_t queue_ = nullptr, arrivals_ = nullptr;
  std::uint8_t *window_ = nullptr, *local_ = nullptr;
  gni_mem_handle_t local_handle_{};
  std::vector<Card> cards_;
  std::vector<gni_ep_handle_t> endpoints_;
  std::vector<Operation> pool_;
  std::vector<Operation*> free_;
  std::vector<bool> done_with_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  int spawned = 0, rank = 0, size = 0;
  if (PMI_Init(&spawned) != PMI_SUCCESS) give_up(0, "PMI_Init", 2);
  PMI_Get_rank(&rank);
  PMI_Get_size(&size);
  if (size < 3) give_up(rank, "at least 3 PEs are needed", 2);
  std::mt19937_64 random(seed);
  const int victim = static_cast<int>(random() % static_cast<std::uint64_t>(size));
  const auto microseconds = static_cast<suseconds_t>(1 + random() % 20'000);
  Worker worker(rank, size);
  PMI_Barrier();
  if (rank == victim) {
    signal(SIGALRM, die);
    const itimerval when{{0, 0}, {0, microseconds}};
    setitimer(ITIMER_REAL, &when, nullptr);
  }

  random.seed(seed * 1000 + static_cast<std::uint64_t>(rank));
  const double limit = now() + kPatience;
  while (!worker.heard_of(victim)) {
    if (now() > limit) give_up(rank, "no error said that the victim is dead");
    for (int i = 0; i < 8; ++i) {
      const int peer = static_cast<int>(random() % static_cast<std::uint64_t>(size));
      if (!worker.post(peer, random)) {
        if (peer != victim) give_up(rank, "a living PE cannot be reached");
        worker.heard(victim);
      }
    }
    if (worker.collect(victim) == 0) sched_yield();
  }
  while (!worker.all_ended()) {
    if (now() > limit) give_up(rank, "an outstanding operation never ended");
    if (worker.collect(victim) == 0) sched_yield();
  }
  // The living go on among themselves. No PE leaves before all have said that they are done: one that exits
  // is as good as dead.
  for (int i = 0; i < 50; ++i) {
    const int peer = static_cast<int>(random() % static_cast<std::uint64_t>(size));
    if (peer != victim && !worker.post(peer, random)) give_up(rank, "a living PE cannot be reached");
    worker.collect(victim);
  }
  const auto wait_for = [&](auto done, const char* what) {
    while (!done()) {
      if (now() > limit) give_up(rank, what);
      if (worker.collect(victim) == 0) sched_yield();
    }
  };
  wait_for([&] { return worker.all_ended(); }, "an operation after the death never ended");
  for (int peer = 0; peer < size; ++peer) {
    if (peer != victim && peer != rank) worker.say_done(peer);
  }
  wait_for([&] { return worker.all_ended(); }, "a last put never ended");
  for (int peer = 0; peer < size; ++peer) {
    if (peer != victim && peer != rank)
      wait_for([&] { return worker.is_done(peer); }, "another PE did not say that it is done");
  }
  std::printf("PE %d went on\n", rank);
  std::fflush(stdout);
  _exit(0);
}
