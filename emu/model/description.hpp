// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// A machine as its file says it: named constants with their provenance, and how operations are put
// together from them. Data only; `compile()` (machine.hpp) turns it into prices. A constant can be
// changed here and the machine compiled again, which is how the reference table is tested.
#pragma once

#include "emu/model/operation.hpp"
#include "emu/model/routing.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::model {

enum class ConstantKind : std::uint8_t {
  duration,  // picoseconds
  cycles,    // thousandths of a NIC clock cycle
  rate,      // bytes a second; 0 = unlimited
  bytes,
  clock,  // Hz
  count,
  fraction,  // parts per million
  flag,      // 0 or 1
};

struct Constant {
  ConstantKind kind = ConstantKind::count;
  std::int64_t value = 0;
  std::string source;             // paper and place, or the reasoning where nothing is printed
  std::vector<std::string> rows;  // reference rows that the value consumed: read off or fitted to them
  bool fitted = false;            // calibrated (`fitted = [...]`), not printed as such
  std::int64_t error = -1;        // parts per million by which it may be off; -1: not known
};
std::string constant_text(const Constant& constant);
// "+-20 %"; "error not known".
std::string error_text(const Constant& constant);

// The parts of an operation, each a sum of stages.
enum class Part : std::uint8_t {
  cpu,           // the processor is busy, from the call on
  out,           // from the processor's last store to the first bit on the network
  in,            // from the last bit off the network to data visible in memory
  turn,          // at the target, before a response leaves
  back,          // at the source, from the response's arrival to completion
  remote_event,  // at the target, from data visible to an event visible in a queue
  local_event,   // at the source, from completion to an event visible in a queue
  serve,         // the target's unit is busy with one operation
  serial,        // the source's block engine is busy with its descriptor, before the data and in turn
  gap,           // shortest interval between two such operations of one NIC
  gap_add,       // added to the transfer time of each operation at the NIC
  beyond,        // added to `in` once a message is longer than `inline_limit`
  beyond_gap,    // added to the interval once a message is longer than `inline_limit`
};
inline constexpr int kParts = 13;
std::string_view part_name(Part part);
std::string_view part_meaning(Part part);

// interface: the host interface as far as the reverse direction leaves it; both_ways: as if that were busy;
// none: not at all.
enum class HostUse : std::uint8_t { interface, both_ways, none };

struct OpDescription {
  bool present = false;
  std::string lacks;  // why the machine has no such mechanism, and how it is priced
  std::string like;   // the operation it copies, if any
  Flow flow = Flow::put;
  HostUse host = HostUse::interface;
  std::array<std::vector<std::string>, kParts> parts;
  std::string inline_limit;        // name of a [limit] or empty
  std::string store;               // a [stage]: what the processor takes to store a byte; or empty
  std::string knee, below, above;  // curve: a [limit], and stages per byte up to it and past it
};

struct CollectiveDescription {
  bool present = false;
  std::string lacks;
  bool by_operation = false;  // rounds of an operation; else base + levels * per_level
  Op op = Op::message;
  std::vector<std::string> base, per_level, once;
  std::optional<Collective> after;  // its library waits for this one first: its time is added
};

// Software above the NIC that a program may bring with it (MPI): what it adds to operations where it is asked
// for by name.
struct LayerDescription {
  std::string what;
  std::vector<Op> ops;
  std::vector<std::string> cpu, in;  // stages, added to those parts of each
};

struct Description {
  std::string file;  // where it was read from, for messages
  std::string name, title, paper;
  Network network = Network::crossbar;
  std::map<std::string, Constant> constants;  // by dotted name: "link.hop", "stage.eject"
  std::array<OpDescription, kOps> ops;
  std::array<CollectiveDescription, kCollectives> collectives;
  std::map<std::string, LayerDescription> layers;
  std::vector<std::string> applied;  // names of layers that are part of the operations above

  // The constant, or nullptr.
  const Constant* find(std::string_view name) const {
    const auto it = constants.find(std::string(name));
    return it == constants.end() ? nullptr : &it->second;
  }
  // Its value, or `otherwise` where the file does not have it.
  std::int64_t value(std::string_view name, std::int64_t otherwise = 0) const {
    const Constant* c = find(name);
    return c == nullptr ? otherwise : c->value;
  }
};

// Adds a layer to the operations that it names. Outcomes: empty; what is wrong, in one line: no such layer,
// or it has been added before.
std::string add_layer(Description* description, std::string_view layer);

}  // namespace orrery::model
