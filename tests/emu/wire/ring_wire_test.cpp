// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/ring_wire.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace orrery::wire {
namespace {

constexpr std::uint32_t kDataBytes = 4096;
constexpr std::uint32_t kLaneBytes = kLaneControlBytes + kDataBytes;

struct alignas(64) Line {
  std::byte bytes[64];
};

struct Lane {
  std::vector<Line> lines = std::vector<Line>(kLaneBytes / sizeof(Line));
  std::byte* base() { return lines[0].bytes; }
  std::byte* data() { return base() + kLaneControlBytes; }
  LaneControl& control() { return *reinterpret_cast<LaneControl*>(base()); }
  RingProducer producer() { return {base(), kLaneBytes}; }
  RingConsumer consumer() { return {base(), kLaneBytes}; }
  void set_mark(std::uint64_t at, std::uint64_t mark) { std::memcpy(data() + at, &mark, sizeof mark); }
};

PacketHeader header_of(std::uint64_t number, std::uint32_t payload_bytes) {
  PacketHeader header;
  header.verb = Verb::put;
  header.event_data = number;
  header.payload_bytes = payload_bytes;
  return header;
}

std::byte byte_of(std::uint64_t number, std::size_t i) {
  return static_cast<std::byte>(number * 31 + i * 7 + 1);
}

std::vector<std::byte> payload_of(std::uint64_t number, std::uint32_t bytes) {
  std::vector<std::byte> payload(bytes);
  for (std::size_t i = 0; i < bytes; ++i) payload[i] = byte_of(number, i);
  return payload;
}

Status send(RingProducer& to, std::uint64_t number, std::uint32_t bytes) {
  return to.try_send(header_of(number, bytes), payload_of(number, bytes));
}

// Self-validating: frames carry consecutive numbers, and payloads made from them.
struct Counting final : Sink {
  explicit Counting(std::uint64_t first = 0) : next(first) {}
  void deliver(const Packet& packet) override {
    EXPECT_EQ(packet.header.event_data, next) << "lost, doubled or out of order";
    next = packet.header.event_data + 1;
    for (std::size_t i = 0; i < packet.payload.size(); ++i) {
      if (packet.payload[i] != byte_of(packet.header.event_data, i)) {
        ADD_FAILURE() << "frame " << packet.header.event_data << " has wrong bytes at " << i;
        return;
      }
    }
  }
  std::uint64_t next;
};

TEST(RingWire, FramesOfEveryLengthArriveInOrderWhereverTheRingWraps) {
  Lane lane;
  RingProducer producer = lane.producer();
  RingConsumer consumer = lane.consumer();
  Counting sink;
  std::uint64_t number = 0;
  for (int lap = 0; lap < 50; ++lap) {
    for (std::uint32_t bytes = 0; bytes <= producer.max_payload(); bytes += 23) {
      ASSERT_TRUE(send(producer, number++, bytes).ok());
      while (consumer.poll(sink, 1) == 0 && consumer.ready()) {
      }
      ASSERT_EQ(sink.next, number);
    }
  }
  EXPECT_GT(producer.position(), 10 * kDataBytes) << "it did wrap";
  EXPECT_FALSE(consumer.broken());
}

TEST(RingWire, FullLaneTurnsFramesAwayAndWritesNothing) {
  Lane lane;
  RingProducer producer = lane.producer();
  RingConsumer consumer = lane.consumer();
  std::uint64_t number = 0;
  while (send(producer, number, 200).ok()) ++number;
  EXPECT_GE(number, kDataBytes / frame_bytes(200) - 1);
  const auto before = std::vector<std::byte>(lane.data(), lane.data() + kDataBytes);
  EXPECT_EQ(send(producer, number, 200).code(), Errc::not_done);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), lane.data()));
  Counting sink;
  while (consumer.poll(sink, 16) > 0) {
  }
  EXPECT_EQ(sink.next, number);
  EXPECT_TRUE(send(producer, number, 200).ok());
}

TEST(RingWire, SureRoomHoldsWhereverTheRingWraps) {
  // Frames that together take no more than sure_room_of() always fit an empty lane.
  for (std::uint32_t shift = 0; shift < kDataBytes; shift += kLineBytes) {
    Lane lane;
    lane.control().head = lane.control().produced = shift;
    RingProducer producer = lane.producer();
    const std::uint32_t payload = producer.max_payload();
    std::uint32_t used = 0;
    while (used + frame_bytes(payload) <= RingProducer::sure_room_of(kLaneBytes)) {
      ASSERT_TRUE(send(producer, 1, payload).ok()) << "from " << shift << " after " << used;
      used += frame_bytes(payload);
    }
  }
}

TEST(RingWire, OversizePayloadIsRefused) {
  Lane lane;
  RingProducer producer = lane.producer();
  EXPECT_EQ(send(producer, 0, producer.max_payload() + 1).code(), Errc::size);
  EXPECT_TRUE(send(producer, 0, producer.max_payload()).ok());
}

struct Corruption {
  const char* name;
  std::uint64_t mark;
  std::uint64_t at;  // where in the ring the consumer stands
  std::uint32_t payload_bytes;
};

class RingWireCorrupted : public ::testing::TestWithParam<Corruption> {};

INSTANTIATE_TEST_SUITE_P(
    Marks, RingWireCorrupted,
    ::testing::Values(
        Corruption{"unknown_tag", 0x1234'5678'0000'0080, 0, 0},
        Corruption{"no_length", std::uint64_t{kFrameTag} << 32, 0, 0},
        Corruption{"shorter_than_a_header", std::uint64_t{kFrameTag} << 32 | 64, 0, 0},
        Corruption{"not_whole_lines", std::uint64_t{kFrameTag} << 32 | 130, 0, 0},
        Corruption{"past_the_end", std::uint64_t{kFrameTag} << 32 | 256, kDataBytes - 128, 0},
        Corruption{"longer_than_the_ring", std::uint64_t{kFrameTag} << 32 | 0xffff'ffc0, 0, 0},
        Corruption{"skip_past_the_end", std::uint64_t{kSkipTag} << 32 | 256, kDataBytes - 128, 0},
        Corruption{"skip_of_nothing", std::uint64_t{kSkipTag} << 32, 0, 0},
        Corruption{"payload_longer_than_its_frame", std::uint64_t{kFrameTag} << 32 | 128, 0, 25},
        Corruption{"payload_of_4_gib", std::uint64_t{kFrameTag} << 32 | 128, 0, UINT32_MAX}),
    [](const auto& info) { return info.param.name; });

TEST_P(RingWireCorrupted, RefusesTheLaneForGoodAndSaysSo) {
  Lane lane;
  lane.control().head = lane.control().produced = GetParam().at;
  RingProducer producer = lane.producer();
  RingConsumer consumer = lane.consumer();
  const PacketHeader header = header_of(0, GetParam().payload_bytes);
  std::memcpy(lane.data() + GetParam().at + 8, &header, sizeof header);
  lane.set_mark(GetParam().at, GetParam().mark);
  struct None final : Sink {
    void deliver(const Packet&) override { ADD_FAILURE() << "nonsense was delivered"; }
  } none;
  EXPECT_FALSE(producer.refused());
  EXPECT_EQ(consumer.poll(none, 16), 0);
  EXPECT_TRUE(consumer.broken());
  EXPECT_TRUE(producer.refused());
  EXPECT_EQ(consumer.poll(none, 16), 0);
  EXPECT_EQ(lane.control().broken.load(), 1u) << "counted once";
}

TEST(RingWire, ShortFrameThatClaimsMoreThanALineRefusesTheLane) {
  struct None final : Sink {
    void deliver(const Packet&) override { ADD_FAILURE() << "nonsense was delivered"; }
  } none;
  for (const std::uint32_t frame_bytes : {kLineBytes, 2 * kLineBytes}) {
    Lane lane;
    RingConsumer consumer = lane.consumer();
    lane.data()[offsetof(ShortFrame, payload_bytes)] =
        static_cast<std::byte>(frame_bytes == kLineBytes ? 17 : 8);
    lane.set_mark(0, std::uint64_t{kShortTag} << 32 | frame_bytes);
    EXPECT_EQ(consumer.poll(none, 16), 0);
    EXPECT_TRUE(consumer.broken());
  }
}

TEST(RingWire, ShortFramesCarryEveryFieldThatTheyMayHave) {
  Lane lane;
  RingProducer producer = lane.producer();
  RingConsumer consumer = lane.consumer();
  PacketHeader sent;
  sent.verb = Verb::put;
  sent.flags = kWantsRemoteEvent | kWantsResponse | kLast;
  sent.source = 3;
  sent.domain = 7;
  sent.transaction = 0x12345678;
  sent.payload_bytes = kShortPayload;
  sent.key_index = 5;
  sent.key_generation = 6;
  sent.status = 9;
  sent.address = 0x7f00'0000'1010;
  sent.length = sent.part_bytes = kShortPayload;
  sent.event_data = 0x1122'3344'5566;
  const auto payload = payload_of(1, kShortPayload);
  ASSERT_TRUE(producer.try_send(sent, payload).ok());
  EXPECT_EQ(producer.position(), kLineBytes);
  struct One final : Sink {
    void deliver(const Packet& packet) override {
      header = packet.header;
      payload.assign(packet.payload.begin(), packet.payload.end());
    }
    PacketHeader header;
    std::vector<std::byte> payload;
  } one;
  ASSERT_EQ(consumer.poll(one, 16), 1);
  EXPECT_EQ(std::memcmp(&one.header, &sent, sizeof sent), 0);
  EXPECT_EQ(one.payload, payload);
}

TEST(RingWire, EndlessSkipsDoNotKeepAConsumer) {
  Lane lane;
  RingConsumer consumer = lane.consumer();
  for (std::uint64_t at = 0; at < kDataBytes; at += kLineBytes) {
    lane.set_mark(at, std::uint64_t{kSkipTag} << 32 | kLineBytes);
  }
  Counting sink;
  EXPECT_EQ(consumer.poll(sink, 4), 0);
  EXPECT_EQ(lane.control().head.load(), 4 * kLineBytes);
}

TEST(RingWire, PositionsThatAreNotWholeLinesStayInTheLane) {
  Lane lane;
  lane.control().head = kDataBytes - 1;
  lane.control().produced = kDataBytes - 3;
  RingProducer producer = lane.producer();
  RingConsumer consumer = lane.consumer();
  EXPECT_EQ(producer.position() % kLineBytes, 0u);
  EXPECT_TRUE(send(producer, 0, 8).ok());
  Counting sink;
  (void)consumer.poll(sink, 2);
  EXPECT_EQ(sink.next, 1u);
}

// A producer that dies after any of its stores. They are, for a frame that wraps: the zero behind the skip
// and its mark, words of the header and payload, the zero behind the frame and its mark, the count.
TEST(RingWire, SuccessorOfAProducerThatDiedAnywhereGoesOnWithoutLoss) {
  for (const bool consumer_lags : {false, true}) {
    for (int death = 0; death < 6; ++death) {
      for (std::uint64_t before = 0; before < 40; ++before) {
        Lane lane;
        RingConsumer consumer = lane.consumer();
        Counting sink;
        std::uint64_t number = 0;
        {
          RingProducer producer = lane.producer();
          for (; number < before; ++number) {
            ASSERT_TRUE(send(producer, number, static_cast<std::uint32_t>(number * 13 % 300)).ok());
            while (consumer.ready()) consumer.poll(sink, 16);
          }
          // One more, taken apart.
          const std::uint64_t start = producer.position();
          const std::uint64_t head = lane.control().head;
          const std::uint32_t bytes = frame_bytes(333);
          const auto at = static_cast<std::uint32_t>(start % kDataBytes);
          const std::uint32_t skip = bytes > kDataBytes - at ? kDataBytes - at : 0;
          Lane after = lane;
          RingProducer writer = after.producer();
          ASSERT_TRUE(send(writer, number, 333).ok());
          const std::uint64_t frame = (start + skip) % kDataBytes;
          std::uint64_t mark = 0;
          std::memcpy(&mark, after.data() + frame, 8);
          if (death >= 1 && skip != 0) {
            lane.set_mark(frame, 0);
            lane.set_mark(at, std::uint64_t{kSkipTag} << 32 | skip);
          }
          if (death >= 2) std::memcpy(lane.data() + frame + 8, after.data() + frame + 8, 70);
          if (death >= 3) std::memcpy(lane.data() + frame + 8, after.data() + frame + 8, bytes - 8);
          if (death >= 4) {
            lane.set_mark((frame + bytes) % kDataBytes, 0);
            lane.set_mark(frame, mark);
            ++number;
          }
          if (death >= 5) lane.control().produced = start + skip + bytes;
          ASSERT_EQ(lane.control().head.load(), head);
        }
        if (!consumer_lags) {
          while (consumer.ready()) consumer.poll(sink, 16);
        }
        RingProducer successor = lane.producer();
        for (int i = 0; i < 30; ++i, ++number) {
          ASSERT_TRUE(send(successor, number, 100).ok()) << "death " << death << " after " << before;
          while (consumer.ready()) consumer.poll(sink, 16);
          ASSERT_FALSE(consumer.broken());
          ASSERT_EQ(sink.next, number + 1) << "death " << death << " after " << before;
        }
      }
    }
  }
}

TEST(RingWire, SuccessorStartsRightWhileTheConsumerTakesTheLastFrameOut) {
  // The frame was published but not counted; the consumer has delivered it and not yet moved its head.
  Lane lane;
  RingConsumer consumer = lane.consumer();
  Counting sink;
  RingProducer producer = lane.producer();
  ASSERT_TRUE(send(producer, 0, 10).ok());
  lane.control().produced = 0;
  ASSERT_EQ(consumer.poll(sink, 1), 1);
  lane.control().head = 0;  // the store that is still to come
  RingProducer successor = lane.producer();
  EXPECT_EQ(successor.position(), frame_bytes(10));
  lane.control().head = frame_bytes(10);
  ASSERT_TRUE(send(successor, 1, 10).ok());
  EXPECT_EQ(consumer.poll(sink, 1), 1);
}

TEST(RingWire, SuccessorOfAConsumerGoesOnBehindWhatItsPredecessorTookOut) {
  Lane lane;
  RingProducer producer = lane.producer();
  std::uint64_t number = 0;
  Counting sink;
  for (int generation = 0; generation < 40; ++generation) {
    RingConsumer consumer = lane.consumer();
    for (int i = 0; i < 3; ++i, ++number) ASSERT_TRUE(send(producer, number, 100).ok());
    // It dies with one frame waiting.
    const int waiting = generation == 0 ? 3 : 4;
    ASSERT_EQ(consumer.poll(sink, waiting - 1), waiting - 1);
  }
  EXPECT_EQ(sink.next, number - 1);
}

// What earlier laps left in the ring is never taken for a frame, whatever it was.
TEST(RingWire, BytesOfEarlierLapsAreNoMarks) {
  Lane lane;
  RingProducer producer = lane.producer();
  RingConsumer consumer = lane.consumer();
  std::mt19937 random(11);
  struct Any final : Sink {
    void deliver(const Packet& packet) override { ++count, last = packet.header.event_data; }
    std::uint64_t count = 0;
    std::uint64_t last = 0;
  } sink;
  // A payload in which every word is the mark of a short frame.
  std::vector<std::byte> payload(producer.max_payload());
  const std::uint64_t mark = std::uint64_t{kShortTag} << 32 | kLineBytes;
  for (std::size_t i = 0; i + 8 <= payload.size(); i += 8) std::memcpy(&payload[i], &mark, 8);
  for (std::uint64_t number = 1; number < 2000; ++number) {
    const auto bytes = static_cast<std::uint32_t>(random() % payload.size());
    // Now and then another process takes an end over.
    if (number % 97 == 0) producer = lane.producer();
    if (number % 61 == 0) consumer = lane.consumer();
    // The consumer lags until the lane is full.
    while (!producer.try_send(header_of(number, bytes), std::span(payload).first(bytes)).ok()) {
      const std::uint64_t before = lane.control().head;
      consumer.poll(sink, 3);
      ASSERT_FALSE(consumer.broken());
      ASSERT_GT(lane.control().head.load(), before);
    }
    if (number % 50 != 0) continue;
    while (consumer.ready()) consumer.poll(sink, 16);
    ASSERT_FALSE(consumer.broken());
    ASSERT_EQ(sink.count, number);
    ASSERT_EQ(sink.last, number);
  }
}

TEST(RingWire, FramesBetweenTwoThreadsArriveWholeAndInOrder) {
  // Property: the consumer sees numbers 0, 1, 2 ... with the bytes that belong to each.
  constexpr std::uint64_t kFrames = 20'000;
  Lane lane;
  std::thread sender([&] {
    RingProducer producer = lane.producer();
    std::mt19937 random(7);
    for (std::uint64_t number = 0; number < kFrames; ++number) {
      const auto bytes = static_cast<std::uint32_t>(random() % producer.max_payload());
      while (send(producer, number, bytes).code() == Errc::not_done) std::this_thread::yield();
    }
  });
  RingConsumer consumer = lane.consumer();
  Counting sink;
  while (sink.next < kFrames && !consumer.broken()) {
    if (consumer.poll(sink, 16) == 0) std::this_thread::yield();
  }
  sender.join();
  EXPECT_FALSE(consumer.broken());
}

}  // namespace
}  // namespace orrery::wire
