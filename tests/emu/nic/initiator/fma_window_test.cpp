// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/initiator/fma_window.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <random>

namespace orrery::nic {
namespace {

using box::Path;

constexpr int kNodes = 5;
constexpr std::uint64_t kBytes = 16 * kPageBytes;

TEST(NetworkAddress, HasTheHardwaresWidths) {
  EXPECT_TRUE((NetworkAddress{(1u << 18) - 1, (1u << 12) - 1, (1ull << 40) - 1}.fits()));
  EXPECT_FALSE((NetworkAddress{1u << 18, 0, 0}.fits()));
  EXPECT_FALSE((NetworkAddress{0, 1u << 12, 0}.fits()));
  EXPECT_FALSE((NetworkAddress{0, 0, 1ull << 40}.fits()));
  const std::uint64_t word = launch_word((1u << 18) - 1, (1ull << 40) - 8);
  EXPECT_EQ(launch_pe(word), (1u << 18) - 1);
  EXPECT_EQ(launch_offset(word), (1ull << 40) - 8);
}

TEST(NodeTranslation, MakesAJobOfNodesThatDoNotFollowEachOther) {
  constexpr std::uint32_t kGroups[] = {100, 8, 4000};
  const NodeTranslation table{kGroups, 4};
  EXPECT_EQ(table.physical(0).value(), 100u);
  EXPECT_EQ(table.physical(3).value(), 103u);
  EXPECT_EQ(table.physical(4).value(), 8u);
  EXPECT_EQ(table.physical(11).value(), 4003u);
  EXPECT_EQ(table.physical(12).code(), Errc::bounds);
  EXPECT_EQ((NodeTranslation{kGroups, 3}.physical(0).code()), Errc::invalid_param);
  constexpr std::uint32_t kTooFar[] = {(1u << 18) - 2};
  EXPECT_TRUE((NodeTranslation{kTooFar, 4}.physical(1).ok()));
  EXPECT_EQ((NodeTranslation{kTooFar, 4}.physical(2).code()), Errc::bounds);
}

TEST(WindowShape, SelectsPeAndAddressByBits) {
  const WindowShape shape{.base_pe = 3, .base_offset = 1000, .pe_shift = 6, .pe_bits = 2};
  EXPECT_EQ(shape.pe_of(0), 3u);
  EXPECT_EQ(shape.pe_of(63), 3u);
  EXPECT_EQ(shape.pe_of(64), 4u);
  EXPECT_EQ(shape.pe_of(255), 6u);
  EXPECT_EQ(shape.pe_of(256), 3u);
  EXPECT_EQ(shape.address_of(0), 1000u);
  EXPECT_EQ(shape.address_of(65), 1001u);
  EXPECT_EQ(shape.address_of(256), 1064u);
  EXPECT_EQ(shape.address_of(256 + 64 + 5), 1069u);
  EXPECT_FALSE((WindowShape{.pe_shift = 2}.is_valid()));
  EXPECT_FALSE((WindowShape{.pe_bits = 19}.is_valid()));
  EXPECT_FALSE((WindowShape{.base_offset = 1ull << 40}.is_valid()));
  EXPECT_FALSE((WindowShape{.pe_shift = 30, .pe_bits = 11}.is_valid()));
}

// kNodes nodes with memory each; node 0 stores through a window.
class Window : public ::testing::TestWithParam<Path> {
 protected:
  Window() : world(kNodes, GetParam()) {
    for (int node = 0; node < kNodes; ++node) {
      void* const pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      memory.push_back(static_cast<std::uint8_t*>(pages));
      const auto at = reinterpret_cast<std::uint64_t>(pages);
      const MemKey key =
          world[node].nic().register_region(world[node].port(), at, kBytes, 0, nullptr).value();
      places.push_back({static_cast<std::uint32_t>(node), key, at});
    }
  }
  ~Window() override {
    for (auto* pages : memory) munmap(pages, kBytes);
  }
  std::unique_ptr<FmaWindow> open(const WindowShape& shape) {
    auto opened = FmaWindow::open(world[0].nic(), world[0].port(), shape, places);
    EXPECT_TRUE(opened.ok());
    return std::move(opened).value();
  }
  // Ends the transaction and waits for it; its status.
  Errc settle(FmaWindow& window) {
    const auto name = window.end();
    EXPECT_TRUE(name.ok());
    Errc status = Errc::ok;
    for (int i = 0; i < 10'000; ++i) {
      const Errc found = window.test(name.value(), &status);
      if (found == Errc::ok) {
        EXPECT_EQ(window.test(name.value(), &status), Errc::invalid_param) << "the name is free";
        return status;
      }
      EXPECT_EQ(found, Errc::not_done);
      world.serve_all();
    }
    return Errc::timeout;
  }

  box::World world;
  std::vector<std::uint8_t*> memory;
  std::vector<WindowPlace> places;
};

INSTANTIATE_TEST_SUITE_P(Paths, Window, ::testing::Values(Path::direct, Path::frame, Path::adopt),
                         [](const auto& info) {
                           return info.param == Path::direct  ? "Direct"
                                  : info.param == Path::frame ? "Frame"
                                                              : "Adopt";
                         });

TEST_P(Window, OneBlockScattersAPieceToEachPe) {
  for (const unsigned shift : {3u, 6u, 7u, 8u}) {
    const WindowShape shape{.base_pe = 1, .base_offset = 4096, .pe_shift = shift, .pe_bits = 2};
    const auto window = open(shape);
    std::vector<std::byte> block(shape.granularity() * 4 * 3);
    std::mt19937 random(shift);
    for (auto& byte : block) byte = static_cast<std::byte>(random());
    for (auto* pages : memory) std::memset(pages, 0, kBytes);
    // Twice: the first store takes the slow path.
    for (int round = 0; round < 2; ++round) {
      ASSERT_EQ(window->begin(), Errc::ok);
      ASSERT_EQ(window->store(0, block.data(), block.size()), Errc::ok);
      ASSERT_EQ(settle(*window), Errc::ok);
    }
    for (std::uint64_t i = 0; i < block.size(); ++i) {
      ASSERT_EQ(memory[shape.pe_of(i)][shape.address_of(i)], static_cast<std::uint8_t>(block[i])) << i;
    }
    for (int node : {0})
      EXPECT_EQ(std::count(memory[node], memory[node] + kBytes, 0), std::ptrdiff_t(kBytes));
  }
}

// Twelve PEs that two nodes play, a registration each; node 0 stores whole lines to them. The parameter:
// whether there is a board to announce that on.
class Lines : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr std::uint32_t kPes = 12;
  Lines()
      : world(3, Path::direct, {}, MAP_PRIVATE, box::World::kLaneBytes, nullptr, GetParam()),
        block(16 * kPes * 64) {
    for (std::uint32_t pe = 0; pe < kPes; ++pe) {
      const auto at = reinterpret_cast<std::uint64_t>(pages + pe * kPageBytes);
      box::Node& node = world[owner_of(pe)];
      const MemKey key = node.nic().register_region(node.port(), at, kPageBytes, 0, nullptr).value();
      places.push_back({static_cast<std::uint32_t>(owner_of(pe)), key, at});
    }
    window = FmaWindow::open(world[0].nic(), world[0].port(), {.base_pe = 2, .pe_bits = 3}, places).value();
  }
  ~Lines() override {
    window.reset();
    munmap(pages, kPes * kPageBytes);
  }
  static int owner_of(std::uint32_t pe) { return 1 + static_cast<int>(pe % 2); }
  // Of the whole transaction.
  Errc store(std::uint64_t offset, std::uint64_t bytes) {
    for (auto& byte : block) byte = static_cast<std::byte>(random());
    EXPECT_EQ(window->begin(), Errc::ok);
    EXPECT_EQ(window->store(offset, block.data(), bytes), Errc::ok);
    Errc status = Errc::ok;
    const std::uint32_t name = window->end().value();
    while (window->test(name, &status) == Errc::not_done) world.serve_all();
    return status;
  }
  // How many of the first eight lines of the block are where a store at offset 0 puts them.
  int arrived() const {
    int lines = 0;
    for (std::uint32_t i = 0; i < 8; ++i)
      lines += std::memcmp(pages + (2 + i) * kPageBytes, block.data() + i * 64, 64) == 0 ? 1 : 0;
    return lines;
  }
  std::atomic<std::uint64_t>& announcement() { return world.board()->lines[0].port[0]; }

  std::uint8_t* const pages = static_cast<std::uint8_t*>(
      mmap(nullptr, kPes* kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  box::World world;
  std::vector<WindowPlace> places;
  std::unique_ptr<FmaWindow> window;
  std::vector<std::byte> block;
  std::mt19937_64 random{7};
};
INSTANTIATE_TEST_SUITE_P(Boards, Lines, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Board" : "NoBoard"; });

TEST_P(Lines, GoToEveryPeInRowsAndPartsOfRows) {
  std::vector<std::uint8_t> model(kPes * kPageBytes);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t offset = random() % 64 * 64;
    const std::uint64_t bytes = round % 3 == 0 ? 512 : random() % 64 * 64;
    ASSERT_EQ(store(offset, bytes), Errc::ok);
    for (std::uint64_t i = 0; i < bytes; ++i) {
      const std::uint64_t at = window->shape().pe_of(offset + i) * kPageBytes;
      model[at + window->shape().address_of(offset + i)] = static_cast<std::uint8_t>(block[i]);
    }
    ASSERT_EQ(std::memcmp(pages, model.data(), model.size()), 0) << round;
  }
}

TEST_P(Lines, NoneGoesWhereTheOwnerHasWithdrawnWhatWasGranted) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(store(0, 512), Errc::ok);
  ASSERT_TRUE(world[owner_of(5)].nic().deregister(places[5].key).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(store(0, 512), Errc::invalid_handle);
    EXPECT_EQ(arrived(), 7) << "all but that one";
  }
}

TEST_P(Lines, NoneGoesToTheDead) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(store(0, 512), Errc::ok);
  world.kill(2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(store(0, 512), Errc::unreachable);
    EXPECT_EQ(arrived(), 4);
  }
}

TEST_P(Lines, GoDirectAgainWhenSomethingElseWasWithdrawn) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(store(0, 512), Errc::ok);
  ASSERT_TRUE(world[owner_of(1)].nic().deregister(places[1].key).ok()) << "no PE of the row";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(store(0, 512), Errc::ok);
    EXPECT_EQ(arrived(), 8);
  }
}

struct Seen {
  static inline std::uint8_t* page;
  static inline const std::atomic<std::uint64_t>* word;
  static inline std::uint64_t in_the_middle;
  static void look(int) {
    in_the_middle = word->load();
    mprotect(page, kPageBytes, PROT_READ | PROT_WRITE);
  }
};

TEST_P(Lines, AreAnnouncedToAllOwnersWhileTheyAreStored) {
  if (!GetParam()) return;  // then each lane announces itself, as any access does
  for (const std::uint64_t bytes : {512, 192}) {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(store(0, bytes), Errc::ok);
    Seen::page = pages + 4 * kPageBytes;
    Seen::word = &announcement();
    Seen::in_the_middle = 0;
    struct sigaction look {};
    struct sigaction before {};
    look.sa_handler = Seen::look;
    ASSERT_EQ(sigaction(SIGSEGV, &look, &before), 0);
    mprotect(Seen::page, kPageBytes, PROT_READ);
    ASSERT_EQ(store(0, bytes), Errc::ok);
    sigaction(SIGSEGV, &before, nullptr);
    for (std::uint32_t pe = 2; pe < 10; ++pe) {
      const MemKey& key = places[pe].key;
      EXPECT_TRUE(may_touch(Seen::in_the_middle, region_mark(key.process, key.index))) << pe;
    }
    EXPECT_EQ(announcement() % 2, 0u) << "it is over";
    EXPECT_EQ(announcement(), Seen::in_the_middle + 1);
  }
}

TEST_P(Lines, OfADeadProcessAreStoredNoMore) {
  if (!GetParam()) return;
  ASSERT_EQ(store(0, 512), Errc::ok);
  announcement() = announcement() + 1;
  auto& quiet = world.board()->lines[0].port[4];
  quiet = 6;
  world.kill(0);
  EXPECT_EQ(announcement() % 2, 0u);
  EXPECT_EQ(quiet, 6u);
}

TEST_P(Window, AnyPartOfItMayBeStored) {
  const WindowShape shape{.pe_shift = 6, .pe_bits = 2};
  const auto window = open(shape);
  std::mt19937_64 random(5);
  std::vector<std::vector<std::uint8_t>> model(kNodes, std::vector<std::uint8_t>(kBytes));
  std::vector<std::byte> block(700);
  for (int round = 0; round < 200; ++round) {
    for (auto& byte : block) byte = static_cast<std::byte>(random());
    const std::uint64_t offset = random() % 3000;
    const std::uint64_t bytes = random() % block.size();
    ASSERT_EQ(window->begin(), Errc::ok);
    ASSERT_EQ(window->store(offset, block.data(), bytes), Errc::ok);
    ASSERT_EQ(settle(*window), Errc::ok);
    for (std::uint64_t i = 0; i < bytes; ++i) {
      model[shape.pe_of(offset + i)][shape.address_of(offset + i)] = static_cast<std::uint8_t>(block[i]);
    }
  }
  for (int node = 0; node < kNodes; ++node)
    EXPECT_EQ(std::memcmp(memory[node], model[static_cast<std::size_t>(node)].data(), kBytes), 0) << node;
}

TEST_P(Window, LaunchesReachAnyPeAndOffset) {
  const auto window = open({.pe_bits = 0});
  ASSERT_EQ(window->begin(), Errc::ok);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto pe = static_cast<std::uint32_t>(i % kNodes);
    Errc launched = Errc::no_resource;
    // By frame a NIC has 1,024 packets on their way at most.
    while ((launched = window->launch(launch_word(pe, i / kNodes * 8), i + 1)) == Errc::no_resource)
      world.serve_all();
    ASSERT_EQ(launched, Errc::ok);
    if (i % 50 == 0) world.serve_all();
  }
  ASSERT_EQ(settle(*window), Errc::ok);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, memory[i % kNodes] + i / kNodes * 8, 8);
    ASSERT_EQ(value, i + 1);
  }
  EXPECT_EQ(window->launch(launch_word(0, 8), 1), Errc::invalid_state) << "no transaction is open";
  ASSERT_EQ(window->begin(), Errc::ok);
  EXPECT_EQ(window->begin(), Errc::invalid_state);
  EXPECT_EQ(window->launch(launch_word(0, 4), 1), Errc::alignment);
  EXPECT_EQ(window->launch(launch_word(kNodes, 0), 1), Errc::invalid_param);
  EXPECT_EQ(window->launch(~0ull, 1), Errc::invalid_param);
  EXPECT_EQ(settle(*window), Errc::ok);
}

TEST_P(Window, ATransactionKeepsItsFirstErrorAndOthersHaveTheirOwn) {
  const auto window = open({});
  ASSERT_EQ(window->begin(), Errc::ok);
  ASSERT_EQ(window->launch(launch_word(1, 0), 1), Errc::ok);
  ASSERT_EQ(window->launch(launch_word(1, kBytes), 2), Errc::ok) << "the packet is refused, not the call";
  ASSERT_EQ(window->launch(launch_word(2, 0), 3), Errc::ok);
  const auto first = window->end();
  ASSERT_EQ(window->begin(), Errc::ok);
  ASSERT_EQ(window->launch(launch_word(3, 0), 4), Errc::ok);
  const auto second = window->end();
  EXPECT_NE(first.value(), second.value());
  ASSERT_TRUE(world[4].nic().deregister(places[4].key).ok());
  ASSERT_EQ(window->begin(), Errc::ok);
  ASSERT_EQ(window->launch(launch_word(4, 0), 5), Errc::ok);
  ASSERT_EQ(window->launch(launch_word(1, kBytes), 6), Errc::ok);
  EXPECT_EQ(settle(*window), Errc::invalid_handle) << "the first one";
  Errc status = Errc::ok;
  for (int i = 0; i < 100 && window->test(second.value(), &status) == Errc::not_done; ++i) world.serve_all();
  EXPECT_EQ(status, Errc::ok);
  for (int i = 0; i < 100 && window->test(first.value(), &status) == Errc::not_done; ++i) world.serve_all();
  EXPECT_EQ(status, Errc::bounds);
  EXPECT_EQ(memory[2][0], 3) << "the others arrived";
  EXPECT_EQ(memory[3][0], 4);
  EXPECT_EQ(memory[4][0], 0);
}

TEST_P(Window, AThousandTransactionsMayBeOutstanding) {
  const auto window = open({});
  std::vector<std::uint32_t> names;
  while (window->begin() == Errc::ok) {
    const std::uint64_t n = names.size();
    const Errc launched = window->launch(launch_word(static_cast<std::uint32_t>(n % kNodes), n * 8), n + 1);
    ASSERT_EQ(launched, Errc::ok) << n;
    names.push_back(window->end().value());
    if (n % 50 == 0) world.serve_all();
  }
  EXPECT_EQ(names.size(), 1024u);
  for (int i = 0; i < 200; ++i) world.serve_all();
  for (const std::uint32_t name : names) {
    Errc status = Errc::timeout;
    EXPECT_EQ(window->test(name, &status), Errc::ok);
    EXPECT_EQ(status, Errc::ok);
  }
  EXPECT_EQ(window->begin(), Errc::ok);
}

TEST_P(Window, PesThatDieEndTransactionsInUnreachable) {
  const auto window = open({});
  ASSERT_EQ(window->begin(), Errc::ok);
  ASSERT_EQ(window->launch(launch_word(3, 0), 1), Errc::ok);
  ASSERT_EQ(settle(*window), Errc::ok);
  world.kill(3);
  ASSERT_EQ(window->begin(), Errc::ok);
  ASSERT_EQ(window->launch(launch_word(3, 0), 2), Errc::ok);
  EXPECT_EQ(settle(*window), Errc::unreachable);
  EXPECT_EQ(memory[3][0], 1);
}

TEST_P(Window, PlainStoresToAMappedWindowArePuts) {
  if (GetParam() == Path::frame) return;  // memory that cannot be mapped
  const WindowShape shape{.base_pe = 1, .base_offset = kPageBytes, .pe_shift = 13, .pe_bits = 2};
  const auto window = open(shape);
  if (GetParam() == Path::adopt) {
    // Hot memory is adopted; a service thread of the box runs when the test says so.
    ASSERT_EQ(window->begin(), Errc::ok);
    for (std::uint32_t i = 0; i < 200; ++i) {
      ASSERT_EQ(window->launch(launch_word(i % kNodes, 0), 0), Errc::ok);
      world.serve_all();
    }
    ASSERT_EQ(settle(*window), Errc::ok);
  }
  const auto mapped = window->map();
  ASSERT_TRUE(mapped.ok()) << errc_name(mapped.code());
  ASSERT_EQ(mapped.value().size(), 4u << 13);
  for (std::uint64_t i = 0; i < mapped.value().size(); ++i)
    mapped.value()[i] = static_cast<std::byte>(i * 7 + (i >> 13) + 1);
  for (std::uint64_t i = 0; i < mapped.value().size(); ++i) {
    ASSERT_EQ(memory[shape.pe_of(i)][shape.address_of(i)], static_cast<std::uint8_t>(i * 7 + (i >> 13) + 1));
  }
  EXPECT_EQ(window->map().code(), Errc::invalid_state);
  // The end of a registration cuts the window off from it, and from no other.
  const int cut_offs = world[2].cut_offs;
  ASSERT_TRUE(world[2].nic().deregister(places[2].key).ok());
  EXPECT_EQ(world[2].cut_offs, cut_offs + 1);
  ASSERT_TRUE(world[0].nic().deregister(places[0].key).ok());
  EXPECT_EQ(world[0].cut_offs, 0) << "no window maps it";
  // A later registration in the same place is not cut off when it ends.
  const MemKey again =
      world[2].nic().register_region(world[2].port(), places[2].address, kBytes, 0, nullptr).value();
  ASSERT_TRUE(world[2].nic().deregister(again).ok());
  EXPECT_EQ(world[2].cut_offs, cut_offs + 1);
}

TEST_P(Window, ShapesAndPlacesThatCannotBeAreRefused) {
  const auto code = [&](const WindowShape& shape, const std::vector<WindowPlace>& list) {
    return FmaWindow::open(world[0].nic(), world[0].port(), shape, list).code();
  };
  EXPECT_EQ(code({}, {}), Errc::invalid_param);
  EXPECT_EQ(code({.pe_shift = 2}, places), Errc::invalid_param);
  auto odd = places;
  odd[0].address += 4;
  EXPECT_EQ(code({}, odd), Errc::invalid_param);
  auto segmented = places;
  segmented[0].key.flags |= kSegmented;
  EXPECT_EQ(code({}, segmented), Errc::invalid_param);
  auto far = places;
  far[0].nic_address = 1u << 18;
  EXPECT_EQ(code({}, far), Errc::bounds);
  const auto window = open({.base_pe = 4, .pe_shift = 6, .pe_bits = 1});
  ASSERT_EQ(window->begin(), Errc::ok);
  const std::byte block[128]{std::byte{9}};
  EXPECT_EQ(window->store(0, block, sizeof block), Errc::invalid_param) << "there is no PE 5";
  EXPECT_EQ(settle(*window), Errc::ok);
  EXPECT_EQ(memory[4][0], 9);
  EXPECT_EQ(window->map().code(), Errc::invalid_param) << "pieces are no pages";
}

// ---- chains ----

TEST_P(Window, AChainEndsInOneCompletionWithItsFirstError) {
  CompletionQueue* const queue = world[0].nic().create_queue(4, 0).value();
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  for (int node = 0; node < kNodes; ++node) endpoints.push_back(world.endpoint(0, node, queue));
  std::uint64_t values[kNodes];
  std::vector<ChainPart> parts;
  for (int node = 0; node < kNodes; ++node) {
    values[node] = 70 + static_cast<std::uint64_t>(node);
    Request put;
    put.local_address = reinterpret_cast<std::uint64_t>(&values[node]);
    put.remote_address = places[static_cast<std::size_t>(node)].address;
    put.remote = places[static_cast<std::size_t>(node)].key;
    put.length = 8;
    parts.push_back({endpoints[static_cast<std::size_t>(node)].get(), put});
  }
  const auto outcome = [&] {
    Event event;
    for (int i = 0; i < 1000; ++i) {
      if (world[0].nic().poll(*queue, &event) == Errc::ok) {
        const auto completion = queue->completed(event.transaction(), event.status);
        EXPECT_EQ(completion.value().context, &parts);
        EXPECT_EQ(world[0].nic().poll(*queue, &event), Errc::not_done) << "one event";
        return event.status;
      }
      world.serve_all();
    }
    return Errc::timeout;
  };
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(world[0].nic().initiator().post_chain(*endpoints[0], parts, kGlobalEvent, &parts), Errc::ok);
    EXPECT_EQ(outcome(), Errc::ok);
    for (int node = 0; node < kNodes; ++node) {
      EXPECT_EQ(memory[node][0], 70 + node);
      memory[node][0] = 0;
    }
  }
  parts[2].request.remote_address += kBytes;
  parts[3].request.remote.generation = static_cast<std::uint16_t>(parts[3].request.remote.generation + 1);
  ASSERT_EQ(world[0].nic().initiator().post_chain(*endpoints[0], parts, kGlobalEvent, &parts), Errc::ok);
  EXPECT_EQ(outcome(), Errc::bounds);
  EXPECT_EQ(memory[4][0], 74) << "the others arrived";
  for (const auto& endpoint : endpoints) EXPECT_EQ(endpoint->in_flight.load(), 0u);
}

}  // namespace
}  // namespace orrery::nic
