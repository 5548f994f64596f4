// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// A simulation in words: machine, shape, workload, numbers. The composition root of the simulator: it
// chooses among the routers.
#pragma once

#include "emu/sim/scene/result.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <string>

namespace orrery::sim {

struct RunSpec {
  std::string machine = "bluegene-l";
  std::string nodes;                  // "8x8x8"; groups ("8") for aries, nodes for asci-q
  std::string workload = "alltoall";  // workload_names()
  std::string preset;                 // preset_names(machine); empty: the machine as built
  std::string routing;                // machines with a choice; empty: its default
  std::uint64_t bytes = 0;            // message or packet payload; 0: the largest of a packet
  bool get = false;                   // ask for the bytes instead of sending them (gemini, aries)
  double load = 0;                    // of the uniform peak, 0 < load <= 1; 0: as much as goes
  double priority = 0;                // share of a rate workload's packets (bluegene-l, asci-q)
  std::string order = "random";       // all-to-all: random, shift
  bool in_step = false;               // all-to-all by shift: wait for the own message before the next one
  std::uint64_t ahead = 0;            // ... or send at most so much more than has arrived; 0: no limit
  std::string subset;                 // all-to-all: "", lines, planes (tori), groups (aries)
  double hot_fraction = 0.25;
  std::array<std::uint32_t, 3> hot_region{0, 0, 0};  // 0: half of each side
  std::uint32_t burst =
      1;  // all-to-all in random order: packets to a destination in a row; 0: whole messages
  bool infinite_fifos = false;  // bluegene-l: of an all-to-all, filled before the start, one a direction ...
  bool fifos_in_turn = false;   // ... or each packet in the next one
  bool count_unblocking = false;  // bluegene-l
  std::uint32_t repeat = 1;       // whole exchanges
  std::uint32_t grain = 1;        // machine packets that travel as one (gemini, seastar, aries)
  std::uint32_t job_nodes = 0;    // all-to-all on this many nodes only ...
  std::uint32_t job_groups = 1;   // ... spread over this many groups (aries)
  double background = 0;          // load of all other nodes
  bool steady = false;            // an endless exchange, measured once steady
  double warmup_us = 0;
  double measure_us = 100;
  double until_us = 0;             // 0: no limit but the workload's own
  double sample_us = 0;            // 0: the machine's default
  double bit_error_rate = -1;      // < 0: the machine's (none)
  std::uint32_t failed_links = 0;  // out of service, drawn by the seed (gemini, aries, asci-q)
  std::uint32_t severed = 0;  // neighbours that lose all links between them (gemini, seastar, aries: green)
  std::string failed_nodes;   // how many, or coordinates "1.0.3,2.2.2" (bluegene-l, gemini, seastar, aries)
  double fail_at_us = 0;      // when links and routers fail; 0: before the run
  double reroute_us = -1;     // how long a drained network waits for new tables; < 0: kRerouteUs
  double firmware_us = 0;     // of a receiver's processor for a message (seastar); 0: not simulated
  std::uint64_t seed = 1;
  unsigned threads = 1;
  bool keep_link_busy = false;
  bool watch_buffers = false;  // how full the virtual channels' buffers are, in each sample
  std::string trace;           // file to replay instead of a workload
  const std::atomic<bool>* interrupt = nullptr;
  std::function<void(double us, const Counters&, std::uint64_t expected)> progress;
};

// Runs `spec`; blocks. A refusal says in one line what of it is not accepted and what would be; then
// nothing ran and `out` is untouched.
Refusal simulate(const RunSpec& spec, SimResult* out);

std::string workload_names();  // "alltoall, uniform, ...": which machine, where not all can
std::string machine_names();
std::string preset_names(const std::string& machine);
std::string routing_names(const std::string& machine);

// "8x8x8" or "512" (one row). False for anything else.
bool parse_shape(const std::string& text, std::array<std::uint32_t, 3>* out);

}  // namespace orrery::sim
