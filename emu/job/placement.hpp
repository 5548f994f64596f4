// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/job/host_directory.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::job {

// Which PE lives on which node of the pretended machine. A value; constant once made.
// Place file, one node a line, blank lines and text after # ignored; every PE exactly once:
//     node 5 pes 0-3,8          # node number (nid) 5; its NIC has the address 5
//     node 7 nic 0x12 pes 4-7   # another NIC address, decimal or 0x hexadecimal
// Node numbers and NIC addresses have 18 bits and are not repeated.
class Placement {
 public:
  static constexpr std::uint32_t kMaxAddress = (1u << 18) - 1;

  Placement() = default;

  // `pes` PEs on `nodes` nodes in blocks, as evenly as possible, nids and NIC addresses from `first_nid` on.
  // Errors: invalid_param (a number is 0 or above HostDirectory::kMaxPes, or more nodes than PEs); the
  // reason is in `why`.
  static Result<Placement> blocks(std::uint32_t pes, std::uint32_t nodes, std::string* why,
                                  std::uint32_t first_nid = 1);
  // Parses a place file for `pes` PEs. Errors: invalid_param; `why` has the line and what is accepted there.
  static Result<Placement> parse(std::string_view text, std::uint32_t pes, std::string* why);
  // From the value of PMI_process_mapping, "(vector,(0,2,2))". Errors: corrupt.
  static Result<Placement> from_process_mapping(std::string_view text, std::uint32_t pes,
                                                std::uint32_t first_nid = 1);
  // What the launcher wrote into the directory; empty when it says nothing.
  static Placement of(const HostDirectory& directory);
  // One place per PE. REQUIRES: node_index counts up from 0 in the order of first mention.
  explicit Placement(std::vector<PePlace> pes);

  std::uint32_t pe_count() const { return static_cast<std::uint32_t>(pes_.size()); }
  std::uint32_t node_count() const { return node_count_; }
  // REQUIRES: pe < pe_count().
  const PePlace& of_pe(std::uint32_t pe) const { return pes_[pe]; }
  std::uint32_t nid(std::uint32_t pe) const { return pes_[pe].nid; }
  std::uint32_t nic_address(std::uint32_t pe) const { return pes_[pe].nic_address; }
  // PEs on the same node as `pe`, itself included, in rank order.
  std::vector<std::uint32_t> clique_of(std::uint32_t pe) const;
  const std::vector<PePlace>& pes() const { return pes_; }
  // Value for PMI_process_mapping.
  std::string process_mapping() const;

 private:
  std::vector<PePlace> pes_;
  std::uint32_t node_count_ = 0;
};

}  // namespace orrery::job
