// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Every kind of memory that a program has, as the target of puts and the source of gets: the data, the events
// and the neighbour's memory are right whatever the pages are. And memory that goes away under its
// registration: an operation on it ends in an event, and its owner, which touched nothing, lives on.
#include "tests/lib/gni/client.hpp"
#include "tests/require.hpp"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using client::address_of;
using client::descriptor;
using client::next_event;

constexpr std::size_t kBytes = 64 << 10;
constexpr std::size_t kHugeBytes = 2 << 20;
constexpr std::array kTypes{GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_GET, GNI_POST_RDMA_GET};

bool is_get(gni_post_type_t type) { return type == GNI_POST_FMA_GET || type == GNI_POST_RDMA_GET; }

// kBytes of some kind; null when this machine has none.
using Block = std::shared_ptr<std::byte>;

Block mapped(std::size_t bytes, int flags, int file = -1) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (at == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(at), [bytes](std::byte* p) { munmap(p, bytes); }};
}

// A file of that length with no name, open.
int new_file() {
  char name[] = "/tmp/orrery-test-XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) return -1;
  unlink(name);
  return ftruncate(file, kBytes) == 0 ? file : -1;
}

Block mapped_file(int flags) {
  const int file = new_file();
  Block block = mapped(kBytes, flags, file);
  close(file);  // the mapping keeps it
  return block;
}

Block allocated() {
  return {static_cast<std::byte*>(std::malloc(kBytes)), [](std::byte* p) { std::free(p); }};
}

Block of_another_thread() {
  Block block;
  std::thread([&] { block = allocated(); }).join();
  return block;
}

Block transparently_huge() {
  Block block(static_cast<std::byte*>(std::aligned_alloc(kHugeBytes, 2 * kHugeBytes)),
              [](std::byte* p) { std::free(p); });
  madvise(block.get(), 2 * kHugeBytes, MADV_HUGEPAGE);
  std::memset(block.get(), 1, 2 * kHugeBytes);
  return block;
}

alignas(64) std::array<std::byte, kBytes> g_zeroed;
alignas(64) std::array<std::byte, kBytes> g_initialised{std::byte{1}};

Block unowned(std::byte* at) {
  return {at, [](std::byte*) {}};
}

struct Kind {
  const char* name;
  Block (*make)();  // null: the stack
};

// Transfers to and from the next PE's block of the same kind.
class Memory : public testing::Test {
 protected:
  struct Card {
    std::uint32_t nic_address;
    std::uint64_t address;
    gni_mem_handle_t handle;
    bool exists;
  };

  // False: some PE has no such memory, and no PE waits for another.
  bool meet(std::byte* at, std::uint32_t flags = GNI_MEM_READWRITE) {
    Card mine{
        .nic_address = domain.address, .address = address_of(at), .handle = {}, .exists = at != nullptr};
    if (at != nullptr) handle = mine.handle = domain.memory(at, kBytes, targets, flags);
    bool all = true;
    const auto cards = pmi.gather(mine);
    for (const Card& card : cards) all = all && card.exists;
    peer = cards[static_cast<std::size_t>((pmi.rank + 1) % pmi.size)];
    if (!all && at != nullptr) part();
    if (all) {
      endpoint = domain.endpoint(sources, peer.nic_address,
                                 100 + static_cast<std::uint32_t>((pmi.rank + 1) % pmi.size));
    }
    return all;
  }
  void part() { EXPECT_EQ(GNI_MemDeregister(domain.nic, &handle), GNI_RC_SUCCESS); }

  // Posts one transfer and waits for its event: what that says.
  gni_return_t transfer(gni_post_type_t type, std::size_t length) {
    gni_post_descriptor_t d = descriptor(type, GNI_CQMODE_GLOBAL_EVENT);
    if (!is_get(type)) d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    d.local_addr = address_of(source.data());
    d.local_mem_hndl = local;
    d.remote_addr = peer.address;
    d.remote_mem_hndl = peer.handle;
    d.length = length;
    const bool rdma = type == GNI_POST_RDMA_PUT || type == GNI_POST_RDMA_GET;
    if (const gni_return_t posted = rdma ? GNI_PostRdma(endpoint, &d) : GNI_PostFma(endpoint, &d);
        posted != GNI_RC_SUCCESS)
      return posted;
    gni_cq_entry_t event = 0;
    const gni_return_t ended = next_event(sources, &event);
    gni_post_descriptor_t* done = nullptr;
    (void)GNI_GetCompleted(sources, event, &done);
    EXPECT_EQ(done, &d);
    return ended;
  }

  void every_way(std::byte* at) {
    constexpr int kRounds = 24;  // beyond what a region needs to be adopted
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t length = round % 3 == 0 ? 8 : round % 3 == 1 ? 4096 : kBytes;
      for (const gni_post_type_t type : kTypes) {
        const auto value = static_cast<std::byte>(round * 2 + pmi.rank + 1);
        source.fill(is_get(type) ? std::byte{0xee} : value);
        ASSERT_EQ(transfer(type, length), GNI_RC_SUCCESS) << type << " of " << length;
        for (std::size_t i = 0; i < length; ++i)
          ASSERT_EQ(source[i], value) << type << " of " << length << " at " << i;
      }
    }
    pmi.barrier();
    const auto last = static_cast<std::byte>((kRounds - 1) * 2 + (pmi.rank + pmi.size - 1) % pmi.size + 1);
    for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(at[i], last) << "at " << i;
    int events = 0;
    for (gni_cq_entry_t event = 0; GNI_CqGetEvent(targets, &event) == GNI_RC_SUCCESS;) ++events;
    EXPECT_EQ(events, kRounds * 2) << "of puts";
    pmi.barrier();
  }

  const client::Pmi& pmi = client::Pmi::get();
  client::Domain domain;
  gni_cq_handle_t sources = domain.queue(8);
  gni_cq_handle_t targets = domain.queue(256);
  std::array<std::byte, kBytes> source{};
  gni_mem_handle_t local = domain.memory(source.data(), kBytes);
  gni_mem_handle_t handle{};
  gni_ep_handle_t endpoint = nullptr;
  Card peer{};
};

class MemoryOfKind : public Memory, public testing::WithParamInterface<Kind> {};

INSTANTIATE_TEST_SUITE_P(
    All, MemoryOfKind,
    testing::Values(Kind{"Heap", allocated}, Kind{"HeapOfAnotherThread", of_another_thread},
                    Kind{"StaticInitialised", [] { return unowned(g_initialised.data()); }},
                    Kind{"StaticZeroed", [] { return unowned(g_zeroed.data()); }},
                    Kind{"Anonymous", [] { return mapped(kBytes, MAP_PRIVATE | MAP_ANONYMOUS); }},
                    Kind{"AnonymousShared", [] { return mapped(kBytes, MAP_SHARED | MAP_ANONYMOUS); }},
                    Kind{"FileShared", [] { return mapped_file(MAP_SHARED); }},
                    Kind{"FilePrivate", [] { return mapped_file(MAP_PRIVATE); }},
                    Kind{"TransparentlyHuge", transparently_huge},
                    Kind{"Huge",
                         [] { return mapped(kHugeBytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB); }},
                    Kind{"Stack", nullptr}),
    [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(MemoryOfKind, TakesPutsAndGivesGets) {
  std::array<std::byte, kBytes> stack;
  stack.fill(std::byte{1});
  const Block block = GetParam().make == nullptr ? unowned(stack.data()) : GetParam().make();
  if (!meet(block.get())) ORRERY_SKIP("memory") << "this machine has no such memory to give";
  every_way(block.get());
  part();
}

TEST_F(Memory, ThatIsReadOnlyGivesGetsAndRefusesPuts) {
  const Block block = mapped(kBytes, MAP_PRIVATE | MAP_ANONYMOUS);
  ASSERT_NE(block, nullptr);
  std::memset(block.get(), 'r', kBytes);
  ASSERT_EQ(mprotect(block.get(), kBytes, PROT_READ), 0);
  ASSERT_TRUE(meet(block.get(), GNI_MEM_READ_ONLY));
  for (int round = 0; round < 24; ++round) {
    for (const gni_post_type_t type : kTypes) {
      source.fill(std::byte{0});
      const std::size_t length = round % 2 == 0 ? 8 : kBytes;
      EXPECT_EQ(transfer(type, length), is_get(type) ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR) << type;
      const std::byte there = is_get(type) ? std::byte{'r'} : std::byte{0};
      for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(source[i], there) << i;
    }
  }
  pmi.barrier();
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(block.get()[i], std::byte{'r'}) << i;
  pmi.barrier();
  part();
}

// A device has pinned the pages: what their owner does to their protection is no matter to it.
TEST_F(Memory, ThatItsOwnerProtectsStillTakesPutsAndGivesGets) {
  const Block block = mapped(kBytes, MAP_PRIVATE | MAP_ANONYMOUS);
  ASSERT_NE(block, nullptr);
  std::memset(block.get(), 'p', kBytes);
  ASSERT_TRUE(meet(block.get()));
  for (const bool used_before : {false, true}) {
    ASSERT_EQ(mprotect(block.get(), kBytes, PROT_NONE), 0);
    pmi.barrier();
    for (const std::size_t length : {std::size_t{8}, kBytes}) {
      for (const gni_post_type_t type : {GNI_POST_FMA_GET, GNI_POST_RDMA_GET}) {
        source.fill(std::byte{0});
        ASSERT_EQ(transfer(type, length), GNI_RC_SUCCESS) << type << " of " << length << ' ' << used_before;
        for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(source[i], std::byte{'p'}) << i;
      }
    }
    pmi.barrier();
    source.fill(std::byte{'q'});
    for (const gni_post_type_t type : {GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT})
      ASSERT_EQ(transfer(type, kBytes), GNI_RC_SUCCESS) << type << ' ' << used_before;
    pmi.barrier();
    ASSERT_EQ(mprotect(block.get(), kBytes, PROT_READ | PROT_WRITE), 0);
    for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(block.get()[i], std::byte{'q'}) << i;
    std::memset(block.get(), 'p', kBytes);
    pmi.barrier();
    // In the modes that do so, the pages are adopted now, and protected once more.
    source.fill(std::byte{'p'});
    for (int i = 0; i < 64; ++i) ASSERT_EQ(transfer(GNI_POST_FMA_PUT, 8), GNI_RC_SUCCESS);
    pmi.barrier();
  }
  part();
}

// How registered memory ends.
struct Ending {
  const char* name;
  int flags;                             // of its mapping, beside PROT_READ | PROT_WRITE
  void (*end)(std::byte* at, int file);  // null: it never began
};

class MemoryThatGoesAway : public Memory, public testing::WithParamInterface<Ending> {};

INSTANTIATE_TEST_SUITE_P(
    All, MemoryThatGoesAway,
    testing::Values(Ending{"Protected", MAP_PRIVATE | MAP_ANONYMOUS,
                           [](std::byte* at, int) { ASSERT_EQ(mprotect(at, kBytes, PROT_NONE), 0); }},
                    Ending{"SharedFileCutShort", MAP_SHARED,
                           [](std::byte*, int file) { ASSERT_EQ(ftruncate(file, 0), 0); }},
                    Ending{"PrivateFileCutShort", MAP_PRIVATE,
                           [](std::byte*, int file) { ASSERT_EQ(ftruncate(file, 0), 0); }},
                    Ending{"HugePagesThatAreNotThere",
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, nullptr}),
    [](const auto& ending) { return std::string(ending.param.name); });

TEST_P(MemoryThatGoesAway, EndsOperationsInEventsAndItsOwnerLivesOn) {
  const int flags = GetParam().flags;
  const int file = (flags & MAP_ANONYMOUS) != 0 ? -1 : new_file();
  const Block block = mapped((flags & MAP_HUGETLB) != 0 ? kHugeBytes : kBytes, flags, file);
  if (!meet(block.get())) ORRERY_SKIP("memory") << "this machine has no such memory to give";
  if (GetParam().end != nullptr) {
    std::memset(block.get(), 1, kBytes);
    pmi.barrier();
    EXPECT_EQ(transfer(GNI_POST_FMA_PUT, 8), GNI_RC_SUCCESS);
    pmi.barrier();
    GetParam().end(block.get(), file);
  }
  pmi.barrier();
  for (const gni_post_type_t type : kTypes) {
    for (const std::size_t length : {std::size_t{8}, kBytes}) {
      const gni_return_t ended = transfer(type, length);
      // Pages that were moved into the memory file have no other file, and peers reach them by their own way.
      EXPECT_TRUE(ended == GNI_RC_TRANSACTION_ERROR || ended == GNI_RC_SUCCESS)
          << type << ' ' << gni_err_str[ended];
      if (GetParam().end != nullptr && (flags & MAP_SHARED) != 0) {
        EXPECT_EQ(ended, GNI_RC_TRANSACTION_ERROR) << type << " of " << length;
      }
    }
  }
  pmi.barrier();
  part();
  if (file >= 0) close(file);
  // And everything else works.
  const Block other = allocated();
  while (true) {
    gni_cq_entry_t event = 0;
    if (GNI_CqGetEvent(targets, &event) == GNI_RC_NOT_DONE) break;
  }
  ASSERT_TRUE(meet(other.get()));
  every_way(other.get());
  part();
}

}  // namespace
