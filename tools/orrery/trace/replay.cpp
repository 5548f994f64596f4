// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/trace/replay.hpp"

#include "emu/model/link_state.hpp"
#include "emu/model/quote.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <tuple>

namespace orrery::tool {

namespace {

bool same_answer(const model::Quote& a, const model::Quote& b) {
  return a.cpu_busy == b.cpu_busy && a.data_at == b.data_at && a.remote_event_at == b.remote_event_at &&
         a.local_event_at == b.local_event_at && a.waited == b.waited && a.hops == b.hops &&
         a.detoured == b.detoured;
}

}  // namespace

std::optional<Replay> replay(const model::Machine& machine, std::vector<clock::Recorded> records, Ties ties) {
  const model::Pricing& p = machine.pricing;
  // Whole lines, as aligned_alloc() wants them.
  constexpr std::size_t kLine = 64;
  const std::size_t bytes =
      (model::LinkState::bytes_needed(p, model::LinkState::Kind::exact) + kLine - 1) / kLine * kLine;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(kLine, bytes)), &std::free);
  if (memory == nullptr) return std::nullopt;
  model::LinkState links =
      model::LinkState::create({memory.get(), bytes}, p, model::LinkState::Kind::exact).value();
  std::sort(records.begin(), records.end(), [ties](const clock::Recorded& a, const clock::Recorded& b) {
    if (a.called != b.called || ties == Ties::as_begun)
      return std::tie(a.called, a.number) < std::tie(b.called, b.number);
    return std::tie(a.pe, a.number) < std::tie(b.pe, b.number);
  });
  Replay found;
  for (const clock::Recorded& r : records) {
    // From a file: another machine's nodes are not ours.
    if (r.request.src >= p.nodes || r.request.dst >= p.nodes) {
      ++found.conflicts;
      continue;
    }
    ++found.operations;
    if (!same_answer(model::quote(p, r.request, r.uncontended ? nullptr : &links), r.quote))
      ++found.conflicts;
  }
  return found;
}

}  // namespace orrery::tool
