// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/execute.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace orrery::nic {
namespace {

using wire::Verb;

constexpr std::uint64_t kRegionBytes = 2 * kPageBytes;

enum class Region { plain, read_only, segmented, withdrawn };

// One packet against one registration of kRegionBytes bytes, by name. Addresses are relative to its begin.
struct Row {
  const char* name;
  Verb verb;
  Region region;
  std::uint64_t address;
  std::uint64_t length;
  std::uint64_t offset;
  std::uint64_t part;
  Errc expected;
  std::uint16_t domain = 7;
  int generation_off = 0;
  std::uint16_t index_off = 0;
  std::uint64_t flag_at = UINT64_MAX;  // a sync flag, if any
};

constexpr Row kRows[] = {
    {"put_whole", Verb::put, Region::plain, 0, kRegionBytes, 0, kRegionBytes, Errc::ok},
    {"put_nothing", Verb::put, Region::plain, 0, 0, 0, 0, Errc::ok},
    {"put_nothing_at_the_end", Verb::put, Region::plain, kRegionBytes, 0, 0, 0, Errc::ok},
    {"put_last_byte", Verb::put, Region::plain, kRegionBytes - 1, 1, 0, 1, Errc::ok},
    {"put_one_past", Verb::put, Region::plain, kRegionBytes - 1, 2, 0, 2, Errc::bounds},
    {"put_before", Verb::put, Region::plain, UINT64_MAX, 1, 0, 1, Errc::bounds},
    {"put_that_wraps_the_address_space", Verb::put, Region::plain, 8, UINT64_MAX - 4, 0, 8, Errc::bounds},
    {"put_part", Verb::put, Region::plain, 0, 100, 60, 40, Errc::ok},
    {"put_part_past_its_operation", Verb::put, Region::plain, 0, 100, 61, 40, Errc::bounds},
    {"put_part_that_starts_past_its_operation", Verb::put, Region::plain, 0, 100, 101, 0, Errc::bounds},
    {"put_part_whose_operation_is_too_long", Verb::put, Region::plain, 0, kRegionBytes + 1, 0, 8,
     Errc::bounds},
    {"put_read_only", Verb::put, Region::read_only, 0, 8, 0, 8, Errc::permission},
    {"put_nothing_read_only", Verb::put, Region::read_only, 0, 0, 0, 0, Errc::permission},
    {"put_other_domain", Verb::put, Region::plain, 0, 8, 0, 8, Errc::protection, 8},
    {"put_older_key", Verb::put, Region::plain, 0, 8, 0, 8, Errc::invalid_handle, 7, -1},
    {"put_newer_key", Verb::put, Region::plain, 0, 8, 0, 8, Errc::invalid_handle, 7, 1},
    {"put_empty_place", Verb::put, Region::plain, 0, 8, 0, 8, Errc::invalid_handle, 7, 0, 100},
    {"put_no_such_place", Verb::put, Region::plain, 0, 8, 0, 8, Errc::invalid_handle, 7, 0, 5000},
    {"put_withdrawn", Verb::put, Region::withdrawn, 0, 8, 0, 8, Errc::invalid_handle},
    {"put_segments", Verb::put, Region::segmented, 10, 6'000, 0, 6'000, Errc::ok},
    {"put_segments_one_past", Verb::put, Region::segmented, kRegionBytes - 3, 4, 0, 4, Errc::bounds},
    {"put_flag", Verb::put, Region::plain, 0, 8, 0, 8, Errc::ok, 7, 0, 0, kRegionBytes - 8},
    {"put_flag_past", Verb::put, Region::plain, 0, 8, 0, 8, Errc::bounds, 7, 0, 0, kRegionBytes - 7},
    {"get_whole", Verb::get, Region::plain, 0, kRegionBytes, 0, kRegionBytes, Errc::ok},
    {"get_one_past", Verb::get, Region::plain, kRegionBytes - 1, 2, 0, 2, Errc::bounds},
    {"get_part_past_its_operation", Verb::get, Region::plain, 0, 100, 61, 40, Errc::bounds},
    {"get_read_only", Verb::get, Region::read_only, 0, 8, 0, 8, Errc::ok},
    {"get_other_domain", Verb::get, Region::plain, 0, 8, 0, 8, Errc::protection, 8},
    {"get_older_key", Verb::get, Region::plain, 0, 8, 0, 8, Errc::invalid_handle, 7, -1},
    {"get_withdrawn", Verb::get, Region::withdrawn, 0, 8, 0, 8, Errc::invalid_handle},
    {"get_segments", Verb::get, Region::segmented, 10, 6'000, 0, 6'000, Errc::ok},
    {"cq_write", Verb::cq_write, Region::plain, 0, 0, 0, 0, Errc::ok},
    {"cq_write_asks_for_no_place", Verb::cq_write, Region::plain, UINT64_MAX / 2, 8, 0, 0, Errc::ok},
    {"cq_write_read_only", Verb::cq_write, Region::read_only, 0, 0, 0, 0, Errc::ok},
    {"cq_write_other_domain", Verb::cq_write, Region::plain, 0, 0, 0, 0, Errc::protection, 8},
    {"cq_write_newer_key", Verb::cq_write, Region::plain, 0, 0, 0, 0, Errc::invalid_handle, 7, 1},
    {"cq_write_withdrawn", Verb::cq_write, Region::withdrawn, 0, 0, 0, 0, Errc::invalid_handle},
    {"no_verb", Verb::none, Region::plain, 0, 8, 0, 8, Errc::illegal_op},
    {"response_as_request", Verb::response, Region::plain, 0, 8, 0, 8, Errc::illegal_op},
    {"unknown_verb", static_cast<Verb>(200), Region::plain, 0, 8, 0, 8, Errc::illegal_op},
};

class ExecuteRows : public ::testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(Table, ExecuteRows, ::testing::ValuesIn(kRows),
                         [](const auto& info) { return info.param.name; });

TEST_P(ExecuteRows, GivesItsOutcomeAndTouchesNothingElse) {
  const Row& row = GetParam();
  box::World world(1, box::Path::direct);
  Nic& nic = world[0].nic();
  void* const pages = mmap(nullptr, kRegionBytes + 2 * kPageBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* const memory = static_cast<std::uint8_t*>(pages) + kPageBytes;
  std::iota(memory, memory + kRegionBytes, std::uint8_t{1});
  const auto base = reinterpret_cast<std::uint64_t>(memory);
  CompletionQueue* const queue = nic.create_queue(4, 0).value();
  const Segment segments[] = {{base, 3'000}, {base + 3'000, kRegionBytes - 3'000}};
  const MemKey key = row.region == Region::segmented
                         ? nic.regions().register_segments(world[0].port(), segments, 0, queue).value()
                         : nic.register_region(world[0].port(), base, kRegionBytes,
                                               row.region == Region::read_only ? kReadOnly : 0, queue)
                               .value();
  if (row.region == Region::withdrawn) {
    ASSERT_TRUE(nic.deregister(key).ok());
  }

  std::vector<std::byte> payload(row.verb == Verb::put ? row.part : 0, std::byte{0xee});
  std::vector<std::byte> out(row.verb == Verb::get ? row.part : 0);
  const std::uint64_t zero = row.region == Region::segmented ? 0 : base;
  wire::PacketHeader header;
  header.verb = row.verb;
  header.flags = wire::kLast | wire::kWantsRemoteEvent;
  header.domain = row.domain;
  header.key_index = static_cast<std::uint16_t>(key.index + row.index_off);
  header.key_generation = static_cast<std::uint16_t>(key.generation + row.generation_off);
  header.address = zero + row.address;
  header.length = row.length;
  header.offset = row.offset;
  header.event_data = 0x1234;
  if (row.flag_at != UINT64_MAX) {
    header.flags |= wire::kHasSyncFlag;
    header.aux = zero + row.flag_at;
    header.operand[0] = 0xdddd'dddd'dddd'dddd;
  }
  IdentityMap identity;
  EXPECT_EQ(execute({nic.view(), &identity}, header, payload, out), row.expected);

  const bool done = row.expected == Errc::ok;
  const std::uint64_t from = row.address + row.offset;
  for (std::uint64_t i = 0; i < kRegionBytes; ++i) {
    std::uint8_t expected = static_cast<std::uint8_t>(i + 1);
    if (done && i >= from && i - from < payload.size()) expected = 0xee;
    if (done && row.flag_at != UINT64_MAX && i >= row.flag_at && i < row.flag_at + 8) expected = 0xdd;
    ASSERT_EQ(memory[i], expected) << "byte " << i;
  }
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(static_cast<std::uint8_t>(out[i]), done ? static_cast<std::uint8_t>(from + i + 1) : 0)
        << "byte " << i;
  }
  Event event;
  EXPECT_EQ(queue->take(&event), done ? Errc::ok : Errc::not_done);
  if (done) {
    EXPECT_EQ(event.data, 0x1234u);
    EXPECT_EQ(event.kind, row.verb == Verb::cq_write ? EventKind::cq_write : EventKind::remote);
  }
  munmap(pages, kRegionBytes + 2 * kPageBytes);
}

TEST(Execute, OnlyTheLastPacketRaisesTheEventAndStoresTheFlag) {
  box::World world(1, box::Path::direct);
  Nic& nic = world[0].nic();
  alignas(8) std::uint64_t memory[4] = {};
  CompletionQueue* const queue = nic.create_queue(4, 0).value();
  const auto base = reinterpret_cast<std::uint64_t>(memory);
  const MemKey key = nic.register_region(world[0].port(), base, sizeof memory, 0, queue).value();
  const std::uint64_t value = 42;
  wire::PacketHeader header;
  header.verb = Verb::put;
  header.flags = wire::kWantsRemoteEvent | wire::kHasSyncFlag;
  header.domain = 7;
  header.key_index = key.index;
  header.key_generation = key.generation;
  header.address = base;
  header.length = 16;
  header.aux = base + 24;
  header.operand[0] = 9;
  IdentityMap identity;
  const auto payload = std::as_bytes(std::span(&value, 1));
  Event event;
  EXPECT_EQ(execute({nic.view(), &identity}, header, payload, {}), Errc::ok);
  EXPECT_EQ(memory[3], 0u);
  EXPECT_EQ(queue->take(&event), Errc::not_done);
  header.offset = 8;
  header.flags |= wire::kLast;
  EXPECT_EQ(execute({nic.view(), &identity}, header, payload, {}), Errc::ok);
  EXPECT_EQ(memory[3], 9u);
  EXPECT_EQ(queue->take(&event), Errc::ok);
}

}  // namespace
}  // namespace orrery::nic
