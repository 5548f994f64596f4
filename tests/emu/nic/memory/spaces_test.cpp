// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Registrations of a whole address space, in the world in a box.
#include "emu/nic/initiator/fast_path.hpp"
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/seeds.hpp"

#include <gtest/gtest.h>

#include <random>

namespace orrery::nic {
namespace {

using box::Path;
using box::World;

constexpr std::uint32_t kWay = kRemoteEvent;

void collect(CompletionQueue* queue, const Event& event) {
  void* context = nullptr;
  EXPECT_TRUE(queue->collect(event.transaction(), &context));
}

// Memory of the one target, `extents` extents of it.
class Memory {
 public:
  explicit Memory(std::uint64_t extents) : bytes_((extents + 1) * kExtentBytes) {
    base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    begin_ = (reinterpret_cast<std::uint64_t>(base_) + kExtentBytes - 1) & ~(kExtentBytes - 1);
  }
  ~Memory() { munmap(base_, bytes_); }
  std::uint64_t begin() const { return begin_; }
  std::uint64_t at(std::uint64_t extent, std::uint64_t page) const {
    return begin_ + extent * kExtentBytes + page * kPageBytes;
  }
  std::uint64_t word(std::uint64_t address) const { return *reinterpret_cast<std::uint64_t*>(address); }

 private:
  void* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t begin_ = 0;
};

class Spaces : public ::testing::Test {
 protected:
  explicit Spaces(Path path = Path::adopt, const Nic::Options& options = {.adopt_after = 4})
      : world_(3, path, options) {
    for (int i = 0; i < world_.size(); ++i) queues_.push_back(world_[i].nic().create_queue(1024, 0).value());
    key_ = world_[1].nic().regions().register_space(world_[1].port(), 0, queues_[1]).value();
    endpoint_ = world_.endpoint(0, 1, queues_[0]);
  }

  Request put(const std::uint64_t& from, std::uint64_t to) {
    return box::put_word(&from, reinterpret_cast<const std::uint64_t*>(to), key_, kLocalEvent | kWay);
  }
  // Posts and runs the world until its event is there: how it ended.
  Errc post(Endpoint& endpoint, const Request& request, int node = 0) {
    const Errc posted = world_[node].nic().post(endpoint, request);
    if (posted != Errc::ok) return posted;
    return end_of(node);
  }
  Errc end_of(int node) {
    Event event;
    for (int i = 0; i < 10'000; ++i) {
      const Errc got = world_[node].nic().poll(*queues_[static_cast<std::size_t>(node)], &event);
      if (got == Errc::ok) {
        collect(queues_[static_cast<std::size_t>(node)], event);
        return event.status;
      }
      world_.serve_all();
    }
    return Errc::timeout;
  }
  // Until the page is direct.
  void make_hot(std::uint64_t address) {
    std::uint64_t value = 0;
    for (int i = 0; i < 200 && !is_direct(address); ++i) {
      ASSERT_EQ(post(*endpoint_, put(value, address)), Errc::ok);
      world_.serve_all();
    }
    ASSERT_TRUE(is_direct(address));
  }
  bool is_direct(std::uint64_t address) { return extents_cover(world_[1].nic().view(), address, 8); }
  // Whether a put is done when the call returns, while no other process runs.
  bool goes_direct(std::uint64_t address, std::uint64_t value) {
    const Errc posted = world_[0].nic().post(*endpoint_, put(value, address));
    EXPECT_EQ(posted, Errc::ok);
    Event event;
    const bool done = queues_[0]->take(&event) == Errc::ok;
    if (done)
      collect(queues_[0], event);
    else
      EXPECT_EQ(end_of(0), Errc::ok);
    return done;
  }

  Memory memory_{4};
  World world_;
  std::vector<CompletionQueue*> queues_;
  MemKey key_;
  std::unique_ptr<Endpoint> endpoint_;
};

class SpacesByFrame : public Spaces {
 protected:
  SpacesByFrame() : Spaces(Path::frame) {}
};

TEST_F(SpacesByFrame, OneKeyReachesWhatWasMappedBeforeAndAfterIt) {
  const std::uint64_t value = 42;
  const Memory later(1);
  for (const std::uint64_t address : {memory_.at(1, 7), later.at(0, 3)}) {
    ASSERT_EQ(post(*endpoint_, put(value, address)), Errc::ok);
    EXPECT_EQ(memory_.word(address), 42u);
  }
  EXPECT_EQ(world_[1].nic().regions().table().in_use(), 1u);
}

TEST_F(SpacesByFrame, BeyondTheAddressSpaceIsOutOfBounds) {
  const std::uint64_t value = 42;
  for (const std::uint64_t address : {kSpaceBytes, kSpaceBytes - 4, ~std::uint64_t{0} - 7})
    EXPECT_EQ(post(*endpoint_, put(value, address)), Errc::bounds) << address;
}

TEST_F(SpacesByFrame, MayBeReadOnlyAndBelongsToItsDomain) {
  key_ = world_[1].nic().regions().register_space(world_[1].port(), kReadOnly, nullptr).value();
  const std::uint64_t value = 42;
  EXPECT_EQ(post(*endpoint_, put(value, memory_.begin())), Errc::permission);
}

TEST_F(Spaces, WhatIsHotBecomesDirectAndNothingElse) {
  const std::uint64_t hot = memory_.at(1, 5);
  EXPECT_FALSE(goes_direct(hot, 1));
  make_hot(hot);
  EXPECT_TRUE(goes_direct(hot, 2));
  EXPECT_EQ(memory_.word(hot), 2u);
  EXPECT_FALSE(goes_direct(memory_.at(1, 9), 3)) << "a neighbour that could not be taken along";
  EXPECT_FALSE(goes_direct(memory_.at(2, 5), 4));
}

TEST_F(Spaces, ExtentTakesInWhatItCanAroundThePage) {
  world_[1].adoptable = [&](std::uint64_t, std::uint64_t low, std::uint64_t high) {
    return HostServices::Pages{std::max(low, memory_.at(1, 2)), std::min(high, memory_.at(1, 100))};
  };
  make_hot(memory_.at(1, 5));
  EXPECT_TRUE(extents_cover(world_[1].nic().view(), memory_.at(1, 2), 98 * kPageBytes));
  EXPECT_FALSE(is_direct(memory_.at(1, 1)));
  EXPECT_FALSE(is_direct(memory_.at(1, 100)));
}

TEST_F(Spaces, PageThatCannotBeMovedStaysByFrameAndIsAskedForLessAndLess) {
  world_[1].adoptable = [](std::uint64_t page, std::uint64_t, std::uint64_t) {
    return HostServices::Pages{page, page};
  };
  for (std::uint64_t i = 0; i < 300; ++i) EXPECT_FALSE(goes_direct(memory_.at(0, 0), i));
  EXPECT_LT(world_[1].rings, 300);
  EXPECT_EQ(memory_.word(memory_.at(0, 0)), 299u);
}

TEST_F(Spaces, GrantEndsWhenThePagesLeave) {
  const std::uint64_t hot = memory_.at(1, 5);
  make_hot(hot);
  EXPECT_TRUE(goes_direct(hot, 2));
  world_[1].unmap(memory_.at(1, 0), memory_.at(1, 512));
  EXPECT_FALSE(goes_direct(hot, 3)) << "the fast path must see that the pages have left";
  EXPECT_EQ(memory_.word(hot), 3u);
  make_hot(hot);
  EXPECT_TRUE(goes_direct(hot, 4));
}

TEST_F(Spaces, GrantEndsWithItsRegistrationThoughAnotherOfTheWholeSpaceStands) {
  const std::uint64_t hot = memory_.at(1, 5);
  make_hot(hot);
  EXPECT_TRUE(goes_direct(hot, 2));
  const MemKey other = world_[1].nic().regions().register_space(world_[1].port(), 0, nullptr).value();
  ASSERT_TRUE(world_[1].nic().deregister(key_).ok());
  const std::uint64_t value = 3;
  EXPECT_EQ(post(*endpoint_, put(value, hot)), Errc::invalid_handle);
  EXPECT_EQ(memory_.word(hot), 2u);
  key_ = other;
  EXPECT_TRUE(goes_direct(hot, 4));
  EXPECT_EQ(memory_.word(hot), 4u);
}

TEST_F(Spaces, RemoteEventsComeFromEveryWay) {
  const std::uint64_t hot = memory_.at(1, 5);
  const auto events = [&] {
    int count = 0;
    Event event;
    while (world_[1].nic().poll(*queues_[1], &event) == Errc::ok) {
      EXPECT_EQ(event.kind, EventKind::remote);
      ++count;
    }
    return count;
  };
  EXPECT_FALSE(goes_direct(hot, 1));
  EXPECT_EQ(events(), 1);
  make_hot(hot);
  (void)events();
  EXPECT_TRUE(goes_direct(hot, 2));
  EXPECT_TRUE(goes_direct(hot, 3));
  EXPECT_EQ(events(), 2);
}

TEST_F(Spaces, PutsToOtherExtentsGoOnWhileOneMoves) {
  const std::uint64_t hot = memory_.at(1, 5);
  make_hot(hot);
  EXPECT_TRUE(goes_direct(hot, 1));
  int seen = 0;
  world_.during_switch = [&](int) {
    const std::uint64_t value = 100 + static_cast<std::uint64_t>(seen++);
    ASSERT_EQ(world_[0].nic().post(*endpoint_, put(value, hot)), Errc::ok);
    Event event;
    EXPECT_EQ(queues_[0]->take(&event), Errc::ok) << "direct, in the middle of a switch";
    collect(queues_[0], event);
    EXPECT_EQ(memory_.word(hot), value);
  };
  auto other = world_.endpoint(2, 1, queues_[2]);
  std::uint64_t value = 0;
  for (int i = 0; i < 200 && seen == 0; ++i) {
    ASSERT_EQ(post(*other, put(value, memory_.at(2, 1)), 2), Errc::ok);
    world_.serve_all();
  }
  EXPECT_GT(seen, 0);
  EXPECT_EQ(world_.violation, "");
}

TEST_F(Spaces, PagesThatLeaveWhileTheyMoveAreNotSaidToBeThere) {
  const std::uint64_t hot = memory_.at(1, 5);
  world_[1].adoptable = [&](std::uint64_t page, std::uint64_t, std::uint64_t) {
    // Between the look and the move.
    world_[1].unmap(page, page + kPageBytes);
    return HostServices::Pages{page, page + kPageBytes};
  };
  std::uint64_t value = 0;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(post(*endpoint_, put(value, hot)), Errc::ok);
  EXPECT_FALSE(is_direct(hot));
}

TEST_F(Spaces, PeerThatIsInTheMiddleOfAnAccessIsWaitedForUntilTheLimit) {
  const std::uint64_t hot = memory_.at(1, 5);
  make_hot(hot);
  auto& hazard = world_[1].nic().view().hazards(0).slot[0];
  hazard.store(hazard_word(key_.index), std::memory_order_relaxed);
  const std::int64_t begin = monotonic_ns();
  world_[1].unmap(hot, hot + kPageBytes);
  EXPECT_GE(monotonic_ns() - begin, world_[1].nic().options().drain_limit_ns);
  hazard.store(0, std::memory_order_relaxed);
}

TEST_F(Spaces, PeerThatIsStalledAtTheEndIsCutOffFromTheExtents) {
  const std::uint64_t hot = memory_.at(1, 5);
  make_hot(hot);
  auto& hazard = world_[1].nic().view().hazards(0).slot[0];
  hazard.store(hazard_word(key_.index), std::memory_order_relaxed);
  EXPECT_TRUE(world_[1].nic().deregister(key_).ok());
  EXPECT_EQ(world_[1].cut_offs, 1) << "of one extent, not of 2^47 bytes";
  EXPECT_FALSE(is_direct(hot));
  hazard.store(0, std::memory_order_relaxed);
}

TEST_F(Spaces, OrdinaryRegistrationIsNotAdoptedForTheSakeOfTheWholeSpace) {
  EXPECT_FALSE(world_[1].nic().regions().table().covers_any(memory_.begin(), memory_.begin() + kPageBytes));
}

TEST_F(Spaces, SuspensionOfTheDomainEndsGrants) {
  const std::uint64_t hot = memory_.at(1, 5);
  make_hot(hot);
  EXPECT_TRUE(goes_direct(hot, 1));
  auto& registrations = world_[1].nic().regions().table();
  const auto alive = [](std::uint32_t) { return true; };
  ASSERT_TRUE(registrations.mark_suspended(7, true, alive, 0));
  const Transfer transfer{.key = key_word(key_), .remote_address = hot, .length = 0};
  EXPECT_EQ((try_fast<Op::put>(*endpoint_, transfer)), Errc::not_done);
  ASSERT_TRUE(registrations.mark_suspended(7, false, alive, 0));
  EXPECT_TRUE(goes_direct(hot, 2));
}

// Puts and gets of two initiators through keys that come and go, to pages that come and go, against a plain
// copy of the memory. What is posted is done before the next step: nothing may be lost, whatever way it took.
void run_world(std::uint64_t seed) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  const auto below = [&random](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  World world(3, below(4) == 0 ? Path::frame : Path::adopt, {.adopt_after = 1 + below(6)});
  world.attach = below(2) == 0;
  const Memory memory(3);
  constexpr std::uint32_t kPages = 6;  // used, of each extent
  std::vector<std::uint64_t> model(3 * kPages);
  std::vector<CompletionQueue*> queues;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  for (int i = 0; i < 3; ++i) queues.push_back(world[i].nic().create_queue(64, 0).value());
  for (int i = 0; i < 2; ++i) endpoints.push_back(world.endpoint(i, 2, queues[static_cast<std::size_t>(i)]));
  world[2].adoptable = [&](std::uint64_t page, std::uint64_t low, std::uint64_t high) {
    const std::uint64_t reach = below(3) * kPageBytes;
    return HostServices::Pages{std::max(low, page - std::min(page, reach)),
                               std::min(high, page + kPageBytes + reach)};
  };
  world.during_switch = [&](int) { world[static_cast<int>(below(2))].nic().progress(); };
  std::vector<MemKey> keys;
  std::uint64_t next = 1;
  for (int step = 0; step < 120; ++step) {
    if (keys.empty() || below(20) == 0) {
      keys.push_back(world[2].nic().regions().register_space(world[2].port(), 0, nullptr).value());
    }
    const std::uint32_t what = below(20);
    const auto from = static_cast<std::size_t>(below(2));
    if (what < 14) {
      const bool stale = below(30) == 0 && keys.size() > 1;
      const std::size_t which = below(static_cast<std::uint32_t>(keys.size()));
      const MemKey key = keys[which];
      if (stale) {
        keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(which));
        ASSERT_TRUE(world[2].nic().deregister(key).ok());
      }
      const std::uint32_t place = below(3 * kPages);
      const std::uint64_t address = memory.at(place / kPages, place % kPages) + 8;
      std::uint64_t word = next++;
      const bool is_get = below(4) == 0;
      Request request = box::put_word(&word, reinterpret_cast<std::uint64_t*>(address), key, kLocalEvent);
      if (is_get) request.op = Op::get;
      const bool is_there = extents_cover(world[2].nic().view(), address, sizeof word);
      ASSERT_EQ(world[static_cast<int>(from)].nic().post(*endpoints[from], request), Errc::ok);
      if (!stale && !world.attach && queues[from]->test() == Errc::ok) {
        ASSERT_TRUE(is_there) << "step " << step << ": done at once, by memory that is not mapped here";
      }
      Event event;
      int tries = 0;
      while (world[static_cast<int>(from)].nic().poll(*queues[from], &event) != Errc::ok) {
        ASSERT_LT(++tries, 10'000);
        world.serve_all();
      }
      collect(queues[from], event);
      ASSERT_EQ(event.status, stale ? Errc::invalid_handle : Errc::ok);
      if (stale) continue;
      if (is_get) {
        ASSERT_EQ(word, model[place]) << "step " << step;
      } else {
        model[place] = word;
      }
      ASSERT_EQ(memory.word(address), model[place]) << "step " << step;
    } else if (what < 16) {
      const std::uint32_t extent = below(3);
      const std::uint32_t page = below(kPages);
      world[2].unmap(memory.at(extent, page), memory.at(extent, page + 1 + below(3)));
    } else if (what == 16 && keys.size() > 1) {
      ASSERT_TRUE(world[2].nic().deregister(keys.front()).ok());
      keys.erase(keys.begin());
    } else {
      world.serve_all();
    }
    ASSERT_EQ(world.violation, "") << "step " << step;
  }
}

TEST(SpacesWorld, NothingIsLostWhateverComesAndGoes) {
  box::for_every_seed(200, 100'000, [](std::uint64_t seed) {
    run_world(seed);
    return std::string(HasFailure() ? "see above" : "");
  });
}

}  // namespace
}  // namespace orrery::nic
