// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/state/nic_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <sys/mman.h>

namespace orrery::nic {
namespace {

class Segment : public ::testing::Test {
 protected:
  Segment() {
    base_ = mmap(nullptr, kGeometry.segment_bytes(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)NicView::create(base_, kGeometry, 3, 1, false);
  }
  ~Segment() override { munmap(base_, kGeometry.segment_bytes()); }
  NicHeader& header() { return *static_cast<NicHeader*>(base_); }
  Errc open() { return NicView::open(base_, kGeometry.segment_bytes()).code(); }

  static constexpr Geometry kGeometry{.lane_count = 1, .arena_bytes = 1 << 20};
  void* base_ = nullptr;
};

TEST_F(Segment, OpensAsItWasMade) { EXPECT_EQ(open(), Errc::ok); }

// Of another version of this library: refused, and said so in one line that names both versions.
TEST_F(Segment, OfAnotherVersionIsRefusedInOneLine) {
  for (const std::uint32_t version : {kNicVersion - 1, kNicVersion + 1}) {
    header().version = version;
    testing::internal::CaptureStderr();
    EXPECT_EQ(open(), Errc::unsupported);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_NE(said.find("process 3"), std::string::npos) << said;
    EXPECT_NE(said.find("version " + std::to_string(version)), std::string::npos) << said;
    EXPECT_NE(said.find("expected " + std::to_string(kNicVersion)), std::string::npos) << said;
  }
}

TEST_F(Segment, WhoseAreasLieElsewhereIsRefused) {
  for (std::size_t i = 0; i < std::size(kAreas); ++i) {
    AreaRow& row = header().areas[i];
    const AreaRow was = row;
    row.kind = AreaKind::none;
    EXPECT_EQ(open(), Errc::corrupt) << "kind of row " << i;
    row = was;
    row.offset += 64;
    EXPECT_EQ(open(), Errc::corrupt) << "offset of row " << i;
    row = was;
    row.bytes -= 64;
    EXPECT_EQ(open(), Errc::corrupt) << "size of row " << i;
    row = was;
  }
  header().area_count -= 1;
  EXPECT_EQ(open(), Errc::corrupt);
  header().area_count += 1;
  EXPECT_EQ(open(), Errc::ok);
}

}  // namespace
}  // namespace orrery::nic
