// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/descriptor_feed.hpp"

#include <mutex>
#include <vector>

namespace orrery::clock {

namespace {

struct Feeds {
  std::mutex mu;
  std::vector<DescriptorFeed*> all;  // guarded by mu
};
// Never destroyed: threads look at descriptors while the process ends.
Feeds& feeds() {
  static Feeds& of_process = *new Feeds;
  return of_process;
}

}  // namespace

void add_feed(DescriptorFeed* feed) {
  const std::lock_guard lock(feeds().mu);
  feeds().all.push_back(feed);
}

void remove_feed(DescriptorFeed* feed) {
  const std::lock_guard lock(feeds().mu);
  std::erase(feeds().all, feed);
}

void feed_descriptors() {
  const std::lock_guard lock(feeds().mu);
  for (DescriptorFeed* const feed : feeds().all) feed->feed();
}

}  // namespace orrery::clock
