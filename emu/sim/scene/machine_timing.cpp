// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/scene/machine_timing.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

namespace orrery::sim {

namespace {

constexpr double kTicksPerNs = 10;  // of the tile routers

double gb_per_s(Rate rate) { return static_cast<double>(rate.bytes_per_second()) / 1e9; }

// Ticks that one phit occupies a link.
double phit_ticks(const model::Machine& machine, Rate link) {
  const double layer = static_cast<double>(machine.description.value("link.efficiency", 1'000'000)) / 1e6;
  return kTicksPerNs * machine.pricing.packet.phit_bits / 8.0 / (gb_per_s(link) * layer);
}

Tick ticks(Picos time) { return static_cast<Tick>(time.count() / 100); }

// The limits of NIC and host interface: payload one way, and what each response takes off it where both ways
// are busy.
void nic_limits(const model::Machine& machine, const model::DerivedRates& rates, NicCost* nic) {
  double lone = rates.host_put.unlimited() ? 0 : kTicksPerNs / gb_per_s(rates.host_put);
  if (!rates.nic.unlimited()) lone = std::max(lone, kTicksPerNs / gb_per_s(rates.nic));
  const double shared = rates.host_shared.unlimited() ? lone : kTicksPerNs / gb_per_s(rates.host_shared);
  nic->request_per_byte = nic->eject_per_byte = lone;
  nic->response =
      static_cast<std::uint32_t>(std::max(0.0, shared - lone) * machine.pricing.packet.payload + 0.5);
}

// How long a short operation keeps the interface beyond its data: what the model adds to its transfer.
void intervals(const model::Machine& machine, NicCost* nic) {
  const auto of = [&](model::Op op) {
    return static_cast<std::uint32_t>(ticks(machine.pricing.ops[static_cast<std::size_t>(op)].gap_add));
  };
  nic->put_interval = of(model::Op::fma_put);
  nic->get_interval = of(model::Op::fma_get);
}

Refusal check(const model::Machine& machine, const char* constant, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return {fmt::format("{}: {}: {} is nothing that the simulator can have: expected {} to {}",
                      machine.description.file, constant, value, low, high)};
}

}  // namespace

Refusal timing_of(const model::Machine& machine, BglConfig* out) {
  const model::PacketPrice& packet = machine.pricing.packet;
  const double link = gb_per_s(model::derive_rates(machine.description).link);
  if (Refusal no = check(machine, "link.lane_rate (GB/s)", link, 0.01, 1000); no.refused()) return no;
  BglConfig config;
  config.tick_ns = 1 / link;
  const double hop = std::round(static_cast<double>(machine.pricing.hop.count()) / 1000 / config.tick_ns);
  if (Refusal no = check(machine, "link.hop (byte times)", hop, 1, 500); no.refused()) return no;
  config.hop_ticks = static_cast<std::uint32_t>(hop);
  if (Refusal no = check(machine, "packet.word", packet.word, 32, 32); no.refused()) return no;
  const std::uint32_t bytes = packet.payload + packet.extra;
  if (Refusal no = check(machine, "packet.payload + packet.extra", bytes, 32, 256); no.refused()) return no;
  if (Refusal no = check(machine, "packet.put_request", packet.put_request, 0, 200); no.refused()) return no;
  config.max_chunks = bytes / 32;
  config.software_bytes = packet.extra;
  config.link_overhead = packet.put_request;
  for (std::size_t d = 0; d < 3; ++d) {
    config.sides[d] = machine.pricing.torus.shape().nodes[d];
    config.closed[d] = machine.pricing.torus.shape().closed[d];
  }
  *out = config;
  return {};
}

Refusal timing_of(const model::Machine& machine, TorusTiming* out) {
  const model::PacketPrice& packet = machine.pricing.packet;
  const model::DerivedRates rates = model::derive_rates(machine.description);
  if (Refusal no = check(machine, "packet.payload", packet.payload, 64, 64); no.refused()) return no;
  if (Refusal no = check(machine, "link.lane_rate (GB/s)", gb_per_s(rates.link), 0.01, 1000); no.refused())
    return no;
  const std::uint32_t full = packet.put_request_phits(packet.payload);
  if (Refusal no = check(machine, "phits of a full packet", full, 1, 1024); no.refused()) return no;
  TorusTiming timing;
  // A flit is as many phits as let a packet of 8 grains count in a byte.
  std::uint32_t phits = 1;
  while ((full + phits - 1) / phits > 32) phits *= 2;
  const auto flits = [&](std::uint32_t n) { return (n + phits - 1) / phits; };
  timing.header_flits = flits(packet.put_request);
  timing.data_unit = packet.word;
  timing.data_flits = flits(packet.phits_per_word);
  timing.flit_ticks = phit_ticks(machine, rates.link) * phits;
  timing.errors.flit_bits = packet.phit_bits * phits;
  timing.hop = ticks(machine.pricing.hop);
  timing.buffer_flits =
      16 * (timing.header_flits + (packet.payload + packet.word - 1) / packet.word * timing.data_flits);
  timing.nic.latency_in = timing.nic.latency_out = 300;
  nic_limits(machine, rates, &timing.nic);
  // A SeaStar's interval is its firmware's, which is simulated by itself.
  if (machine.pricing.network == model::Network::gemini_torus) intervals(machine, &timing.nic);
  const std::int64_t window = machine.description.value("nic.window");
  timing.nic.response_flits = static_cast<std::uint8_t>(flits(packet.put_response));
  if (timing.nic.response_flits != 0)
    timing.nic.outstanding = window > 0 ? static_cast<std::uint32_t>(window) : 1u << 20;  // 0: no limit
  // Eight of them, a grain, count in a byte. Where there are no responses there are no gets.
  if (Refusal no = check(machine, "packet.get_request (flits)", flits(packet.get_request), 0,
                         timing.nic.response_flits != 0 ? 31 : 1024);
      no.refused())
    return no;
  timing.nic.get_flits = static_cast<std::uint8_t>(std::max(1u, flits(packet.get_request)));
  timing.nic.get_saves = static_cast<std::uint8_t>(timing.header_flits -
                                                   std::min(timing.header_flits, flits(packet.get_response)));
  timing.nic.inject_flits = 2 * timing.buffer_flits;
  // Part of what a SeaStar is, as tiles are of a Gemini: not in the file.
  if (machine.pricing.network == model::Network::seastar_torus) timing.nic.cam_entries = 256;
  *out = timing;
  return {};
}

Refusal timing_of(const model::Machine& machine, AriesTiming* out) {
  const model::PacketPrice& packet = machine.pricing.packet;
  const model::DerivedRates rates = model::derive_rates(machine.description);
  for (const auto& [name, value, low, high] :
       {std::tuple{"packet.payload", static_cast<double>(packet.payload), 64.0, 64.0},
        {"link.lane_rate (GB/s)", gb_per_s(rates.link), 0.01, 1000.0},
        {"link.global_lane_rate (GB/s)", gb_per_s(rates.global_link), 0.01, 1000.0},
        {"phits of a full packet", static_cast<double>(packet.put_request_phits(packet.payload)), 1.0, 31.0},
        {"packet.put_response", static_cast<double>(packet.put_response), 1.0, 31.0},
        {"packet.get_request", static_cast<double>(packet.get_request), 1.0, 31.0},
        {"nic.window", static_cast<double>(machine.description.value("nic.window")), 1.0, 1048576.0}})
    if (Refusal no = check(machine, name, value, low, high); no.refused()) return no;
  AriesTiming timing;
  timing.electrical_phit = phit_ticks(machine, rates.link);
  timing.optical_phit = phit_ticks(machine, rates.global_link);
  timing.electrical_hop = ticks(machine.pricing.hop);
  timing.optical_hop = ticks(machine.pricing.hop + machine.pricing.global_cable);
  timing.errors.flit_bits = packet.phit_bits;
  timing.header_phits = packet.put_request;
  timing.word = packet.word;
  timing.word_phits = packet.phits_per_word;
  nic_limits(machine, rates, &timing.nic);
  intervals(machine, &timing.nic);
  timing.nic.outstanding = static_cast<std::uint32_t>(machine.description.value("nic.window"));
  timing.nic.response_flits = static_cast<std::uint8_t>(packet.put_response);
  timing.nic.get_flits = static_cast<std::uint8_t>(packet.get_request);
  timing.nic.get_saves =
      static_cast<std::uint8_t>(packet.put_request - std::min(packet.put_request, packet.get_response));
  *out = timing;
  return {};
}

Refusal timing_of(const model::Machine& machine, QuadricsConfig* out) {
  const model::DerivedRates rates = model::derive_rates(machine.description);
  const std::uint32_t levels = machine.pricing.tree.levels();
  const auto boundary = static_cast<double>(machine.description.value("link.far_boundary"));
  for (const auto& [name, value, low, high] :
       {std::tuple{"topology.levels", static_cast<double>(levels), 1.0, 6.0},
        {"link.lane_rate (GB/s)", gb_per_s(rates.link), 0.001, 1000.0},
        {"link.far_boundary", boundary, 3.0, 3.0},
        {"packet.payload", static_cast<double>(machine.pricing.packet.payload), 1.0, 65536.0}})
    if (Refusal no = check(machine, name, value, low, high); no.refused()) return no;
  QuadricsConfig config;
  config.levels = levels;
  // A circuit runs at the slower of link and host interface.
  config.bytes_per_ns = gb_per_s(rates.link);
  if (!rates.host_put.unlimited())
    config.bytes_per_ns = std::min(config.bytes_per_ns, gb_per_s(rates.host_put));
  config.elite = static_cast<double>(machine.pricing.hop.count()) / 1000;
  config.elan = 0;
  config.node_cable = static_cast<double>(machine.description.value("link.cable_near")) / 1000;
  config.one_far_boundary = true;
  config.upper_level_skew = 4 * static_cast<double>(machine.description.value("link.cable_far")) / 1000;
  config.packet = machine.pricing.packet.payload;
  *out = config;
  return {};
}

}  // namespace orrery::sim
