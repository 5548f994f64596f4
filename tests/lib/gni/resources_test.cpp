// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What launchers configure, and what a NIC handle reserves.
#include "tests/lib/gni/client.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using client::address_of;

bool root() { return geteuid() == 0; }
gni_return_t if_root(gni_return_t code) { return root() ? code : GNI_RC_PERMISSION_ERROR; }

gni_job_limits_t no_limits() {
  gni_job_limits_t limits{};
  limits.mdd_limit = limits.a.mrt_limit = limits.b.gart_limit = limits.fma_limit = limits.bte_limit =
      limits.cq_limit = limits.ntt_base = limits.ntt_size = GNI_JOB_INVALID_LIMIT;
  return limits;
}

// Five tags from here on, none of which is of the job's own domains: those are any.
const std::uint8_t kTag = [] {
  const char* const own = std::getenv("PMI_GNI_PTAG");  // first:second
  const int tag = own == nullptr ? 0 : std::atoi(own);
  return static_cast<std::uint8_t>(tag > 80 && tag < 100 ? 151 : 91);
}();
constexpr std::uint32_t kCookie = 0x5150'0000;

TEST(Configure, ADomainThatWasConfiguredCanBeAttachedToWithinItsLimits) {
  (void)client::Pmi::get();
  gni_cdm_handle_t cdm = nullptr;
  gni_nic_handle_t nic = nullptr;
  std::uint32_t address = 0;
  REQUIRE_SUCCESS(GNI_CdmCreate(1, kTag, kCookie, 0, &cdm));
  EXPECT_EQ(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_PERMISSION_ERROR) << "before";
  gni_job_limits_t limits = no_limits();
  limits.mdd_limit = 2;
  EXPECT_EQ(GNI_ConfigureJob(0, 7, kTag, kCookie, &limits), if_root(GNI_RC_SUCCESS));
  EXPECT_EQ(GNI_ConfigureJob(0, 7, kTag, kCookie, &limits), if_root(GNI_RC_SUCCESS)) << "again";
  EXPECT_EQ(GNI_ConfigureJob(0, 8, kTag, kCookie, nullptr), if_root(GNI_RC_INVALID_STATE)) << "another job";
  EXPECT_EQ(GNI_ConfigureJob(0, 7, kTag, kCookie + 1, nullptr), if_root(GNI_RC_INVALID_STATE));
  if (!root()) {
    EXPECT_EQ(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    return;
  }
  ASSERT_EQ(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_SUCCESS);
  alignas(4096) static std::array<std::byte, 4096> page;
  std::array<gni_mem_handle_t, 3> handles{};
  const auto try_third = [&](std::size_t i) {
    return GNI_MemRegister(nic, address_of(page.data()), 64, nullptr, 0, UINT32_MAX, &handles[i]);
  };
  EXPECT_EQ(try_third(0), GNI_RC_SUCCESS);
  EXPECT_EQ(try_third(1), GNI_RC_SUCCESS);
  EXPECT_EQ(try_third(2), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(GNI_SetJobResInfo(0, kTag, GNI_JOB_RES_MDD, 3), GNI_RC_SUCCESS);
  EXPECT_EQ(try_third(2), GNI_RC_SUCCESS);
  gni_job_res_desc_t desc{};
  ASSERT_EQ(GNI_GetJobResInfo(0, kTag, GNI_JOB_RES_MDD, &desc), GNI_RC_SUCCESS);
  EXPECT_EQ(desc.used, 3U);
  EXPECT_EQ(desc.limit, 3U);
  // Another domain's are its own.
  ASSERT_EQ(GNI_GetJobResInfo(0, client::ptag(), GNI_JOB_RES_MDD, &desc), GNI_RC_SUCCESS);
  EXPECT_EQ(desc.used, 0U);
  EXPECT_GT(desc.limit, 3U);
  EXPECT_EQ(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
}

TEST(Configure, ADescriptorHoldsTheDomainUntilItIsReleased) {
  (void)client::Pmi::get();
  int fd = -7;
  EXPECT_EQ(GNI_ConfigureJobFd(0, 9, kTag + 1, kCookie + 16, nullptr, &fd), if_root(GNI_RC_SUCCESS));
  if (!root()) {
    EXPECT_EQ(fd, -7);
    return;
  }
  EXPECT_GE(fcntl(fd, F_GETFD), 0);
  gni_mem_handle_t handle{};
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  EXPECT_EQ(GNI_MemQueryHndls(nullptr, fd, &handle, &address, &length), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_CdmRelease(fd), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CdmRelease(fd), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemQueryHndls(nullptr, fd, &handle, &address, &length), GNI_RC_INVALID_PARAM);
  std::uint8_t tag = 0;
  EXPECT_EQ(GNI_ConfigureJob(0, 10, GNI_FIND_ALLOC_PTAG, kCookie + 32, nullptr), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_GetPtag(0, kCookie + 32, &tag), GNI_RC_SUCCESS);
  EXPECT_GE(tag, GNI_PTAG_USER_START);
}

TEST(Configure, TranslationRangesDoNotOverlap) {
  (void)client::Pmi::get();
  std::array<std::uint32_t, 8> nodes{1, 2, 3, 4, 5, 6, 7, 8};
  gni_ntt_descriptor_t desc{};
  desc.group_size = nodes.size();
  desc.granularity = 1;
  desc.u.table = nodes.data();
  std::uint32_t base = UINT32_MAX;
  EXPECT_EQ(GNI_ConfigureNTT(0, &desc, &base), if_root(GNI_RC_SUCCESS));
  if (!root()) return;
  std::uint32_t second = UINT32_MAX;
  EXPECT_EQ(GNI_ConfigureNTT(-1, &desc, &second), GNI_RC_SUCCESS);
  EXPECT_GE(second > base ? second - base : base - second, 8U);
  EXPECT_EQ(GNI_ConfigureNTT(0, &desc, &base), GNI_RC_SUCCESS) << "the same range anew";
  std::uint32_t inside = base + 4;
  EXPECT_EQ(GNI_ConfigureNTT(0, &desc, &inside), GNI_RC_ERROR_RESOURCE);
  std::uint32_t beyond = 8190;
  EXPECT_EQ(GNI_ConfigureNTT(0, &desc, &beyond), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_ConfigureNTT(0, nullptr, &second), GNI_RC_SUCCESS) << "empties it";
  EXPECT_EQ(GNI_ConfigureNTT(0, nullptr, &second), GNI_RC_NO_MATCH);
  gni_job_limits_t limits = no_limits();
  limits.ntt_size = 8;
  std::uint32_t third = UINT32_MAX;
  EXPECT_EQ(GNI_ConfigureNTTandJob(0, 11, kTag + 3, kCookie + 48, &limits, &desc, &third), GNI_RC_SUCCESS);
  limits.ntt_size = 16;
  EXPECT_EQ(GNI_ConfigureNTTandJob(0, 11, kTag + 3, kCookie + 48, &limits, &desc, &third), GNI_RC_ILLEGAL_OP);
}

TEST(Configure, BadArgumentsAreRefused) {
  (void)client::Pmi::get();
  gni_job_limits_t limits = no_limits();
  limits.cq_limit = -2;
  int fd = 0;
  EXPECT_EQ(GNI_ConfigureJob(0, 1, kTag + 4, kCookie, &limits), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_ConfigureJob(1, 1, kTag + 4, kCookie, nullptr), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_ConfigureJobFd(0, 1, kTag + 4, kCookie, nullptr, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_ConfigureJobFd(0, 1, kTag + 4, kCookie, &limits, &fd), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_ConfigureJobFd(9, 1, kTag + 4, kCookie, nullptr, &fd), GNI_RC_NO_MATCH);
  std::uint32_t base = UINT32_MAX;
  std::uint32_t node = 1;
  gni_ntt_descriptor_t desc{};
  EXPECT_EQ(GNI_ConfigureNTT(0, &desc, &base), GNI_RC_INVALID_PARAM);
  desc.u.table = &node;
  desc.group_size = 8193;
  EXPECT_EQ(GNI_ConfigureNTT(0, &desc, &base), GNI_RC_INVALID_PARAM);
  desc.group_size = 1;
  EXPECT_EQ(GNI_ConfigureNTT(0, &desc, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_ConfigureNTT(5, &desc, &base), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_ConfigureNTTandJob(0, 1, kTag + 4, kCookie, nullptr, nullptr, &base), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetJobResInfo(0, client::ptag(), GNI_JOB_RES_MDD, 1ull << 40), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetJobResInfo(0, client::ptag(), GNI_JOB_RES_GART, 1), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(GNI_SetJobResInfo(0, client::ptag(), GNI_JOB_RES_LAST, 1), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetJobResInfo(4, client::ptag(), GNI_JOB_RES_MDD, 1), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_SetJobResInfo(0, 250, GNI_JOB_RES_MDD, 1), if_root(GNI_RC_NO_MATCH));
  gni_job_res_desc_t info{};
  EXPECT_EQ(GNI_GetJobResInfo(0, 250, GNI_JOB_RES_MDD, &info), GNI_RC_NO_MATCH);
}

// As one of another process would be: its process number and its checksum differ.
gni_mem_handle_t foreign(gni_mem_handle_t handle) {
  handle.qword1 ^= std::uint64_t{1} << 42;
  for (std::uint64_t checksum = 0; checksum < 256; ++checksum) {
    handle.qword2 = (handle.qword2 & ~(std::uint64_t{0xff} << 56)) | checksum << 56;
    int yes = 0;
    if (GNI_MemHndlQueryAttr(&handle, GNI_MEMHNDL_ATTR_READONLY, &yes) == GNI_RC_SUCCESS) return handle;
  }
  ADD_FAILURE() << "no such handle is well formed";
  return handle;
}

class Registrations : public testing::Test {
 protected:
  gni_return_t with_index(std::uint32_t index, gni_mem_handle_t* handle) {
    return GNI_MemRegister(domain.nic, address_of(page.data()) + 4096 * (index % 4), 4096, nullptr,
                           GNI_MEM_USE_VMDH, index, handle);
  }
  client::Domain domain;
  alignas(4096) std::array<std::byte, 4 * 4096> page{};
};

TEST_F(Registrations, ByReservedEntry) {
  gni_mem_handle_t zero{};
  EXPECT_EQ(with_index(0, &zero), GNI_RC_ERROR_RESOURCE) << "nothing is reserved";
  EXPECT_EQ(GNI_SetMddResources(domain.nic, 0), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetMddResources(domain.nic, 1u << 20), GNI_RC_ERROR_RESOURCE);
  ASSERT_EQ(GNI_SetMddResources(domain.nic, 4), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_SetMddResources(domain.nic, 4), GNI_RC_INVALID_STATE);
  ASSERT_EQ(with_index(0, &zero), GNI_RC_SUCCESS);
  gni_mem_handle_t three{};
  ASSERT_EQ(with_index(3, &three), GNI_RC_SUCCESS);
  gni_mem_handle_t none{};
  EXPECT_EQ(with_index(3, &none), GNI_RC_ERROR_RESOURCE) << "in use";
  EXPECT_EQ(with_index(4, &none), GNI_RC_INVALID_PARAM);
  int yes = 0;
  ASSERT_EQ(GNI_MemHndlQueryAttr(&three, GNI_MEMHNDL_ATTR_VMDH, &yes), GNI_RC_SUCCESS);
  EXPECT_EQ(yes, 1);

  gni_mem_handle_t rebuilt{};
  ASSERT_EQ(GNI_RebuildMemHndl(&zero, 3, &rebuilt), GNI_RC_SUCCESS);
  EXPECT_EQ(rebuilt.qword1, three.qword1);
  EXPECT_EQ(rebuilt.qword2, three.qword2);
  EXPECT_EQ(GNI_RebuildMemHndl(&zero, 1u << 20, &rebuilt), GNI_RC_INVALID_PARAM) << "no such number";
  gni_mem_handle_t plain = domain.memory(page.data(), 64);
  EXPECT_EQ(GNI_RebuildMemHndl(&plain, 3, &rebuilt), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_RebuildMemHndl(nullptr, 3, &rebuilt), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_RebuildMemHndl(&zero, 3, nullptr), GNI_RC_INVALID_PARAM);
  gni_mem_handle_t theirs = foreign(zero);
  EXPECT_EQ(GNI_RebuildMemHndl(&theirs, 3, &rebuilt), GNI_RC_SUCCESS) << "of another process";
  EXPECT_EQ(rebuilt.qword1, foreign(three).qword1);

  // Handles with the attribute are as good as others.
  const gni_cq_handle_t source = domain.queue(4);
  const gni_ep_handle_t ep = domain.endpoint(source, domain.address, domain.instance);
  gni_post_descriptor_t d = client::descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
  std::uint64_t value = 0x1234;
  d.local_addr = address_of(&value);
  d.remote_addr = address_of(page.data()) + 3 * 4096;
  d.remote_mem_hndl = three;
  d.length = 8;
  ASSERT_EQ(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
  gni_cq_entry_t event = 0;
  EXPECT_EQ(client::next_event(source, &event), GNI_RC_SUCCESS);
  EXPECT_EQ(std::memcmp(page.data() + 3 * 4096, &value, 8), 0);

  ASSERT_EQ(GNI_MemDeregister(domain.nic, &three), GNI_RC_SUCCESS);
  EXPECT_EQ(with_index(3, &three), GNI_RC_SUCCESS) << "free again";
}

TEST_F(Registrations, TellWhatTheyWereAskedToBe) {
  const auto attributes = [&](std::uint32_t flags) {
    gni_mem_handle_t handle{};
    EXPECT_EQ(GNI_MemRegister(domain.nic, address_of(page.data()), 4096, nullptr, flags, -1U, &handle),
              GNI_RC_SUCCESS);
    std::set<int> has;
    for (int which = GNI_MEMHNDL_ATTR_READONLY; which <= GNI_MEMHNDL_ATTR_CLONE; ++which) {
      int yes = -1;
      EXPECT_EQ(GNI_MemHndlQueryAttr(&handle, static_cast<gni_mem_handle_attr_t>(which), &yes),
                GNI_RC_SUCCESS);
      if (yes == 1) has.insert(which);
    }
    EXPECT_EQ(GNI_MemDeregister(domain.nic, &handle), GNI_RC_SUCCESS);
    return has;
  };
  EXPECT_EQ(attributes(GNI_MEM_READWRITE), std::set<int>{});
  EXPECT_EQ(attributes(GNI_MEM_READ_ONLY), std::set<int>{GNI_MEMHNDL_ATTR_READONLY});
  EXPECT_EQ(attributes(GNI_MEM_USE_GART), std::set<int>{GNI_MEMHNDL_ATTR_GART});
  EXPECT_EQ(attributes(GNI_MEM_MDD_CLONE | GNI_MEM_READ_ONLY),
            (std::set<int>{GNI_MEMHNDL_ATTR_READONLY, GNI_MEMHNDL_ATTR_CLONE}));
}

// A rebuilt handle is asked for without saying whose registrations are meant, so another thread may be at
// them.
TEST_F(Registrations, AreRebuiltWhileOthersComeAndGo) {
  ASSERT_EQ(GNI_SetMddResources(domain.nic, 4), GNI_RC_SUCCESS);
  gni_mem_handle_t zero{};
  ASSERT_EQ(with_index(0, &zero), GNI_RC_SUCCESS);
  std::atomic<bool> over{false};
  std::thread registering([&] {
    for (int i = 0; i < 2'000; ++i) {
      gni_mem_handle_t handle{};
      EXPECT_EQ(with_index(1, &handle), GNI_RC_SUCCESS);
      EXPECT_EQ(GNI_MemDeregister(domain.nic, &handle), GNI_RC_SUCCESS);
    }
    over.store(true, std::memory_order_release);
  });
  while (!over.load(std::memory_order_acquire)) {
    gni_mem_handle_t rebuilt{};
    ASSERT_EQ(GNI_RebuildMemHndl(&zero, 0, &rebuilt), GNI_RC_SUCCESS);
    ASSERT_EQ(rebuilt.qword1, zero.qword1);
    if (GNI_RebuildMemHndl(&zero, 1, &rebuilt) == GNI_RC_SUCCESS) {
      ASSERT_NE(rebuilt.qword1, zero.qword1);
    }
  }
  registering.join();
}

TEST_F(Registrations, OfMemoryThatMayNotBeReadIsRefusedAsSuch) {
  void* const closed = mmap(nullptr, 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(closed, MAP_FAILED);
  gni_mem_handle_t handle{};
  const auto at = [&](std::uint64_t address, std::uint64_t length) {
    return GNI_MemRegister(domain.nic, address, length, nullptr, GNI_MEM_READ_ONLY, -1U, &handle);
  };
  EXPECT_EQ(at(address_of(closed), 4096), GNI_RC_PERMISSION_ERROR);
  ASSERT_EQ(mprotect(closed, 4096, PROT_READ), 0);
  EXPECT_EQ(at(address_of(closed), 2 * 4096), GNI_RC_PERMISSION_ERROR) << "half of it";
  ASSERT_EQ(at(address_of(closed), 4096), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &handle), GNI_RC_SUCCESS);
  ASSERT_EQ(munmap(closed, 2 * 4096), 0);
  EXPECT_EQ(at(address_of(closed), 4096), GNI_RC_INVALID_PARAM) << "nothing is there";
}

TEST_F(Registrations, CanBeWalked) {
  gni_mem_handle_t at{};
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  EXPECT_EQ(GNI_MemQueryHndls(domain.nic, -1, &at, &address, &length), GNI_RC_NO_MATCH);
  std::set<std::uint64_t> starts;
  for (std::uint64_t i = 0; i < 4; ++i) {
    starts.insert(address_of(page.data()) + 4096 * i + 3 * i);
    (void)domain.memory(page.data() + 4096 * i + 3 * i, 100 + i);
  }
  std::set<std::uint64_t> seen;
  for (int step = 0; step < 10; ++step) {
    const gni_return_t rc = GNI_MemQueryHndls(domain.nic, -1, &at, &address, &length);
    if (rc == GNI_RC_NO_MATCH) break;
    ASSERT_EQ(rc, GNI_RC_SUCCESS);
    EXPECT_TRUE(seen.insert(address).second);
    EXPECT_EQ(length, 100 + (address - address_of(page.data())) / 4096);
  }
  EXPECT_EQ(seen, starts);
  gni_mem_handle_t theirs = foreign(at);
  EXPECT_EQ(GNI_MemQueryHndls(domain.nic, -1, &theirs, &address, &length), GNI_RC_INVALID_PARAM);
  gni_mem_handle_t junk{1, 2};
  EXPECT_EQ(GNI_MemQueryHndls(domain.nic, -1, &junk, &address, &length), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemQueryHndls(nullptr, -1, &at, &address, &length), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemQueryHndls(domain.nic, 12345, &at, &address, &length), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemQueryHndls(domain.nic, -1, nullptr, &address, &length), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemQueryHndls(domain.nic, -1, &at, nullptr, &length), GNI_RC_INVALID_PARAM);
}

}  // namespace
