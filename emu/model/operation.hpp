// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What can be priced: the one-sided and two-sided operations of all supported APIs, reduced to what the
// hardware does, and the collectives. Pure tables.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace orrery::model {

enum class Op : std::uint8_t {
  fma_put,  // processor stores through a window
  fma_get,
  launch_put,  // single-word put issued by one wide store (FMA Launch)
  bte_put,     // block engine, no processor involved after the start
  bte_get,
  send,             // to a buffer that the target posted; complete when sent (unreliable, unordered)
  send_reliable,    // the same, acknowledged and in order
  message,          // small two-sided message with its library's software (mailboxes, MPI-sized)
  matched_put,      // matched at the target by tag, through its kernel where the machine does so
  matched_put_ack,  // the same, with an acknowledgement event
  matched_get,
  amo,        // atomic without result, its variable in the atomic unit's cache
  amo_miss,   // the same, variable in host memory
  fetch_amo,  // atomic with result
  fetch_amo_miss,
  cq_write,  // an event word written into a remote queue
};
inline constexpr int kOps = 16;

// Which way data flows and what completes the operation at its source.
enum class Flow : std::uint8_t {
  put,     // data goes; complete when the response is back
  get,     // request goes, data comes back
  posted,  // data goes; complete when it has left
};

enum class Collective : std::uint8_t { hardware_barrier, software_barrier, broadcast, allreduce };
inline constexpr int kCollectives = 4;

std::string_view op_name(Op op);
std::string_view flow_name(Flow flow);
std::string_view collective_name(Collective collective);
// Short words that a person types ("put", "get", "amo") besides the full names.
std::optional<Op> op_by_name(std::string_view name);
std::optional<Flow> flow_by_name(std::string_view name);
std::optional<Collective> collective_by_name(std::string_view name);
std::string_view op_meaning(Op op);

}  // namespace orrery::model
