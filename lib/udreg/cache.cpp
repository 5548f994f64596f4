// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/udreg/cache.hpp"

#include <algorithm>
#include <array>

#include <sys/mman.h>

namespace orrery::udreg {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLargePage = 2ull << 20;

struct Range {
  std::uint64_t begin = 0, end = 0;
};

Range widened(std::uint64_t address, std::uint64_t length, std::uint64_t unit) {
  return {address / unit * unit, (address + length + unit - 1) / unit * unit};
}

// Whether there is memory everywhere in [begin, end), less than a large page.
bool is_mapped(std::uint64_t begin, std::uint64_t end) {
  std::array<unsigned char, kLargePage / kPage> pages;
  return begin == end || mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()) == 0;
}

}  // namespace

bool Cache::end() {
  const std::lock_guard lock(mu_);
  if (ended_ || std::any_of(entries_.begin(), entries_.end(), [](const Entry& e) { return e.users != 0; }))
    return false;
  ended_ = true;
  while (!entries_.empty()) drop(entries_.begin());
  if (attr_.destructor_callback != nullptr) attr_.destructor_callback(attr_.destructor_context);
  return true;
}

udreg_return_t Cache::take(std::uint64_t address, std::uint64_t length, udreg_entry_t** entry) {
  const std::lock_guard lock(mu_);
  if (ended_) return UDREG_RC_INVALID_PARAM;  // since its caller found it
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    const auto begin = reinterpret_cast<std::uint64_t>(at->shown.address);
    if (address < begin || address - begin > at->shown.length ||
        length > at->shown.length - (address - begin))
      continue;
    ++at->users;
    ++counters_[UDREG_STAT_CACHE_HIT];
    entries_.splice(entries_.begin(), entries_, at);
    *entry = &at->shown;
    return UDREG_RC_SUCCESS;
  }
  ++counters_[UDREG_STAT_CACHE_MISS];
  if (entries_.size() >= attr_.max_entries && !evict_one()) return UDREG_RC_NO_SPACE;
  const Range pages = widened(address, length, kPage);
  Range range = pages;
  if ((attr_.modes & UDREG_CC_MODE_USE_LARGE_PAGES) != 0) {
    const Range large = widened(address, length, kLargePage);
    if (is_mapped(large.begin, pages.begin)) range.begin = large.begin;
    if (is_mapped(pages.end, large.end)) range.end = large.end;
  }
  const auto device_of = [this](const Range& of) {
    return attr_.device_reg_func(reinterpret_cast<void*>(of.begin), of.end - of.begin, attr_.reg_context);
  };
  void* device = device_of(range);
  if (device == UDREG_DEVICE_REG_FAILED && (range.begin != pages.begin || range.end != pages.end)) {
    range = pages;  // what lies around it may be such as cannot be registered
    device = device_of(range);
  }
  if (device == UDREG_DEVICE_REG_FAILED) return UDREG_RC_INVALID_PARAM;
  if (device == nullptr) return UDREG_RC_NO_SPACE;
  entries_.push_front({{reinterpret_cast<void*>(range.begin), range.end - range.begin, device}, 1});
  *entry = &entries_.front().shown;
  return UDREG_RC_SUCCESS;
}

udreg_return_t Cache::give(udreg_entry_t* entry, bool keep) {
  const std::lock_guard lock(mu_);
  const auto at =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return &e.shown == entry; });
  if (at == entries_.end() || at->users == 0) return UDREG_RC_INVALID_PARAM;
  if (--at->users == 0 && !keep && (attr_.modes & UDREG_CC_MODE_USE_EVICT_W_UNREG) != 0 &&
      (attr_.modes & UDREG_CC_MODE_USE_LAZY_DEREG) == 0)
    drop(at);
  return UDREG_RC_SUCCESS;
}

udreg_return_t Cache::evict() {
  const std::lock_guard lock(mu_);
  return evict_one() ? UDREG_RC_SUCCESS : UDREG_RC_NO_MATCH;
}

bool Cache::evict_one() {
  for (auto at = entries_.end(); at != entries_.begin();) {
    --at;
    if (at->users != 0) continue;
    drop(at);
    ++counters_[UDREG_STAT_CACHE_EVICTED];
    return true;
  }
  return false;
}

void Cache::drop(std::list<Entry>::iterator entry) {
  (void)attr_.device_dereg_func(entry->shown.device_data, attr_.dreg_context);
  entries_.erase(entry);
}

bool Cache::reset(std::uint32_t which) {
  const std::lock_guard lock(mu_);
  if (which >= counters_.size()) return false;
  counters_[which] = 0;
  return true;
}

bool Cache::stat(std::uint32_t which, std::uint64_t* value) {
  const std::lock_guard lock(mu_);
  if (which >= counters_.size()) return false;
  *value = counters_[which];
  return true;
}

}  // namespace orrery::udreg
