// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/memory/extent_map.hpp"

#include <algorithm>

namespace orrery::nic {

namespace {
constexpr ExtentMap::Token kNoPlace = -1;
}  // namespace

bool ExtentMap::start(Run run) {
  const std::lock_guard lock(mu_);
  if (is_leaving(run)) return false;
  adopting_ = run;
  cancelled_ = false;
  return true;
}

bool ExtentMap::is_cancelled() const {
  const std::lock_guard lock(mu_);
  return cancelled_;
}

void ExtentMap::finish() {
  const std::lock_guard lock(mu_);
  adopting_ = {};
  cancelled_ = false;
}

bool ExtentMap::is_leaving(Run run) const {
  return more_leave_ != 0 || std::any_of(leaving_.begin(), leaving_.end(), [run](const Run& other) {
           return other.overlaps(run.begin, run.end);
         });
}

std::uint32_t ExtentMap::next_change() {
  change_ = change_ + 1 == 1u << extent_word::kChangeBits ? 1 : change_ + 1;
  return change_;
}

// Calls visit(word, value) for each word that covers a page of [begin, end).
template <typename Visit>
void ExtentMap::for_each_word(std::uint64_t begin, std::uint64_t end, Visit visit) const {
  auto& sets = extent_state(view_).words;
  const std::uint64_t first = extent_word::extent_of(begin);
  const std::uint64_t last = extent_word::extent_of(end - 1);
  const auto look = [&](std::uint32_t set) {
    for (auto& word : sets[set]) {
      const std::uint64_t value = word.load(std::memory_order_relaxed);
      if (value != 0 && Run{extent_word::begin(value), extent_word::end(value)}.overlaps(begin, end))
        visit(word, value);
    }
  };
  if (last - first < kExtentSets) {
    for (std::uint64_t extent = first; extent <= last; ++extent) look(extent_word::set_of(extent));
  } else {
    for (std::uint32_t set = 0; set < kExtentSets; ++set) look(set);
  }
}

// REQUIRES: mu_ is held.
void ExtentMap::write(Run run) {
  auto& set = extent_state(view_).words[extent_word::set_of(extent_word::extent_of(run.begin))];
  std::atomic<std::uint64_t>* unused = nullptr;
  std::atomic<std::uint64_t>* joined = nullptr;
  for (auto& word : set) {
    const std::uint64_t value = word.load(std::memory_order_relaxed);
    if (value == 0) {
      unused = &word;
      continue;
    }
    if (extent_word::extent(value) != extent_word::extent_of(run.begin)) continue;
    const Run known{extent_word::begin(value), extent_word::end(value)};
    if (known.begin <= run.begin && run.end <= known.end) return;
    if (known.begin > run.end || run.begin > known.end) continue;
    // Neighbours become one.
    run = {std::min(run.begin, known.begin), std::max(run.end, known.end)};
    if (joined != nullptr) joined->store(0, std::memory_order_release);
    joined = &word;
  }
  const std::uint32_t change = next_change();
  std::atomic<std::uint64_t>* place = joined != nullptr ? joined : unused;
  // None is free: one gives way. Nothing moves by that, so peers that are at its pages may go on.
  if (place == nullptr) place = &set[change % kExtentWays];
  // Release: a peer that sees the word finds the pages in the file.
  place->store(extent_word::make(run.begin, run.end, change), std::memory_order_release);
}

ExtentMap::Token ExtentMap::leave(std::uint64_t begin, std::uint64_t end) {
  const std::lock_guard lock(mu_);
  Token token = kNoPlace;
  for (std::size_t i = 0; i < leaving_.size() && token == kNoPlace; ++i) {
    if (leaving_[i].end == 0) token = static_cast<Token>(i);
  }
  if (token == kNoPlace)
    ++more_leave_;
  else
    leaving_[static_cast<std::size_t>(token)] = {begin, end};
  if (adopting_.overlaps(begin, end)) cancelled_ = true;
  // Sequentially consistent for the same reason as in RegistrationTable::remove().
  for_each_word(begin, end, [](auto& word, std::uint64_t) { word.store(0, std::memory_order_seq_cst); });
  return token;
}

void ExtentMap::left(Token token) {
  const std::lock_guard lock(mu_);
  if (token == kNoPlace)
    --more_leave_;
  else
    leaving_[static_cast<std::size_t>(token)] = {};
}

void ExtentMap::refresh() {
  const std::lock_guard lock(mu_);
  for_each_word(0, kSpaceBytes, [this](auto& word, std::uint64_t value) {
    word.store(extent_word::make(extent_word::begin(value), extent_word::end(value), next_change()),
               std::memory_order_seq_cst);
  });
}

std::vector<ExtentMap::Run> ExtentMap::published() const {
  const std::lock_guard lock(mu_);
  std::vector<Run> runs;
  for_each_word(0, kSpaceBytes, [&runs](auto&, std::uint64_t value) {
    runs.push_back({extent_word::begin(value), extent_word::end(value)});
  });
  return runs;
}

}  // namespace orrery::nic
