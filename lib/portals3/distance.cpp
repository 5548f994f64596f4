// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// How far processes are from each other: PtlNIDist.
#include "emu/base/config.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/quote.hpp"
#include "lib/portals3/process.hpp"

#include <algorithm>
#include <memory>
#include <optional>

namespace orrery::portals3 {

namespace {

// The machine that the job pretends to run on; null: none.
const model::Machine* machine() {
  static const std::unique_ptr<model::Machine>* const one = [] {
    auto* const made = new std::unique_ptr<model::Machine>;
    const std::string name = config::text("ORRERY_MACHINE");
    if (!name.empty()) *made = std::move(model::build_machine(name).machine);
    return made;
  }();
  return one->get();
}

// The machine's node behind a NIC address; none: the launcher placed no PE there.
std::optional<std::uint32_t> node_of(const job::Placement& placement, std::uint32_t nic_address) {
  const auto found = std::find_if(placement.pes().begin(), placement.pes().end(),
                                  [&](const job::PePlace& pe) { return pe.nic_address == nic_address; });
  if (found == placement.pes().end()) return std::nullopt;
  return found->nid;
}

// Where both nodes are the launcher's and on the machine, its hops between them.
std::optional<std::uint32_t> hops_between(const job::Placement& placement, ptl_nid_t from, ptl_nid_t to) {
  const auto src = node_of(placement, from);
  const auto dst = node_of(placement, to);
  if (!src || !dst || machine() == nullptr) return std::nullopt;
  const model::Pricing& pricing = machine()->pricing;
  if (*src >= pricing.nodes || *dst >= pricing.nodes) return std::nullopt;
  return model::path_hops(pricing, *src, *dst);
}

}  // namespace

}  // namespace orrery::portals3

using namespace orrery::portals3;

extern "C" {

int PtlNIDist(ptl_handle_ni_t ni_handle, ptl_process_id_t process, unsigned long* distance) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (is_wild(process)) return PTL_PROCESS_INVALID;
  if (distance == nullptr) return PTL_SEGV;
  Process& own = Process::get();
  if (process.nid == own.own_nid()) {
    *distance = 0;
    return PTL_OK;
  }
  // Numbers that the program gave its nodes are none of the machine's.
  const auto hops = own.ranks.nids.empty()
                        ? hops_between(own.runtime().job().placement(), own.own_nid(), process.nid)
                        : std::nullopt;
  // Two NICs of one router are not one NIC.
  *distance = std::max(hops.value_or(1), std::uint32_t{1});
  return PTL_OK;
}

}  // extern "C"
