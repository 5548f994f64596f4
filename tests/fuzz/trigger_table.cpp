// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What a peer's segment says of its counters and of the operations that wait for them. A process that counts
// there follows these lists, and carries out what is due: it comes to an end and stays within the tables,
// whatever they say. The input is spread over the counters and the records, 64 and 192 bytes each.
#include "emu/nic/events/trigger_table.hpp"
#include "emu/base/check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>

namespace {

using namespace orrery;
using namespace orrery::nic;

class Takes final : public trigger::Carrier {
 public:
  Errc put(const TriggerRecord& record) override {
    ++puts;
    return record.length % 3 == 0 ? Errc::ok : record.length % 3 == 1 ? Errc::bounds : Errc::not_done;
  }
  std::uint32_t puts = 0;
};

const Geometry kGeometry{.lane_count = 1, .arena_bytes = 1u << 20};

NicView segment() {
  static void* const memory = mmap(nullptr, kGeometry.segment_bytes(), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ORRERY_CHECK(memory != MAP_FAILED, "no memory");
  static const NicView view = NicView::create(memory, kGeometry, 0, 1, false);
  return view;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kFew = 4;
  const NicView nic = segment();
  CounterTable& counters = counters_of(nic);
  TriggerTable& table = triggers_of(nic);
  std::memset(static_cast<void*>(counters.counters), 0, kFew * sizeof(CounterState));
  for (std::size_t i = 0; i < kFew; ++i) counters.generations[i].store(1, std::memory_order_relaxed);
  std::memset(static_cast<void*>(&table), 0, offsetof(TriggerTable, records) + kFew * sizeof(TriggerRecord));
  trigger::set_up(nic);
  if (size < 2) return 0;
  const std::size_t of_counters = std::min(size - 1, kFew * sizeof(CounterState));
  std::memcpy(static_cast<void*>(counters.counters), data + 1, of_counters);
  const std::size_t left = size - 1 - of_counters;
  std::memcpy(static_cast<void*>(table.records), data + 1 + of_counters,
              std::min(left, kFew * sizeof(TriggerRecord)));
  table.counters_end.store(data[0] % 2 == 0 ? kFew : UINT32_MAX, std::memory_order_relaxed);
  table.current.store(data[0] / 16, std::memory_order_relaxed);
  Takes carrier;
  for (std::uint32_t i = 0; i < kFew; ++i) {
    const CounterName name{i, 1};
    (void)counter::count(nic, name, {.success = 1});
    (void)trigger::fire(nic, carrier, i);
  }
  (void)trigger::fire(nic, carrier, trigger::kAllCounters);
  ORRERY_CHECK(carrier.puts <= (kFew + 1) * kMaxTriggers, "{} puts", carrier.puts);
  return 0;
}
