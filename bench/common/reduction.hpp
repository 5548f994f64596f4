// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "bench/common/session.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <sched.h>

namespace bench {

// A tree of collective engines over all PEs, at most 256: the PEs in groups below the engine of their first
// one, and the groups' engines below that of PE 0. One reduction at a time.
class Reduction {
 public:
  static constexpr int kGroup = 16;

  // Collective; ends the job where the device has no engine. `patience`: how often the result is looked for
  // before each further look first leaves the core to another. `group`: PEs in each group, from 1 to 16, and
  // at most 17 groups; where hosts have as many each, only one of each sends beyond its host.
  explicit Reduction(Session& session, int patience = 1000, int group = kGroup) : patience_(patience) {
    struct Card {
      std::uint32_t engine;
    } mine{0};
    const int rank = session.rank, size = session.size, leader = rank / group * group;
    gni_ce_handle_t engine = nullptr;
    if (rank == leader) {
      BENCH_REQUIRE(GNI_CeCreate(session.nic, &engine));
      BENCH_REQUIRE(GNI_CeGetId(engine, &mine.engine));
    }
    const auto cards = all_gather(mine, rank, size);
    const gni_cq_handle_t queue = session.queue(64);
    const auto edge = [&](int peer, std::uint32_t id, std::uint32_t child, gni_ce_child_t type) {
      const gni_ep_handle_t ep = session.endpoint(peer, queue);
      BENCH_REQUIRE(GNI_EpSetCeAttr(ep, id, child, type));
      return ep;
    };
    const auto engine_of = [&](int peer) { return cards[static_cast<std::size_t>(peer)].engine; };
    const auto child_of_root = [group](int peer) {
      return static_cast<std::uint32_t>(group + peer / group - 1);
    };
    if (rank == leader) {
      std::vector<gni_ep_handle_t> children;
      for (int pe = leader; pe < leader + group && pe < size; ++pe)
        children.push_back(edge(pe, UINT32_MAX, static_cast<std::uint32_t>(pe - leader), GNI_CE_CHILD_PE));
      gni_ep_handle_t parent = nullptr;
      if (rank == 0) {
        for (int pe = group; pe < size; pe += group)
          children.push_back(edge(pe, engine_of(pe), child_of_root(pe), GNI_CE_CHILD_VCE));
      } else {
        parent = edge(0, engine_of(0), child_of_root(rank), GNI_CE_CHILD_VCE);
      }
      BENCH_REQUIRE(GNI_CeConfigure(engine, children.data(), static_cast<std::uint32_t>(children.size()),
                                    parent, nullptr, GNI_CE_MODE_ROUND_NEAR));
    }
    up_ = edge(leader, engine_of(leader), static_cast<std::uint32_t>(rank - leader), GNI_CE_CHILD_PE);
    result_ = static_cast<gni_ce_result_t*>(std::aligned_alloc(4096, 4096));
    std::memset(result_, 0, 4096);
    std::memset(&post_, 0, sizeof post_);
    post_.type = GNI_POST_CE;
    post_.cq_mode = GNI_CQMODE_SILENT;
    post_.local_addr = reinterpret_cast<std::uint64_t>(result_);
    post_.local_mem_hndl = session.registered(result_, 4096);
    post_.ce_red_id = 1;
    PMI_Barrier();
  }

  // Blocks until the result of all PEs is there; returns it.
  std::uint64_t run(gni_ce_cmd_type_t command, std::uint64_t operand) {
    post_.ce_cmd = command;
    post_.first_operand = operand;
    require(GNI_PostFma(up_, &post_), "GNI_PostFma");
    gni_return_t rc = GNI_RC_SUCCESS;
    for (int spins = 0; (rc = GNI_CeCheckResult(result_, 1)) == GNI_RC_NOT_DONE; ++spins) {
      if (spins >= patience_) sched_yield();
    }
    require(rc, "GNI_CeCheckResult");
    return result_->result1;
  }

 private:
  const int patience_;
  gni_ep_handle_t up_ = nullptr;
  gni_ce_result_t* result_ = nullptr;
  gni_post_descriptor_t post_;
};

}  // namespace bench
