// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "client.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <sys/mman.h>

// Memory that a client names by number: handles that it puts together of the machines' MDH and an address,
// and handles of reserved entries.
namespace {

using client::address_of;
using client::Domain;
using client::Pmi;

constexpr std::uint64_t kPageBytes = 4096;

struct Card {
  std::uint32_t address;
  std::uint32_t instance;
  std::uint64_t memory;
  gni_mem_handle_t handle;
};

class ByNumber : public testing::Test {
 protected:
  ByNumber() : events(domain.queue(64)) {
    pages = static_cast<std::byte*>(
        mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~ByNumber() override { munmap(pages, kPages * kPageBytes); }

  // Tells the next PE of our memory and gives what the previous told us; binds to it.
  Card meet(const gni_mem_handle_t& handle) {
    const Pmi& pmi = Pmi::get();
    const auto cards = pmi.gather(Card{domain.address, domain.instance, address_of(pages), handle});
    const Card next = cards[static_cast<std::size_t>((pmi.rank + 1) % pmi.size)];
    ep = domain.endpoint(events, next.address, next.instance);
    return next;
  }
  gni_return_t move(gni_post_type_t type, void* local, const gni_mem_handle_t& local_handle,
                    std::uint64_t remote, const gni_mem_handle_t& handle, std::uint64_t bytes) {
    gni_post_descriptor_t d = client::descriptor(type, GNI_CQMODE_GLOBAL_EVENT);
    d.local_addr = address_of(local);
    d.local_mem_hndl = local_handle;
    d.remote_addr = remote;
    d.remote_mem_hndl = handle;
    d.length = bytes;
    const gni_return_t posted =
        type == GNI_POST_RDMA_PUT || type == GNI_POST_RDMA_GET ? GNI_PostRdma(ep, &d) : GNI_PostFma(ep, &d);
    if (posted != GNI_RC_SUCCESS) return posted;
    gni_cq_entry_t event = 0;
    const gni_return_t found = client::next_event(events, &event);
    gni_post_descriptor_t* done = nullptr;
    (void)GNI_GetCompleted(events, event, &done);
    EXPECT_EQ(done, &d);
    return found;
  }
  gni_return_t put(std::uint64_t value, std::uint64_t remote, const gni_mem_handle_t& handle) {
    return move(GNI_POST_FMA_PUT, &value, {}, remote, handle, sizeof value);
  }
  std::uint64_t word(std::size_t byte) const {
    std::uint64_t value = 0;
    std::memcpy(&value, pages + byte, sizeof value);
    return value;
  }
  gni_return_t reserve(std::uint32_t flags, std::uint64_t bytes, std::uint32_t index,
                       gni_mem_handle_t* handle) {
    return GNI_MemRegister(domain.nic, address_of(pages), bytes, nullptr, flags, index, handle);
  }

  static constexpr std::size_t kPages = 64;
  Domain domain;
  gni_cq_handle_t events;
  gni_ep_handle_t ep = nullptr;
  std::byte* pages = nullptr;
};

// What a client with keys of 8 bytes keeps: the MDH and the page; everything else it makes up.
gni_mem_handle_t built(const gni_mem_handle_t& whole, std::uint64_t page, std::uint64_t flags) {
  return {(whole.qword1 >> 52) << 52 | page, flags << 34 | std::uint64_t{12} << 28 | 0xfff'ffff};
}

TEST_F(ByNumber, HandlesThatAClientBuilds) {
  const Pmi& pmi = Pmi::get();
  gni_mem_handle_t mine = domain.memory(pages, kPages * kPageBytes);
  const Card next = meet(mine);
  const gni_mem_handle_t handle = built(next.handle, next.memory >> 12, 0);
  for (std::uint64_t i = 0; i < 100; ++i)
    ASSERT_EQ(put(1000 + i, next.memory + 8 * i, handle), GNI_RC_SUCCESS) << i;
  // Without an address it counts from the first page.
  ASSERT_EQ(put(7, 8192, built(next.handle, 0, 0)), GNI_RC_SUCCESS);
  // Of what it does not know it may say anything: a page size and count, a checksum, the eighth flag.
  constexpr std::uint64_t kMadeUp[] = {std::uint64_t{12} << 28 | 1, std::uint64_t{21} << 28 | 0xfff'ffff,
                                       std::uint64_t{30} << 28 | 2 | std::uint64_t{0xff} << 56,
                                       std::uint64_t{12} << 28 | 1 | std::uint64_t{0x80} << 34};
  for (std::uint64_t i = 0; i < std::size(kMadeUp); ++i)
    ASSERT_EQ(put(50 + i, next.memory + 4096 + 8 * i, {handle.qword1, kMadeUp[i]}), GNI_RC_SUCCESS) << i;
  EXPECT_EQ(put(1, next.memory, {handle.qword1, std::uint64_t{12} << 28}), GNI_RC_TRANSACTION_ERROR)
      << "no pages";
  pmi.barrier();
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(word(8 * i), 1000 + i);
  for (std::uint64_t i = 0; i < std::size(kMadeUp); ++i) EXPECT_EQ(word(4096 + 8 * i), 50 + i);
  EXPECT_EQ(word(8192), 7U);

  alignas(8) std::array<std::uint64_t, 512> local{};
  gni_mem_handle_t own = domain.memory(local.data(), sizeof local);
  const gni_mem_handle_t own_built = built(own, address_of(local.data()) >> 12, 0);
  ASSERT_EQ(move(GNI_POST_RDMA_GET, local.data(), own_built, next.memory, handle, 800), GNI_RC_SUCCESS);
  EXPECT_EQ(local[99], 1099U);
  ASSERT_EQ(move(GNI_POST_FMA_GET, local.data(), own_built, next.memory + 8, handle, 8), GNI_RC_SUCCESS);
  EXPECT_EQ(local[0], 1001U);
  pmi.barrier();
  gni_post_descriptor_t add = client::descriptor(GNI_POST_AMO, GNI_CQMODE_GLOBAL_EVENT);
  add.amo_cmd = GNI_FMA_ATOMIC_ADD;
  add.first_operand = 5;
  add.remote_addr = next.memory + 16;
  add.remote_mem_hndl = handle;
  add.length = 8;
  ASSERT_EQ(GNI_PostFma(ep, &add), GNI_RC_SUCCESS);
  gni_cq_entry_t event = 0;
  ASSERT_EQ(client::next_event(events, &event), GNI_RC_SUCCESS);
  pmi.barrier();
  EXPECT_EQ(word(16), 1007U);

  // The next registration of that entry is meant, and nothing when there is none.
  int yes = 1;
  gni_mem_handle_t asked = handle;
  EXPECT_EQ(GNI_MemHndlQueryAttr(&asked, GNI_MEMHNDL_ATTR_VMDH, &yes), GNI_RC_SUCCESS);
  EXPECT_EQ(yes, 0);
  gni_mem_handle_t own_mine = built(mine, address_of(pages) >> 12, 0);
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &own_mine), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &mine), GNI_RC_INVALID_PARAM) << "it is gone";
  pmi.barrier();
  EXPECT_EQ(put(1, next.memory, handle), GNI_RC_TRANSACTION_ERROR);
  EXPECT_EQ(put(1, next.memory, {}), GNI_RC_TRANSACTION_ERROR) << "zeroes name nothing";
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &own), GNI_RC_SUCCESS);
  pmi.barrier();
}

TEST_F(ByNumber, ReadOnlyStaysSo) {
  const Pmi& pmi = Pmi::get();
  gni_mem_handle_t mine = domain.memory(pages, kPageBytes, nullptr, GNI_MEM_READ_ONLY);
  const Card next = meet(mine);
  EXPECT_EQ(put(1, next.memory, built(next.handle, next.memory >> 12, 0)), GNI_RC_TRANSACTION_ERROR);
  EXPECT_EQ(put(1, next.memory, built(next.handle, next.memory >> 12, 1)), GNI_RC_TRANSACTION_ERROR);
  pmi.barrier();
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &mine), GNI_RC_SUCCESS);
  pmi.barrier();
}

TEST_F(ByNumber, ReservedEntries) {
  const Pmi& pmi = Pmi::get();
  constexpr std::uint32_t kIndex = 7;
  ASSERT_EQ(GNI_SetMddResources(domain.nic, 16), GNI_RC_SUCCESS);
  gni_mem_handle_t mine{};
  // Nothing need be there. Kept from the allocators of this process meanwhile.
  ASSERT_EQ(mmap(pages, kPages * kPageBytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0),
            pages);
  ASSERT_EQ(reserve(GNI_MEM_USE_VMDH | GNI_MEM_RESERVE_REGION, kPages * kPageBytes, kIndex, &mine),
            GNI_RC_SUCCESS);
  gni_mem_handle_t other{};
  EXPECT_EQ(reserve(GNI_MEM_USE_VMDH | GNI_MEM_RESERVE_REGION, kPageBytes, kIndex, &other),
            GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(mine.qword1 >> 52, kIndex);
  EXPECT_EQ(mine.qword1 & 0xf'ffff'ffff, 0U) << "counts from its start";
  ASSERT_EQ(mmap(pages, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0),
            pages);
  const Card next = meet(mine);
  pmi.barrier();
  EXPECT_EQ(put(1, 0, next.handle), GNI_RC_TRANSACTION_ERROR) << "nothing was updated";
  pmi.barrier();
  gni_mem_handle_t updated = mine;
  EXPECT_EQ(GNI_MemRegister(domain.nic, address_of(pages), kPages * kPageBytes + 1, nullptr,
                            GNI_MEM_UPDATE_REGION, kIndex, &updated),
            GNI_RC_INVALID_PARAM);
  ASSERT_EQ(GNI_MemRegister(domain.nic, address_of(pages), 4 * kPageBytes, nullptr, GNI_MEM_UPDATE_REGION,
                            kIndex, &updated),
            GNI_RC_SUCCESS);
  EXPECT_EQ(updated.qword1, mine.qword1);
  EXPECT_EQ(updated.qword2, mine.qword2);
  int yes = 0;
  EXPECT_EQ(GNI_MemHndlQueryAttr(&updated, GNI_MEMHNDL_ATTR_VMDH, &yes), GNI_RC_SUCCESS);
  EXPECT_EQ(yes, 1);
  pmi.barrier();
  // By offset, by address, with the whole handle and with one that has only the number.
  const gni_mem_handle_t bare = built(next.handle, 0, 2);
  for (std::uint64_t i = 0; i < 50; ++i) {
    ASSERT_EQ(put(i + 1, 8 * i, i % 2 == 0 ? next.handle : bare), GNI_RC_SUCCESS) << i;
  }
  ASSERT_EQ(put(99, next.memory + kPageBytes, next.handle), GNI_RC_SUCCESS);
  EXPECT_EQ(put(1, 4 * kPageBytes, next.handle), GNI_RC_TRANSACTION_ERROR) << "behind what was updated";
  pmi.barrier();
  for (std::uint64_t i = 0; i < 50; ++i) ASSERT_EQ(word(8 * i), i + 1);
  EXPECT_EQ(word(kPageBytes), 99U);
  ASSERT_EQ(GNI_MemRegister(domain.nic, address_of(pages) + 4 * kPageBytes, 4 * kPageBytes, nullptr,
                            GNI_MEM_UPDATE_REGION, kIndex, &updated),
            GNI_RC_SUCCESS);
  pmi.barrier();
  ASSERT_EQ(put(5, 5 * kPageBytes, bare), GNI_RC_SUCCESS);
  ASSERT_EQ(put(6, 8, bare), GNI_RC_SUCCESS) << "what was live stays so";
  pmi.barrier();
  EXPECT_EQ(word(5 * kPageBytes), 5U);
  EXPECT_EQ(word(8), 6U);

  // The entry is free again, and an ordinary registration may have it.
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &updated), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &updated), GNI_RC_INVALID_PARAM);
  gni_mem_handle_t found{};
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  EXPECT_EQ(GNI_MemQueryHndls(domain.nic, -1, &found, &address, &length), GNI_RC_NO_MATCH);
  pmi.barrier();
  EXPECT_EQ(put(1, 0, next.handle), GNI_RC_TRANSACTION_ERROR);
  pmi.barrier();
  ASSERT_EQ(reserve(GNI_MEM_USE_VMDH, kPageBytes, kIndex, &mine), GNI_RC_SUCCESS) << "live at once";
  pmi.barrier();
  EXPECT_EQ(put(3, 16, next.handle), GNI_RC_SUCCESS) << "the same handle as before";
  pmi.barrier();
  EXPECT_EQ(word(16), 3U);
  EXPECT_EQ(GNI_MemQueryHndls(domain.nic, -1, &found, &address, &length), GNI_RC_SUCCESS);
  EXPECT_EQ(found.qword1, mine.qword1);
  EXPECT_EQ(GNI_MemQueryHndls(domain.nic, -1, &found, &address, &length), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &mine), GNI_RC_SUCCESS);
  pmi.barrier();
}

TEST_F(ByNumber, ReservedWithoutATable) {
  const Pmi& pmi = Pmi::get();
  gni_mem_handle_t mine{};
  ASSERT_EQ(reserve(GNI_MEM_RESERVE_REGION, kPages * kPageBytes, UINT32_MAX, &mine), GNI_RC_SUCCESS);
  const Card next = meet(mine);
  ASSERT_EQ(GNI_MemRegister(domain.nic, address_of(pages), kPages * kPageBytes, nullptr,
                            GNI_MEM_UPDATE_REGION, UINT32_MAX, &mine),
            GNI_RC_SUCCESS);
  pmi.barrier();
  EXPECT_EQ(put(42, next.memory + 64, next.handle), GNI_RC_SUCCESS);
  pmi.barrier();
  EXPECT_EQ(word(64), 42U);
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &mine), GNI_RC_SUCCESS);
  pmi.barrier();
}

// Reserving takes entries, and deregistering gives each of them back.
TEST_F(ByNumber, EntriesDoNotLeak) {
  ASSERT_EQ(GNI_SetMddResources(domain.nic, 8), GNI_RC_SUCCESS);
  for (int i = 0; i < 5000; ++i) {
    gni_mem_handle_t mine{};
    ASSERT_EQ(reserve(GNI_MEM_USE_VMDH | GNI_MEM_RESERVE_REGION, kPageBytes, 3, &mine), GNI_RC_SUCCESS) << i;
    if (i % 2 == 0) {
      ASSERT_EQ(GNI_MemRegister(domain.nic, address_of(pages), kPageBytes, nullptr, GNI_MEM_UPDATE_REGION, 3,
                                &mine),
                GNI_RC_SUCCESS);
    }
    ASSERT_EQ(GNI_MemDeregister(domain.nic, &mine), GNI_RC_SUCCESS) << i;
  }
}

// Of two libraries in one program each takes a domain of its own: one adds to the cookie.
TEST_F(ByNumber, CookiesThatAClientAddsTo) {
  const Pmi& pmi = Pmi::get();
  const gni_mem_handle_t first = domain.memory(pages, kPageBytes);
  const Card neighbour = meet(first);
  const char* const colon = std::strchr(std::getenv("PMI_GNI_PTAG"), ':');
  ASSERT_NE(colon, nullptr);
  const auto second_tag = static_cast<std::uint8_t>(std::atoi(colon + 1));
  struct Added {
    std::uint8_t ptag;
    std::uint32_t more;
  };
  std::size_t at = 1;
  for (const Added& added : {Added{client::ptag(), 1}, Added{client::ptag(), 2}, Added{client::ptag(), 3},
                             Added{second_tag, 1}, Added{second_tag, 2}, Added{second_tag, 3}}) {
    gni_cdm_handle_t cdm = nullptr;
    gni_nic_handle_t nic = nullptr;
    std::uint32_t address = 0;
    // The same instance as in the first domain.
    REQUIRE_SUCCESS(GNI_CdmCreate(domain.instance, added.ptag, client::cookie() + added.more,
                                  GNI_CDM_MODE_ERR_NO_KILL, &cdm));
    ASSERT_EQ(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_SUCCESS) << int{added.ptag} << " +" << added.more;
    EXPECT_EQ(address, domain.address);
    gni_mem_handle_t mine{};
    REQUIRE_SUCCESS(GNI_MemRegister(nic, address_of(pages), kPageBytes, nullptr, 0, UINT32_MAX, &mine));
    const auto cards = pmi.gather(Card{address, domain.instance, address_of(pages), mine});
    const Card next = cards[static_cast<std::size_t>((pmi.rank + 1) % pmi.size)];
    gni_cq_handle_t cq = nullptr;
    gni_ep_handle_t to_next = nullptr;
    REQUIRE_SUCCESS(GNI_CqCreate(nic, 8, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &cq));
    REQUIRE_SUCCESS(GNI_EpCreate(nic, cq, &to_next));
    REQUIRE_SUCCESS(GNI_EpBind(to_next, next.address, next.instance));
    const std::uint64_t value = 70 + at;
    gni_post_descriptor_t d = client::descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
    d.local_addr = address_of(&value);
    d.remote_addr = next.memory + 8 * at;
    d.remote_mem_hndl = next.handle;
    d.length = 8;
    gni_cq_entry_t event = 0;
    ASSERT_EQ(GNI_PostFma(to_next, &d), GNI_RC_SUCCESS);
    ASSERT_EQ(client::next_event(cq, &event), GNI_RC_SUCCESS);
    EXPECT_EQ(put(1, neighbour.memory, next.handle), GNI_RC_TRANSACTION_ERROR) << "another domain's";
    pmi.barrier();
    EXPECT_EQ(word(8 * at++), value);
    EXPECT_EQ(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    pmi.barrier();
  }
  EXPECT_EQ(word(0), 0U);
  gni_cdm_handle_t cdm = nullptr;
  gni_nic_handle_t nic = nullptr;
  std::uint32_t address = 0;
  REQUIRE_SUCCESS(GNI_CdmCreate(domain.instance, client::ptag(), client::cookie() + 4, 0, &cdm));
  EXPECT_EQ(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_PERMISSION_ERROR);
  EXPECT_EQ(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
}

}  // namespace
