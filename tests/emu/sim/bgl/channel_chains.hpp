// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace orrery::sim {

// Which channel may wait for which while it is held: the channel dependency graph of a network's routes. Free
// of deadlock where no chain of them closes.
class ChannelChains {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};
  explicit ChannelChains(std::size_t channels) : waits_(channels) {}
  void wait(std::size_t holds, std::size_t next) {
    if (holds == kNone) return;
    auto& list = waits_[holds];
    if (std::find(list.begin(), list.end(), next) == list.end()) list.push_back(next);
  }
  // The channels of a closed chain, empty if there is none.
  std::vector<std::size_t> closed() const {
    enum : std::uint8_t { kNew, kOpen, kDone };
    std::vector<std::uint8_t> state(waits_.size(), kNew);
    for (std::size_t start = 0; start < waits_.size(); ++start) {
      if (state[start] != kNew) continue;
      std::vector<std::pair<std::size_t, std::size_t>> path{{start, 0}};
      state[start] = kOpen;
      while (!path.empty()) {
        auto& [at, tried] = path.back();
        if (tried == waits_[at].size()) {
          state[at] = kDone;
          path.pop_back();
          continue;
        }
        const std::size_t next = waits_[at][tried++];
        if (state[next] == kOpen) {
          std::vector<std::size_t> chain;
          for (const auto& step : path) chain.push_back(step.first);
          chain.erase(chain.begin(), std::find(chain.begin(), chain.end(), next));
          return chain;
        }
        if (state[next] == kNew) {
          state[next] = kOpen;
          path.push_back({next, 0});
        }
      }
    }
    return {};
  }

 private:
  std::vector<std::vector<std::size_t>> waits_;
};

}  // namespace orrery::sim
