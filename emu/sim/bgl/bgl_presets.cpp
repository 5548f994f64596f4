// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/bgl/bgl_presets.hpp"

namespace orrery::sim {

namespace {

// "Random arbitration rules simpler than SLQ and JSQ were used" and "350-MB/s link speed" (Figures 2 to 5).
constexpr BglConfig early(std::uint32_t vcs, std::uint32_t vc_bytes, std::uint32_t escape_bytes,
                          std::uint32_t paths) {
  BglConfig config;
  config.tick_ns = 1000.0 / 350.0;
  config.dynamic_vcs = vcs;
  config.dynamic_bytes = vc_bytes;
  config.escape_bytes = escape_bytes;
  config.paths = paths;
  config.jsq = false;
  config.slq_fraction = 0;
  return config;
}
constexpr BglConfig with(BglConfig config, bool jsq, double slq) {
  config.jsq = jsq;
  config.slq_fraction = slq;
  return config;
}
constexpr BglConfig escape(BglConfig config, EscapeKind kind, EscapeOrder order) {
  config.escape = kind;
  config.order = order;
  return config;
}
constexpr BglConfig fixed_path(BglConfig config) {
  config.deterministic = true;
  return config;
}
constexpr BglConfig alltoall(std::uint32_t vcs, std::uint32_t vc_bytes, std::uint32_t escape_bytes) {
  BglConfig config;
  config.dynamic_vcs = vcs;
  config.dynamic_bytes = vc_bytes;
  config.escape_bytes = escape_bytes;
  return config;
}

constexpr const char* kFigure2 =
    "Figure 2: 4 KB of buffers per link and 1 KB for escape, random arbitration, 350 MB/s";
constexpr const char* kFigure3 =
    "Figure 3: two dynamic VCs, two paths, buffers per VC as named, random arbitration";
constexpr const char* kFigure4 = "Figure 4: as Figure 2 with two VCs and two paths, arbitration as named";
constexpr const char* kFigure5 = "Figure 5: two dynamic 2 KB VCs, two paths, 2 KB escape; 75 % SLQ cycles";
constexpr const char* kFigure7 = "Figures 7 to 9: two dynamic 2 KB VCs, two paths, 2 KB escape buffers";
constexpr const char* kFigure6 =
    "Figure 6: equal total buffer, 3 KB for all but priority; arbitration as built";

constexpr BglConfig hardware(std::uint32_t processors) {
  BglConfig config;
  config.processor_ticks = 32;       // FITTED to Figure 11's 71 % of 32-byte packets
  config.processor_full_ticks = 47;  // FITTED to the hot spot's 92 %
  config.processors = processors;
  return config;
}

const BglPreset kPresets[] = {
    {"hardware",
     "Figure 11, hot region, line fill: a processor that sends and receives; its cost fitted to the 71 % of "
     "32-byte packets and the hot spot's 92 %",
     hardware(1), true},
    {"hardware-both-cores",
     "plane fill: \"both cores, with one core servicing the plus directions and another servicing the minus "
     "directions\"",
     hardware(2), true},
    {"fig2-deterministic", kFigure2, fixed_path(early(1, 256, 4096, 1))},
    {"fig2-1vc-1path", kFigure2, early(1, 4096, 1024, 1)},
    {"fig2-2vc-1path", kFigure2, early(2, 2048, 1024, 1)},
    {"fig2-2vc-2path", kFigure2, early(2, 2048, 1024, 2)},
    {"fig2-4vc-4path", kFigure2, early(4, 1024, 1024, 4)},
    {"fig3-512", kFigure3, early(2, 512, 512, 2)},
    {"fig3-1k", kFigure3, early(2, 1024, 1024, 2)},
    {"fig3-2k", kFigure3, early(2, 2048, 2048, 2)},
    {"fig4-base", kFigure4, early(2, 2048, 1024, 2)},
    {"fig4-slq", kFigure4, with(early(2, 2048, 1024, 2), false, 0.75)},
    {"fig4-jsq", kFigure4, with(early(2, 2048, 1024, 2), true, 0)},
    {"fig5-base", kFigure5, early(2, 2048, 2048, 2)},
    {"fig5-slq", kFigure5, with(early(2, 2048, 2048, 2), false, 0.75)},
    {"fig5-jsq", kFigure5, with(early(2, 2048, 2048, 2), true, 0)},
    {"fig6-deterministic", kFigure6, fixed_path(alltoall(1, 256, 3072))},
    {"fig6-1vc", kFigure6, alltoall(1, 2048, 1024)},
    {"fig6-2vc", kFigure6, alltoall(2, 1024, 1024)},
    {"fig7-bubble-dimension", kFigure7,
     escape(early(2, 2048, 2048, 2), EscapeKind::bubble, EscapeOrder::dimension)},
    {"fig7-bubble-direction", kFigure7,
     escape(early(2, 2048, 2048, 2), EscapeKind::bubble, EscapeOrder::direction)},
    {"fig7-dateline-dimension", kFigure7,
     escape(early(2, 2048, 2048, 2), EscapeKind::dateline_pair, EscapeOrder::dimension)},
    {"fig7-dateline-direction", kFigure7,
     escape(early(2, 2048, 2048, 2), EscapeKind::dateline_pair, EscapeOrder::direction)},
};

}  // namespace

std::span<const BglPreset> bgl_presets() { return kPresets; }

}  // namespace orrery::sim
