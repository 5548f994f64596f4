// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

// Descriptors that tell a program in virtual time of what has come.
namespace orrery::clock {

// What passes on to a descriptor what has come, between add_feed() and remove_feed().
class DescriptorFeed {
 public:
  // A thread of the program is about to look at descriptors. Not blocking; holds no lock of the clock's.
  virtual void feed() = 0;

 protected:
  ~DescriptorFeed() = default;
};

// From now on `feed` is called before each look of the program's at descriptors in virtual time (poll,
// select, epoll_wait and their like), or no more: after remove_feed() no thread is in there. Any thread.
void add_feed(DescriptorFeed* feed);
void remove_feed(DescriptorFeed* feed);

// Calls all of them.
void feed_descriptors();

}  // namespace orrery::clock
