// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/record.hpp"

#include <gtest/gtest.h>

#include <string>

namespace orrery::clock {
namespace {

Recorded example() {
  Recorded r;
  r.called = 1'234'567;
  r.pe = 63;
  r.number = 1'000'001;
  r.request = {.op = model::Op::bte_get,
               .routing = model::Routing::in_order,
               .src = 4,
               .dst = 92'543,
               .bytes = 1ull << 40,
               .now = Picos{1'234'890},
               .seed = ~0ull};
  r.quote.cpu_busy = Picos{100};
  r.quote.data_at = Picos{2'000'000};
  r.quote.local_event_at = Picos{3'000'000};
  r.quote.hops = 5;
  r.quote.detoured = true;
  return r;
}

TEST(Record, IsReadAsItWasWritten) {
  const auto read = parse_line(line_of(example()));
  ASSERT_TRUE(read);
  EXPECT_EQ(line_of(*read), line_of(example()));
  EXPECT_EQ(read->request.seed, ~0ull);
  EXPECT_EQ(read->quote.data_at, Picos{2'000'000});
  EXPECT_TRUE(read->quote.detoured);
}

TEST(Record, AnythingElseIsNone) {
  const std::string line = line_of(example());
  for (std::size_t i = 0; i < line.size(); ++i) EXPECT_FALSE(parse_line(line.substr(0, i))) << i;
  for (const auto& bad : {line + " 1", line + " ", " " + line, std::string("# machine aries"), "x" + line})
    EXPECT_FALSE(parse_line(bad)) << bad;
  // Numbers that their fields cannot hold.
  Recorded r = example();
  std::string wide = line_of(r);
  wide.replace(wide.find(" 63 "), 4, " 4294967296 ");
  EXPECT_FALSE(parse_line(wide)) << wide;
}

TEST(Record, WhatMadeARunInexactIsReadAsItWasWritten) {
  const Inexactness found{.outside = 1, .merged = 2, .late = ~0ull};
  EXPECT_FALSE(found.none());
  EXPECT_TRUE(Inexactness{}.none());
  const std::string line = line_of(found);
  EXPECT_TRUE(line.starts_with("# "));
  const auto read = parse_inexactness(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->outside, 1u);
  EXPECT_EQ(read->late, ~0ull);
  for (std::size_t i = 0; i + 20 < line.size(); ++i) EXPECT_FALSE(parse_inexactness(line.substr(0, i))) << i;
  for (const auto& bad : {line + " 1", line + " ", "x" + line, std::string("# machine aries")})
    EXPECT_FALSE(parse_inexactness(bad)) << bad;
}

}  // namespace
}  // namespace orrery::clock
