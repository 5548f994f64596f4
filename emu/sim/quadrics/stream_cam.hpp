// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/engine/types.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <vector>

namespace orrery::sim {

// How a SeaStar receiver tells apart the messages that arrive at once: a content-addressable memory of
// sources. Source: Dillow and Atchley, "SeaStar Unchained", section II: a packet's source is matched against
// 256 entries; if it is not there, the receive pipeline stalls until the embedded processor has acted. A
// message takes an entry with its first packet and leaves it with its last; a message of one packet needs
// none, the processor reads it out of the FIFO. What it does when all entries are taken: the entry that
// waited longest for a packet is swapped out, as section IV says of the CCI firmware.
//
// Owned by a node, touched by its partition's thread only.
// 1. Every source with a message under way is in exactly one of entries_ and swapped_.
class StreamCam {
 public:
  // A packet of `source` is at the head. True when the pipeline stalls for a swap.
  // REQUIRES: a source's packets come in order; entries >= 1.
  bool pass(Node source, bool first, bool last, std::uint32_t entries) {
    if (first && last) return false;
    bool swap = false;
    auto entry = std::find_if(entries_.begin(), entries_.end(),
                              [&](const Entry& known) { return known.source == source; });
    if (entry == entries_.end()) {
      std::uint32_t open = 0;
      if (const auto out = swapped_.find(source); out != swapped_.end()) {
        open = out->second;
        swapped_.erase(out);
        swap = true;
      }
      if (entries_.size() == entries) {
        swap = true;
        entry = std::min_element(entries_.begin(), entries_.end(),
                                 [](const Entry& a, const Entry& b) { return a.used < b.used; });
        swapped_.emplace(entry->source, entry->open);
      } else {
        entry = entries_.insert(entries_.end(), Entry());
      }
      *entry = {source, open, 0};
    }
    entry->used = ++packets_;
    entry->open += first;
    entry->open -= last;
    if (entry->open == 0) {
      *entry = entries_.back();
      entries_.pop_back();
    }
    return swap;
  }
  // Sources with a message under way.
  std::size_t open() const { return entries_.size() + swapped_.size(); }
  std::size_t bytes() const { return entries_.capacity() * sizeof(Entry) + swapped_.size() * 32; }

 private:
  struct Entry {
    Node source = 0;
    std::uint32_t open = 0;  // messages: one, or two where an answer goes between the packets of another
    std::uint64_t used = 0;  // when a packet came last, in packets of this node
  };
  std::vector<Entry> entries_;
  std::unordered_map<Node, std::uint32_t> swapped_;  // and their open messages
  std::uint64_t packets_ = 0;
};

}  // namespace orrery::sim
