// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A barrier of all PEs of several hosts, with more PEs than cores: a waiting PE yields. One table, medians:
//   tcp    bare TCP connections: each PE tells PE 0, and PE 0 tells all
//   puts   the same by 8 B puts with events
//   ce     by the collective engine, each host's PEs below an engine of theirs
//   pmi    by the launcher: PMI_Barrier
// usage: host_barrier [ADDRESS], under any launcher on the hosts. On two pretended ones:
//   tests/hosts/two_hosts.sh tests/hosts/launch.sh hydra 8 PATH/host_barrier 10.77.0.1
//
// ADDRESS: where PE 0 listens for the bare connections; 127.0.0.1.
#include "bench/common/clock.hpp"
#include "bench/common/reduction.hpp"
#include "bench/common/session.hpp"
#include "bench/hosts/bare.hpp"
#include "bench/revision.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <sched.h>

namespace {

constexpr int kTurns = 9;
constexpr int kRounds = 200;
constexpr int kAtMost = 2;

class TcpBarrier {
 public:
  TcpBarrier(const bench::Session& session, const std::string& address)
      : connections_(session.rank == 0 ? static_cast<std::size_t>(session.size) - 1 : 1),
        root_(session.rank == 0) {
    std::vector<std::uint16_t> ports(256);
    for (std::size_t i = 0; root_ && i < connections_.size(); ++i)
      ports[i] = connections_[i].listen_on(address);
    struct Ports {
      std::uint16_t of[256];
    } mine;
    std::memcpy(mine.of, ports.data(), sizeof mine);
    const auto all = bench::all_gather(mine, session.rank, session.size);
    if (!root_) connections_[0].connect_to(address, all[0].of[session.rank - 1]);
    for (std::size_t i = 0; root_ && i < connections_.size(); ++i) connections_[i].accept_one();
  }

  void wait() {
    if (!root_) connections_[0].send8();
    for (bench::BareTcp& connection : connections_)
      while (!connection.take8()) sched_yield();
    if (!root_) return;
    for (bench::BareTcp& connection : connections_) connection.send8();
  }

 private:
  std::vector<bench::BareTcp> connections_;
  bool root_;
};

class PutBarrier {
 public:
  explicit PutBarrier(bench::Session& session)
      : root_(session.rank == 0), sources_(session.queue(64)), arrivals_(session.queue(4096)) {
    words_ = static_cast<std::uint64_t*>(std::aligned_alloc(4096, kWords * sizeof(std::uint64_t)));
    std::memset(words_, 0, kWords * sizeof(std::uint64_t));
    const bench::Window mine{reinterpret_cast<std::uint64_t>(words_),
                             session.registered(words_, kWords * sizeof(std::uint64_t), arrivals_)};
    const auto windows = bench::all_gather(mine, session.rank, session.size);
    for (int peer = 0; peer < session.size; ++peer) {
      if (peer == session.rank || (!root_ && peer != 0)) continue;
      const auto word = static_cast<std::uint64_t>(root_ ? 0 : session.rank);
      puts_.push_back({session.endpoint(peer, sources_),
                       bench::put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_REMOTE_EVENT, &number_,
                                             windows[static_cast<std::size_t>(peer)], word * sizeof(number_),
                                             sizeof number_)});
      awaited_.push_back(words_ + (root_ ? peer : 0));
    }
    PMI_Barrier();
  }

  void wait() {
    ++number_;
    if (!root_) tell();
    for (const volatile std::uint64_t* word : awaited_) {
      while (*word < number_) {
        gni_cq_entry_t event = 0;
        while (GNI_CqGetEvent(arrivals_, &event) == GNI_RC_SUCCESS) {
        }
        if (*word < number_) sched_yield();
      }
    }
    if (root_) tell();
  }

 private:
  struct Put {
    gni_ep_handle_t ep;
    gni_post_descriptor_t descriptor;
  };
  static constexpr std::size_t kWords = 512;

  void tell() {
    for (Put& put : puts_) {
      gni_return_t rc = GNI_RC_SUCCESS;
      while ((rc = GNI_PostFma(put.ep, &put.descriptor)) == GNI_RC_ERROR_RESOURCE) sched_yield();
      bench::require(rc, "GNI_PostFma");
    }
  }

  bool root_;
  gni_cq_handle_t sources_, arrivals_;
  std::uint64_t* words_ = nullptr;
  std::vector<Put> puts_;
  std::vector<const volatile std::uint64_t*> awaited_;
  alignas(8) std::uint64_t number_ = 0;
};

// Microseconds a barrier.
template <typename Barrier>
double time_of(Barrier&& barrier) {
  PMI_Barrier();
  barrier();
  const double begin = bench::now_ns();
  for (int i = 0; i < kRounds; ++i) barrier();
  return (bench::now_ns() - begin) / kRounds * 1e-3;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Session session;
  if (session.size < 2 || session.size > 256) {
    std::fprintf(stderr, "host_barrier: a job of %d PEs: expected 2 to 256\n", session.size);
    PMI_Abort(2, "size");
    return 2;
  }
  TcpBarrier bare(session, argc > 1 ? argv[1] : "127.0.0.1");
  PutBarrier puts(session);
  int here = 0;
  PMI_Get_clique_size(&here);
  bench::Reduction engine(session, 0, std::clamp(here, 1, bench::Reduction::kGroup));
  std::vector<double> tcp, by_puts, by_engine, by_launcher;
  for (int turn = 0; turn < kTurns; ++turn) {
    tcp.push_back(time_of([&] { bare.wait(); }));
    by_puts.push_back(time_of([&] { puts.wait(); }));
    by_engine.push_back(time_of([&] { (void)engine.run(GNI_FMA_CE_AND, 0); }));
    by_launcher.push_back(time_of([] { PMI_Barrier(); }));
  }
  PMI_Barrier();
  if (session.rank != 0) return 0;
  const double limit = bench::median(tcp);
  std::printf("# host_barrier %s, %d PEs, medians of %d turns\n", orrery::bench::kRevision, session.size,
              kTurns);
  const auto row = [&](const char* name, std::vector<double>& samples, const char* note) {
    std::printf("%-6s %10.2f us %7.2f x tcp%s\n", name, bench::median(samples),
                bench::median(samples) / limit, note);
  };
  row("tcp", tcp, "");
  const std::string note = " (at most " + std::to_string(kAtMost) + ")";
  row("puts", by_puts, note.c_str());
  row("ce", by_engine, note.c_str());
  row("pmi", by_launcher, "");
  return 0;
}
