// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/state/extent_state.hpp"

#include "tests/emu/nic/killer.hpp"

namespace orrery::nic {
namespace {

using namespace box;

class KillInSpace : public KillAnywhere {};

std::uint64_t page_of(const Scene& scene) { return address_of(scene.memory) & ~(kPageBytes - 1); }

// The victim puts into an extent of the target's whole address space. Wherever it died, its put is there
// whole or not told of, and the target takes the pages back without waiting for it.
TEST_F(KillInSpace, PutIntoAnExtent) {
  Scene scene(Path::adopt);
  Nic& target = scene.world[1].nic();
  const MemKey space = target.regions().register_space(scene.world[1].port(), 0, scene.target_queue).value();
  ExtentMap& extents = target.regions().table().extents();
  const std::uint64_t page = page_of(scene);
  run(
      scene,
      [&] {
        ASSERT_EQ(extents.publish({page, page + kPageBytes}, [] { return true; }), Errc::ok);
      },
      [&] {
        Request request = scene.victims_put();
        request.remote = space;
        (void)scene.world[0].nic().post(*scene.victim, request);
        (void)scene.world[0].nic().post(*scene.victim, request);
      },
      [&] {
        scene.world.kill(0);
        ASSERT_TRUE(extents_cover(target.view(), page, 8));
        const std::int64_t begin = monotonic_ns();
        target.regions().left_pages(target.regions().leave_pages(page, page + kPageBytes));
        ASSERT_LT(monotonic_ns() - begin, target.options().drain_limit_ns) << "it waited for the dead";
        ASSERT_FALSE(extents_cover(target.view(), page, 8));
        // Both puts, or one, or none.
        for (int i = 0; i < 2; ++i) {
          const std::uint64_t told = scene.take_event();
          if (told == 0) continue;
          ASSERT_EQ(told, scene.victim->remote_event_data);
          ASSERT_EQ(std::memcmp(scene.memory, scene.source.data(), kVictimBytes), 0);
        }
      });
  ASSERT_TRUE(target.deregister(space).ok());
}

// The victim owns the space: it dies while it moves an extent, says so, and takes it back. Whatever words it
// left name pages of one extent, and what a survivor asks of it ends.
TEST_F(KillInSpace, OwnerInTheMiddleOfAnExtentsSwitch) {
  Scene scene(Path::adopt);
  const std::uint64_t page = page_of(scene) + kBytes / 2;
  MemKey space;
  run(
      scene,
      [&] {
        space = scene.world[0].nic().regions().register_space(scene.world[0].port(), 0, nullptr).value();
      },
      [&] {
        Nic& owner = scene.world[0].nic();
        if (long_tests()) {
          // Many instructions: the looks at all registrations before and after the move.
          want_extent(owner.view(), page);
          owner.serve();
          scene.world[0].unmap(page, page + kPageBytes);
          return;
        }
        ExtentMap& extents = owner.regions().table().extents();
        ORRERY_CHECK(extents.start({page, page + kPageBytes}), "nothing leaves");
        (void)extents.publish({page, page + kPageBytes}, [] { return true; });
        extents.finish();
        extents.left(extents.leave(page, page + kPageBytes));
      },
      [&] {
        const ExtentState& state = extent_state(scene.world[0].nic().view());
        for (const auto& set : state.words) {
          for (const auto& word : set) {
            const std::uint64_t value = word.load();
            if (value == 0) continue;
            ASSERT_EQ(extent_word::begin(value), page);
            ASSERT_EQ(extent_word::end(value), page + kPageBytes);
          }
        }
        scene.world.kill(0);
        const std::uint64_t value = 1;
        Request request = put_word(&value, reinterpret_cast<const std::uint64_t*>(page), space, kGlobalEvent);
        ASSERT_EQ(scene.world[2].nic().post(*scene.to_victim, request), Errc::ok);
        ASSERT_EQ(scene.survivors_event(), Errc::unreachable);
      });
}

}  // namespace
}  // namespace orrery::nic
