// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What uGNI costs between two PEs that reach each other by the wire between hosts. One table, medians of
// turns, ratios too:
//   put_event    8 B put, half round trip, the target polls an event queue
//   put_memory   8 B put, half round trip, the target polls its memory and calls nothing
//   get          8 B get, until its event is there
//   amo          8 B fetching add, likewise
//   put_rate     8 B puts with events, 64 under way
//   put_1m       1 MiB puts with events, 8 under way
// and in turns with them, between the same two processes, what it is held against:
//   tcp          8 B by a bare TCP connection, both sides spinning, half round trip
//   wake         how long a thread that sleeps in epoll_wait takes to answer by such a connection, less tcp
//   fi           8 B messages of bare libfabric by the wire's provider, half round trip
//   fi_frame     the same with messages as long as a put's frame, summed, tagged and checked as those are
//   fi_1m        1 MiB messages of bare libfabric, GB/s
//   fi_1m_copy   the same, summed at both ends and copied out of the receive buffer
//   put_sleeper  8 B put with event, the target's program sleeps: p50 and p99 until the event is here
//   idle_cpu     processor time of a PE whose program sleeps for a second
// usage: ORRERY_WIRE=ofi orrery run -n 2 host_bench [ADDRESS [ROW...]], or under any launcher on two hosts.
// ADDRESS: where PE 0 listens for the bare connection; 127.0.0.1.
#include "bench/common/clock.hpp"
#include "bench/hosts/bare.hpp"
#include "bench/revision.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gni_pub.h>
#include <pmi.h>

namespace {

using Care = bench::BareFabric::Care;
using bench::now_ns;

constexpr int kTurns = 9;
constexpr int kRounds = 2000;
constexpr int kPuts = 100'000;
constexpr int kLongPuts = 400;
constexpr std::size_t kLong = std::size_t{1} << 20;
constexpr int kLongWindow = 8;
constexpr int kSleepyTurns = 3;
constexpr int kSleepyRounds = 150;
constexpr std::int64_t kPauseNs = 2'000'000;

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

  int rank() const { return rank_; }
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
  // Puts to a PE whose program sleeps until the last one is done: ns until each one's event is here.
  std::vector<double> wake() {
    meet();
    std::vector<double> all;
    for (int i = 0; measures() && i < kSleepyRounds; ++i) {
      const timespec pause{0, kPauseNs};
      nanosleep(&pause, nullptr);
      const double begin = now_ns();
      std::uint64_t value = 0;
      auto put = put_of(&value, false);
      put.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
      put.remote_addr = peer_.block;
      put.remote_mem_hndl = peer_.block_handle;
      post(&put);
      (void)take();
      all.push_back(now_ns() - begin);
    }
    meet();  // the other one sleeps here, in read(2)
    return all;
  }
  // Processor time in ns that this process uses while its program sleeps for a second.
  double idle_cpu() {
    meet();
    const timespec settle{0, 100'000'000};
    nanosleep(&settle, nullptr);
    timespec before{};
    timespec after{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    const timespec second{1, 0};
    nanosleep(&second, nullptr);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    meet();
    return static_cast<double>(after.tv_sec - before.tv_sec) * 1e9 +
           static_cast<double>(after.tv_nsec - before.tv_nsec);
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

using bench::median;
using bench::percentile;

// What the peer needs for the bare connections.
struct BareCard {
  int rank;
  std::uint16_t port;
  std::uint16_t bytes;
  std::byte address[256];
};

struct Bare {
  bench::BareTcp tcp;
  bench::BareFabric fabric;

  Bare(const Pe& pe, const std::string& address)
      : fabric(of_environment("ORRERY_PROVIDER", "auto"), of_environment("ORRERY_INTERFACE", "")) {
    BareCard mine{};
    mine.rank = pe.rank();
    if (pe.measures()) mine.port = tcp.listen_on(address);
    const std::vector<std::byte> name = fabric.address();
    must(name.size() <= sizeof mine.address, "a short libfabric address");
    mine.bytes = static_cast<std::uint16_t>(name.size());
    std::copy(name.begin(), name.end(), mine.address);
    BareCard cards[2];
    must(PMI_Allgather(&mine, cards, sizeof mine) == PMI_SUCCESS, "PMI_Allgather");
    const BareCard& peer = cards[0].rank == mine.rank ? cards[1] : cards[0];
    if (pe.measures())
      tcp.accept_one();
    else
      tcp.connect_to(address, peer.port);
    fabric.connect_to({peer.address, peer.address + peer.bytes});
  }

 private:
  static std::string of_environment(const char* name, const char* otherwise) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != 0 ? value : otherwise;
  }
};

class Rows {
 public:
  Rows(int argc, char** argv) {
    for (int i = 2; i < argc; ++i) chosen_.emplace_back(argv[i]);
  }
  bool wants(const char* row) const {
    return chosen_.empty() || std::find(chosen_.begin(), chosen_.end(), row) != chosen_.end();
  }
  template <typename Measure>
  void turn(const char* row, Measure measure) {
    if (wants(row)) values_[row].push_back(measure());
  }
  double of(const char* row) const {
    const auto found = values_.find(row);
    return found == values_.end() ? 0 : median(found->second);
  }
  // `scale` to the unit; `against` (null: nothing): the row that it is held against, turn by turn, since the
  // host's speed changes between turns, and the most or least it may be of it.
  void print(const char* row, double scale, const char* unit, const char* against = nullptr,
             const char* limit = "") const {
    if (!wants(row)) return;
    std::printf("%-12s %10.2f %-5s", row, of(row) * scale, unit);
    if (against != nullptr && wants(against))
      std::printf("  %5.2f x %s%s", ratio(row, against), against, limit);
    std::printf("\n");
  }

 private:
  // Median of what the one is of the other in each turn.
  double ratio(const char* row, const char* against) const {
    const std::vector<double>& above = values_.at(row);
    const std::vector<double>& below = values_.at(against);
    std::vector<double> each(above.size());
    std::transform(above.begin(), above.end(), below.begin(), each.begin(), std::divides<>());
    return median(each);
  }

  std::vector<std::string> chosen_;
  std::map<std::string, std::vector<double>> values_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    const bool help = std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0;
    std::fprintf(
        help ? stdout : stderr,
        "usage: ORRERY_WIRE=ofi orrery run -n 2 host_bench [ADDRESS [ROW...]]\n"
        "or under any launcher on two hosts. ADDRESS: where PE 0 listens for the bare connection "
        "(default 127.0.0.1)\n"
        "ROW: tcp, fi, fi_frame, put_event, put_memory, get, amo, put_rate, fi_1m, fi_1m_copy, put_1m, wake, "
        "put_sleeper, idle_cpu (default all)\n");
    return help ? 0 : 2;
  }
  const std::string address = argc > 1 ? argv[1] : "127.0.0.1";
  Pe pe;
  Bare bare(pe, address);
  Rows rows(argc, argv);
  std::vector<double> raw_sleeper;
  std::vector<double> sleeper;
  for (int turn = 0; turn < kTurns; ++turn) {
    pe.meet();
    rows.turn("tcp", [&] { return bare.tcp.half_ns(pe.rank(), kRounds); });
    rows.turn("fi", [&] { return bare.fabric.half_ns(pe.rank(), kRounds, Care::none); });
    rows.turn("fi_frame", [&] { return bare.fabric.half_ns(pe.rank(), kRounds, Care::check); });
    rows.turn("put_event", [&] { return pe.ping_pong(true); });
    rows.turn("put_memory", [&] { return pe.ping_pong(false); });
    rows.turn("get", [&] { return pe.fetch(false); });
    rows.turn("amo", [&] { return pe.fetch(true); });
    rows.turn("put_rate", [&] { return pe.stream(false); });
    rows.turn("put_1m", [&] { return pe.stream(true); });
    pe.meet();
    rows.turn("fi_1m", [&] { return bare.fabric.stream(pe.rank(), kLongPuts, Care::none); });
    rows.turn("fi_1m_copy", [&] { return bare.fabric.stream(pe.rank(), kLongPuts, Care::check_copy); });
    if (turn >= kSleepyTurns) continue;
    if (rows.wants("wake")) {
      const auto more = bare.tcp.sleeper_ns(pe.rank(), kSleepyRounds, kPauseNs);
      raw_sleeper.insert(raw_sleeper.end(), more.begin(), more.end());
    }
    if (rows.wants("put_sleeper")) {
      const auto more = pe.wake();
      sleeper.insert(sleeper.end(), more.begin(), more.end());
    }
  }
  const double idle = rows.wants("idle_cpu") ? pe.idle_cpu() : 0;
  if (!pe.measures()) return 0;
  const double tcp = rows.of("tcp");
  std::printf("# host_bench %s, provider %s, medians of %d turns\n", orrery::bench::kRevision,
              bare.fabric.provider().c_str(), kTurns);
  rows.print("tcp", 1e-3, "us");
  rows.print("fi", 1e-3, "us", "tcp");
  rows.print("fi_frame", 1e-3, "us", "fi");
  rows.print("put_event", 1e-3, "us", "fi", " (at most 1.15)");
  rows.print("put_event", 1e-3, "us", "tcp", " (at most 2)");
  rows.print("put_memory", 1e-3, "us", "fi");
  rows.print("get", 1e-3, "us", "fi", " (at most 2.2)");
  rows.print("amo", 1e-3, "us", "fi", " (at most 2.2)");
  rows.print("put_rate", 1e-6, "M/s");
  rows.print("fi_1m", 1e-9, "GB/s");
  rows.print("fi_1m_copy", 1e-9, "GB/s", "fi_1m");
  rows.print("put_1m", 1e-9, "GB/s", "fi_1m", " (at least 0.95)");
  // Its round trip is the wake and twice tcp.
  const double wake = percentile(raw_sleeper, 0.5) - 2 * tcp;
  if (!raw_sleeper.empty())
    std::printf("%-12s %10.2f us     p99 %.2f us\n", "wake", wake * 1e-3,
                (percentile(raw_sleeper, 0.99) - 2 * tcp) * 1e-3);
  if (!sleeper.empty()) {
    std::printf("%-12s %10.2f us   ", "put_sleeper", percentile(sleeper, 0.5) * 1e-3);
    if (!raw_sleeper.empty() && tcp > 0)
      std::printf("  %5.2f x (tcp + wake) (at most 1.5)", percentile(sleeper, 0.5) / (tcp + wake));
    std::printf("  p99 %.2f us\n", percentile(sleeper, 0.99) * 1e-3);
  }
  if (rows.wants("idle_cpu"))
    std::printf("%-12s %10.2f us of processor in 1 s of sleep\n", "idle_cpu", idle * 1e-3);
  return 0;
}
