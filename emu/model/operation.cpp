// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/operation.hpp"

namespace orrery::model {

namespace {

struct OpWords {
  std::string_view name, meaning;
};

constexpr std::array<OpWords, kOps> kOpWords{{
    {"fma_put", "put by processor stores through a window"},
    {"fma_get", "get by a control word stored into a window"},
    {"launch_put", "single-word put by one wide store"},
    {"bte_put", "put by the block transfer engine"},
    {"bte_get", "get by the block transfer engine"},
    {"send", "message to a posted buffer, unreliable and unordered"},
    {"send_reliable", "message to a posted buffer, acknowledged and ordered"},
    {"message", "small two-sided message with its library's software"},
    {"matched_put", "put matched by tag at the target"},
    {"matched_put_ack", "put matched by tag at the target, acknowledged"},
    {"matched_get", "get matched by tag at the target"},
    {"amo", "atomic without result on a cached variable"},
    {"amo_miss", "atomic without result on a variable in host memory"},
    {"fetch_amo", "atomic with result on a cached variable"},
    {"fetch_amo_miss", "atomic with result on a variable in host memory"},
    {"cq_write", "event word written into a remote queue"},
}};
constexpr std::array<std::string_view, 3> kFlowNames{"put", "get", "posted"};
constexpr std::array<std::string_view, kCollectives> kCollectiveNames{"hardware_barrier", "software_barrier",
                                                                      "broadcast", "allreduce"};

}  // namespace

std::string_view op_name(Op op) { return kOpWords[static_cast<std::size_t>(op)].name; }
std::string_view op_meaning(Op op) { return kOpWords[static_cast<std::size_t>(op)].meaning; }
std::string_view flow_name(Flow flow) { return kFlowNames[static_cast<std::size_t>(flow)]; }
std::string_view collective_name(Collective c) { return kCollectiveNames[static_cast<std::size_t>(c)]; }

std::optional<Op> op_by_name(std::string_view name) {
  if (name == "put") return Op::fma_put;
  if (name == "get") return Op::fma_get;
  for (int i = 0; i < kOps; ++i) {
    if (kOpWords[static_cast<std::size_t>(i)].name == name) return static_cast<Op>(i);
  }
  return std::nullopt;
}

std::optional<Flow> flow_by_name(std::string_view name) {
  for (std::size_t i = 0; i < kFlowNames.size(); ++i) {
    if (kFlowNames[i] == name) return static_cast<Flow>(i);
  }
  return std::nullopt;
}

std::optional<Collective> collective_by_name(std::string_view name) {
  for (std::size_t i = 0; i < kCollectiveNames.size(); ++i) {
    if (kCollectiveNames[i] == name) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

}  // namespace orrery::model
