// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Bytes from a peer: what it wrote into its request lane and into the answers to ours, the words of a
// packet's header, and the header of its segment. The first byte says which.
#include "emu/base/log.hpp"
#include "tests/emu/nic/box.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using namespace orrery;
using namespace orrery::nic;

constexpr std::uint32_t kLaneBytes = wire::kLaneControlBytes + wire::kMinLaneDataBytes;
constexpr std::size_t kMemoryBytes = 2 * kPageBytes;

// Node 0 listens; node 1, where it is needed, is the peer that went mad.
struct Scene {
  explicit Scene(int nodes) : world(nodes, box::Path::frame, {}, MAP_PRIVATE, kLaneBytes) {
    void* const pages =
        mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ORRERY_CHECK(pages != MAP_FAILED, "no memory");
    memory = static_cast<std::byte*>(pages);
    queue = world[0].nic().create_queue(8, 0).value();
    key =
        world[0]
            .nic()
            .register_region(world[0].port(), reinterpret_cast<std::uint64_t>(memory), kMemoryBytes, 0, queue)
            .value();
    endpoint = world.endpoint(0, 1, world[0].nic().create_queue(8, 0).value());
  }
  ~Scene() {
    endpoint.reset();
    munmap(memory, kMemoryBytes);
  }

  // A header whose words are the fuzzer's, but which names our region where it says so.
  wire::PacketHeader header_from(const std::uint8_t* data, std::size_t size) const {
    wire::PacketHeader header;
    std::memcpy(static_cast<void*>(&header), data, std::min(size, sizeof header));
    header.source = 1;
    if ((header.reserved[0] & 1) != 0) {
      header.domain = 7;
      header.key_index = key.index;
      header.key_generation = key.generation;
      header.address = reinterpret_cast<std::uint64_t>(memory) + header.address % (2 * kMemoryBytes);
    }
    return header;
  }

  void run() {
    for (int i = 0; i < 8; ++i) {
      world[0].nic().serve();
      Event event;
      while (world[0].nic().poll(*queue, &event) == Errc::ok) {
      }
      while (world[0].nic().poll(*endpoint->queue, &event) == Errc::ok) {
        (void)endpoint->queue->completed(event.transaction(), event.status);
      }
    }
  }

  box::World world;
  std::byte* memory = nullptr;
  CompletionQueue* queue = nullptr;
  MemKey key;
  std::unique_ptr<Endpoint> endpoint;
};

void mark_lane_used(const NicView& nic) {
  nic.service().active_lanes[0].fetch_or(2);
  nic.service().lane_changes.store(1);
}

void fuzz_request_lane(Scene& scene, const std::uint8_t* data, std::size_t size) {
  const NicView nic = scene.world[0].nic().view();
  std::memcpy(nic.request_lane(1) + wire::kLaneControlBytes, data,
              std::min<std::size_t>(size, wire::kMinLaneDataBytes));
  mark_lane_used(nic);
  scene.run();
}

void fuzz_packets(Scene& scene, const std::uint8_t* data, std::size_t size) {
  const NicView nic = scene.world[0].nic().view();
  mark_lane_used(nic);
  wire::RingProducer lane(nic.request_lane(1), kLaneBytes);
  for (; size >= sizeof(wire::PacketHeader); data += sizeof(wire::PacketHeader)) {
    size -= sizeof(wire::PacketHeader);
    wire::PacketHeader header = scene.header_from(data, sizeof header);
    const std::vector<std::byte> payload(header.payload_bytes % (lane.max_payload() + 1), std::byte{7});
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    (void)lane.try_send(header, payload);
    scene.world[0].nic().serve();
  }
  scene.run();
}

void fuzz_answers(Scene& scene, const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> room(500);
  Request request;
  request.op = Op::get;
  request.flags = kLocalEvent;
  request.local_address = reinterpret_cast<std::uint64_t>(room.data());
  request.remote_address = reinterpret_cast<std::uint64_t>(scene.memory);
  request.length = room.size();
  // The peer's table grants it.
  request.remote =
      scene.world[1]
          .nic()
          .register_region(scene.world[1].port(), request.remote_address, kMemoryBytes, 0, nullptr)
          .value();
  for (int i = 0; i < 3; ++i) (void)scene.world[0].nic().post(*scene.endpoint, request);
  const NicView peer = scene.world[1].nic().view();
  if (size > 0 && (data[0] & 1) != 0) {
    std::memcpy(peer.response_lane(0) + wire::kLaneControlBytes, data + 1,
                std::min<std::size_t>(size - 1, wire::kMinLaneDataBytes));
  } else if (size > 0) {
    // Answers that nearly fit: the fuzzer's words over a real request's transaction.
    wire::RingProducer lane(peer.response_lane(0), kLaneBytes);
    wire::PacketHeader real;
    std::memcpy(static_cast<void*>(&real), peer.request_lane(0) + wire::kLaneControlBytes + 8, sizeof real);
    for (++data, --size; size >= 16; data += 16, size -= 16) {
      wire::PacketHeader header;
      header.verb = wire::Verb::response;
      header.transaction = real.transaction + data[0] % 4;
      header.status = data[1];
      std::memcpy(&header.offset, data + 8, 8);
      const std::vector<std::byte> payload(data[2] % (lane.max_payload() + 1), std::byte{9});
      header.payload_bytes = static_cast<std::uint32_t>(payload.size());
      (void)lane.try_send(header, payload);
    }
  }
  scene.run();
  scene.world.kill(1);
  scene.run();
  ORRERY_CHECK(scene.endpoint->in_flight.load() == 0, "{} operations never ended",
               scene.endpoint->in_flight.load());
}

void fuzz_segment(const std::uint8_t* data, std::size_t size) {
  alignas(4096) static std::byte segment[kLanesOffset + 2 * kLaneBytes + 4096];
  const Geometry geometry{.lane_count = 1, .lane_bytes = kLaneBytes, .arena_bytes = 4096};
  std::memset(segment, 0, sizeof segment);
  (void)NicView::create(segment, geometry, 0, 1, false);
  log::g_level.store(log::Level::off, std::memory_order_relaxed);  // another version is told of each time
  // Words of the header and of its table of areas, each where the fuzzer says.
  for (; size >= 9; data += 9, size -= 9) {
    const std::size_t at = data[0] < 128 ? data[0] % 92 : 128 + (data[0] - 128u) * 2;
    std::memcpy(segment + at, data + 1, 8);
  }
  const auto view = NicView::open(segment, sizeof segment);
  if (!view.ok()) return;
  // Whatever it says now, the lanes and the arena lie inside.
  const auto inside = [&](const std::byte* at, std::uint64_t bytes) {
    return at >= segment && at + bytes <= segment + sizeof segment;
  };
  for (std::uint32_t i = 0; i < view.value().lane_count(); ++i) {
    ORRERY_CHECK(inside(view.value().response_lane(i), view.value().lane_bytes()), "lane {} is outside", i);
  }
  wire::RingProducer lane(view.value().request_lane(0), view.value().lane_bytes());
  const std::vector<std::byte> payload(lane.max_payload());
  (void)lane.try_send({}, payload);
  if (auto* words = view.value().arena<std::uint64_t>(view.value().header().arena_offset, 1)) *words = 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t kind = data[0] % 4;
  ++data;
  --size;
  if (kind == 3) {
    fuzz_segment(data, size);
    return 0;
  }
  Scene scene(kind == 2 ? 2 : 1);
  if (kind == 0) fuzz_request_lane(scene, data, size);
  if (kind == 1) fuzz_packets(scene, data, size);
  if (kind == 2) fuzz_answers(scene, data, size);
  return 0;
}
