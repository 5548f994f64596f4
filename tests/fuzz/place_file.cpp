// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Place files (the first byte says for how many PEs), the launcher's process mapping, lists of domains, and
// the lines of /proc that are parsed.
#include "emu/base/check.hpp"
#include "emu/job/cores.hpp"
#include "emu/job/domain_list.hpp"
#include "emu/job/placement.hpp"
#include "emu/job/process_stat.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery::job;
  if (size == 0) return 0;
  const std::uint32_t pes = 1 + data[0] % 64;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  std::string why;
  const auto placed = Placement::parse(text, pes, &why);
  ORRERY_CHECK(placed.ok() == why.empty(), "a verdict without a reason, or the other way round: {}", why);
  ORRERY_CHECK(why.find('\n') == std::string::npos && why.size() < 300, "not one line: {}", why);
  for (const auto& placement : {placed, Placement::from_process_mapping(text, pes)}) {
    if (!placement.ok()) continue;
    ORRERY_CHECK(placement.value().pe_count() == pes, "{} of {}", placement.value().pe_count(), pes);
    std::size_t in_cliques = 0;
    for (std::uint32_t pe = 0; pe < pes; ++pe) {
      ORRERY_CHECK(placement.value().of_pe(pe).node_index < placement.value().node_count(), "PE {}", pe);
      in_cliques += placement.value().clique_of(pe).size();
    }
    ORRERY_CHECK(in_cliques >= pes, "{} PEs in cliques", in_cliques);
    const auto again = Placement::from_process_mapping(placement.value().process_mapping(), pes);
    ORRERY_CHECK(again.ok(), "{}", placement.value().process_mapping());
    for (std::uint32_t pe = 0; pe < pes; ++pe) {
      ORRERY_CHECK(again.value().of_pe(pe).node_index == placement.value().of_pe(pe).node_index, "PE {}", pe);
    }
  }
  const auto half = text.substr(0, text.size() / 2);
  (void)parse_domain_list(half.c_str(), text.c_str() + text.size() / 2);
  (void)parse_process_stat(text);
  (void)parse_cpu_max(text);
  return 0;
}
