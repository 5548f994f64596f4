// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/trace/communication.hpp"

#include "emu/model/operation.hpp"

#include <gtest/gtest.h>

namespace orrery::tool {
namespace {

using sim::TraceKind;

// `number`: of the job's operations. Times in ns.
clock::Recorded asked(std::uint64_t number, model::Op op, std::uint32_t src, std::uint32_t dst,
                      std::uint64_t bytes, int now, int data_at) {
  clock::Recorded record;
  record.number = number;
  record.pe = src;
  record.request = {.op = op, .src = src, .dst = dst, .bytes = bytes, .now = Picos{now * 1000}};
  record.quote.data_at = Picos{data_at * 1000};
  return record;
}

std::string words(const sim::Trace& trace) {
  std::string text;
  for (const sim::TraceRecord& r : trace.records) {
    constexpr const char* kKinds[] = {"puts", "gets", "waits for", "asks for"};
    text += std::to_string(r.at_ns) + ": " + std::to_string(r.process) + " " +
            kKinds[static_cast<int>(r.kind)] + " " + std::to_string(r.bytes) + " with " +
            std::to_string(r.peer) + "\n";
  }
  return text;
}

// What is written is accepted by its reader.
std::string made_of(const std::vector<clock::Recorded>& records) {
  std::string problem;
  const sim::Trace trace = communication(records, &problem);
  if (!problem.empty()) return problem;
  sim::Trace read;
  EXPECT_EQ(sim::parse_trace(sim::encode_trace(trace), &read).why, "");
  return words(read);
}

TEST(Communication, AnOperationWaitsForWhatHadComeByThen) {
  EXPECT_EQ(
      made_of({asked(1, model::Op::fma_put, 0, 1, 100, 10, 500),
               asked(2, model::Op::bte_put, 1, 0, 8, 499, 900), asked(3, model::Op::amo, 1, 0, 8, 500, 910)}),
      "10: 0 puts 100 with 1\n"
      "900: 0 waits for 8 with 1\n"
      "910: 0 waits for 8 with 1\n"
      "499: 1 puts 8 with 0\n"
      "500: 1 waits for 100 with 0\n"
      "500: 1 puts 8 with 0\n");
}

TEST(Communication, GetsAreAskedForAndAwaitedWhereTheirDataCame) {
  EXPECT_EQ(made_of({asked(1, model::Op::fma_get, 2, 0, 64, 10, 700),
                     asked(2, model::Op::fetch_amo, 2, 1, 8, 20, 600),
                     asked(3, model::Op::fma_put, 2, 1, 4, 650, 900)}),
            "900: 1 waits for 4 with 2\n"
            "10: 2 asks for 64 with 0\n"
            "20: 2 asks for 8 with 1\n"
            "600: 2 waits for 8 with 1\n"
            "650: 2 puts 4 with 1\n"
            "700: 2 waits for 64 with 0\n");
}

TEST(Communication, InsideANodeThereIsNoTraffic) {
  const auto inside = asked(1, model::Op::fma_put, 3, 3, 64, 10, 100);
  EXPECT_EQ(made_of({inside}), "");
  EXPECT_EQ(made_of({}), "");
  EXPECT_EQ(made_of({inside, asked(2, model::Op::send, 0, 3, 0, 20, 30)}),
            "20: 0 puts 1 with 3\n"
            "30: 3 waits for 1 with 0\n");
}

TEST(Communication, WhatIsLongerThanARecordMayBeIsSeveral) {
  EXPECT_EQ(made_of({asked(1, model::Op::bte_put, 0, 1, (std::uint64_t{1} << 30) + 5, 10, 70)}),
            "10: 0 puts 1073741824 with 1\n"
            "10: 0 puts 5 with 1\n"
            "70: 1 waits for 1073741824 with 0\n"
            "70: 1 waits for 5 with 0\n");
}

// A PE writes its record as it likes: one line stands for 2^34 pieces of memory.
TEST(Communication, AnOperationOfVeryManyBytesIsRefusedWithItsSize) {
  EXPECT_EQ(made_of({asked(1, model::Op::bte_put, 0, 1, UINT64_MAX, 10, 70)}),
            "PE 0 recorded an operation of 18446744073709551615 bytes: expected up to 1099511627776");
}

}  // namespace
}  // namespace orrery::tool
