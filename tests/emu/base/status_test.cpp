// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/status.hpp"

#include <gtest/gtest.h>

#include <set>

namespace orrery {
namespace {

TEST(Status, NamesEveryCodeDifferently) {
  std::set<std::string_view> names;
  for (int code = 0; code < kErrcCount; ++code) names.insert(errc_name(static_cast<Errc>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kErrcCount));
  EXPECT_EQ(names.count("unknown"), 0u);
}

TEST(Status, NamesACodeFromOutsideTheTableUnknown) {
  EXPECT_EQ(errc_name(static_cast<Errc>(kErrcCount)), "unknown");
  EXPECT_EQ(errc_name(static_cast<Errc>(255)), "unknown");
}

TEST(Result, CarriesAValueOrAReason) {
  const Result<int> good = 7;
  const Result<int> bad = Errc::bounds;
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.value(), 7);
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.code(), Errc::bounds);
}

}  // namespace
}  // namespace orrery
