// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Every call with every kind of argument that no client should pass. Each row names what it passes and the
// code that the header documents; no row may crash, and none may change an output that it must not touch.
#include "tests/lib/gni/client.hpp"

#include <array>
#include <cstring>
#include <functional>
#include <string>

#include <sys/mman.h>

namespace {

using client::address_of;
using client::descriptor;

constexpr std::uint64_t kPatterns[] = {0x1, 0x1000, 0xdeadbeefcafef00d, ~0ull};

template <typename Handle>
std::vector<Handle> bad_handles(std::initializer_list<std::uint64_t> foreign) {
  std::vector<Handle> all{nullptr};
  for (const std::uint64_t bits : kPatterns) all.push_back(reinterpret_cast<Handle>(bits));
  for (const std::uint64_t bits : foreign) all.push_back(reinterpret_cast<Handle>(bits));
  return all;
}

template <typename Handle>
std::uint64_t bits(Handle handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

class BadInput : public testing::Test {
 protected:
  BadInput() {
    source = domain.queue(64);
    target = domain.queue(64);
    endpoint = domain.endpoint(source, domain.address, domain.instance);
    memory = domain.memory(page.data(), page.size(), target);
    // Freed ones of each kind.
    gni_cdm_handle_t cdm = nullptr;
    EXPECT_EQ(GNI_CdmCreate(7, client::ptag(), client::cookie(), 0, &cdm), GNI_RC_SUCCESS);
    freed_cdm = bits(cdm);
    EXPECT_EQ(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    const gni_cq_handle_t cq = domain.queue(1);
    freed_cq = bits(cq);
    EXPECT_EQ(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
    const gni_ep_handle_t ep = domain.endpoint(nullptr, 1, 1);
    freed_ep = bits(ep);
    EXPECT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
  }

  std::vector<gni_cdm_handle_t> bad_cdms() {
    return bad_handles<gni_cdm_handle_t>({freed_cdm, bits(domain.nic), bits(source), bits(endpoint)});
  }
  std::vector<gni_nic_handle_t> bad_nics() {
    return bad_handles<gni_nic_handle_t>({bits(domain.cdm), bits(source), bits(endpoint), freed_ep});
  }
  std::vector<gni_cq_handle_t> bad_cqs() {
    return bad_handles<gni_cq_handle_t>({freed_cq, bits(domain.nic), bits(endpoint), bits(other.nic)});
  }
  std::vector<gni_ep_handle_t> bad_eps() {
    return bad_handles<gni_ep_handle_t>({freed_ep, bits(domain.nic), bits(source), bits(domain.cdm)});
  }

  // A good request, to be spoilt.
  gni_post_descriptor_t good(int type) {
    gni_post_descriptor_t d = descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
    std::memcpy(&d.type, &type, sizeof d.type);
    d.local_addr = address_of(page.data());
    d.local_mem_hndl = memory;
    d.remote_addr = address_of(page.data()) + 256;
    d.remote_mem_hndl = memory;
    d.length = 64;
    return d;
  }
  using Post = gni_return_t (*)(gni_ep_handle_t, gni_post_descriptor_t*);
  // Refused with `code`, and no event comes of it.
  void refused(const std::string& what, Post post, gni_ep_handle_t ep, gni_post_descriptor_t d,
               gni_return_t code) {
    EXPECT_EQ(post(ep, &d), code) << what;
    gni_cq_entry_t event = 0;
    EXPECT_EQ(GNI_CqGetEvent(source, &event), GNI_RC_NOT_DONE) << what;
  }
  // Accepted, and its event says that it failed.
  void fails_later(const std::string& what, Post post, gni_post_descriptor_t d) {
    ASSERT_EQ(post(endpoint, &d), GNI_RC_SUCCESS) << what;
    gni_cq_entry_t event = 0;
    ASSERT_EQ(client::next_event(source, &event), GNI_RC_TRANSACTION_ERROR) << what;
    EXPECT_NE(GNI_CQ_GET_STATUS(event), 0U) << what;
    gni_post_descriptor_t* done = nullptr;
    EXPECT_EQ(GNI_GetCompleted(source, event, &done), GNI_RC_TRANSACTION_ERROR) << what;
    EXPECT_EQ(done, &d) << what;
    EXPECT_EQ(d.status, static_cast<std::uint64_t>(GNI_RC_TRANSACTION_ERROR)) << what;
    EXPECT_EQ(GNI_GetCompleted(source, event, &done), GNI_RC_DESCRIPTOR_ERROR) << what << ", twice";
    EXPECT_EQ(done, nullptr) << what;
    char text[256];
    EXPECT_EQ(GNI_CqErrorStr(event, text, sizeof text), GNI_RC_SUCCESS) << what;
    std::uint32_t recoverable = 7;
    EXPECT_EQ(GNI_CqErrorRecoverable(event, &recoverable), GNI_RC_SUCCESS) << what;
  }

  client::Domain domain;
  client::Domain other{0, 5000};
  alignas(4096) std::array<std::byte, 8192> page{};
  gni_cq_handle_t source = nullptr;
  gni_cq_handle_t target = nullptr;
  gni_ep_handle_t endpoint = nullptr;
  gni_mem_handle_t memory{};
  std::uint64_t freed_cdm = 0;
  std::uint64_t freed_cq = 0;
  std::uint64_t freed_ep = 0;
};

TEST_F(BadInput, HandlesThatAreNotLiveAreRefusedByEveryCallThatTakesOne) {
  std::uint32_t number = 77;
  gni_nic_handle_t nic = nullptr;
  gni_cq_entry_t event = 77;
  for (const auto cdm : bad_cdms()) {
    EXPECT_EQ(GNI_CdmAttach(cdm, 0, &number, &nic), GNI_RC_INVALID_PARAM) << cdm;
    EXPECT_EQ(GNI_CdmDestroy(cdm), GNI_RC_INVALID_PARAM) << cdm;
  }
  gni_mem_handle_t handle{5, 6};
  gni_mem_segment_t segment{address_of(page.data()), 64};
  for (const auto bad : bad_nics()) {
    gni_ep_handle_t ep = nullptr;
    gni_cq_handle_t cq = nullptr;
    EXPECT_EQ(GNI_EpCreate(bad, nullptr, &ep), GNI_RC_INVALID_PARAM) << bad;
    EXPECT_EQ(GNI_CqCreate(bad, 8, 0, 0, nullptr, nullptr, &cq), GNI_RC_INVALID_PARAM) << bad;
    EXPECT_EQ(GNI_MemRegister(bad, address_of(page.data()), 64, nullptr, 0, UINT32_MAX, &handle),
              GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_MemRegisterSegments(bad, &segment, 1, nullptr, 0, UINT32_MAX, &handle),
              GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_MemDeregister(bad, &memory), GNI_RC_INVALID_PARAM) << bad;
    EXPECT_EQ(ep, nullptr);
    EXPECT_EQ(cq, nullptr);
  }
  for (const auto bad : bad_cqs()) {
    gni_ep_handle_t ep = nullptr;
    gni_post_descriptor_t* done = nullptr;
    if (bad != nullptr) {
      EXPECT_EQ(GNI_EpCreate(domain.nic, bad, &ep), GNI_RC_INVALID_PARAM) << bad;
      EXPECT_EQ(GNI_MemRegister(domain.nic, address_of(page.data()), 64, bad, 0, UINT32_MAX, &handle),
                GNI_RC_INVALID_PARAM)
          << bad;
      gni_post_descriptor_t d = good(GNI_POST_RDMA_PUT);
      d.src_cq_hndl = bad;
      refused("RDMA put to a bad queue", GNI_PostRdma, endpoint, d, GNI_RC_INVALID_PARAM);
    }
    EXPECT_EQ(GNI_CqDestroy(bad), GNI_RC_INVALID_PARAM) << bad;
    EXPECT_EQ(GNI_CqGetEvent(bad, &event), GNI_RC_INVALID_PARAM) << bad;
    EXPECT_EQ(GNI_CqWaitEvent(bad, 0, &event), GNI_RC_INVALID_PARAM) << bad;
    EXPECT_EQ(GNI_CqTestEvent(bad), GNI_RC_INVALID_PARAM) << bad;
    EXPECT_EQ(GNI_GetCompleted(bad, 1, &done), GNI_RC_INVALID_PARAM) << bad;
  }
  for (const auto bad : bad_eps()) {
    EXPECT_EQ(GNI_EpBind(bad, 1, 1), GNI_RC_INVALID_PARAM) << bad;
    EXPECT_EQ(GNI_EpUnbind(bad), GNI_RC_INVALID_PARAM) << bad;
    EXPECT_EQ(GNI_EpIdle(bad), GNI_RC_INVALID_PARAM) << bad;
    EXPECT_EQ(GNI_EpDestroy(bad), GNI_RC_INVALID_PARAM) << bad;
    EXPECT_EQ(GNI_EpSetEventData(bad, 1, 2), GNI_RC_INVALID_PARAM) << bad;
    refused("FMA put", GNI_PostFma, bad, good(GNI_POST_FMA_PUT), GNI_RC_INVALID_PARAM);
    refused("RDMA put", GNI_PostRdma, bad, good(GNI_POST_RDMA_PUT), GNI_RC_INVALID_PARAM);
    refused("CQ write", GNI_PostCqWrite, bad, good(GNI_POST_CQWRITE), GNI_RC_INVALID_PARAM);
  }
  EXPECT_EQ(number, 77U);
  EXPECT_EQ(event, 77U);
  EXPECT_EQ(handle.qword1, 5U);
}

TEST_F(BadInput, QueuesAndMemoryOfAnotherNicHandleAreRefused) {
  const gni_cq_handle_t theirs = other.queue(8);
  gni_ep_handle_t ep = nullptr;
  EXPECT_EQ(GNI_EpCreate(domain.nic, theirs, &ep), GNI_RC_INVALID_PARAM);
  gni_mem_handle_t handle{};
  EXPECT_EQ(GNI_MemRegister(domain.nic, address_of(page.data()), 64, theirs, 0, UINT32_MAX, &handle),
            GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemDeregister(other.nic, &memory), GNI_RC_INVALID_PARAM);
  gni_post_descriptor_t d = good(GNI_POST_RDMA_PUT);
  d.src_cq_hndl = theirs;
  refused("a queue of another NIC handle", GNI_PostRdma, endpoint, d, GNI_RC_INVALID_PARAM);
}

TEST_F(BadInput, NullOutputsAreRefused) {
  std::uint32_t number = 0;
  gni_nic_handle_t nic = nullptr;
  EXPECT_EQ(GNI_CdmCreate(1, 1, 1, 0, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CdmAttach(domain.cdm, 0, nullptr, &nic), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CdmAttach(domain.cdm, 0, &number, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CdmGetNicAddress(0, nullptr, &number), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CdmGetNicAddress(0, &number, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CdmHold(client::ptag(), client::cookie(), nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqCreate(domain.nic, 1, 0, 0, nullptr, nullptr, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqGetEvent(source, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqWaitEvent(source, 0, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqErrorStr(1, nullptr, 256), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqErrorRecoverable(1, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpCreate(domain.nic, source, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetCompleted(source, 1, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetNumLocalDevices(nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetLocalDeviceIds(1, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetDeviceType(nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetDevResInfo(0, GNI_DEV_RES_CQ, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetJobResInfo(0, 1, GNI_JOB_RES_CQ, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetNttGran(0, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetPtag(0, client::cookie(), nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetVersion(nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetVersionInformation(nullptr), GNI_RC_INVALID_PARAM);
  int yesno = 0;
  EXPECT_EQ(GNI_MemHndlQueryAttr(nullptr, GNI_MEMHNDL_ATTR_READONLY, &yesno), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemHndlQueryAttr(&memory, GNI_MEMHNDL_ATTR_READONLY, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemRegister(domain.nic, address_of(page.data()), 64, nullptr, 0, UINT32_MAX, nullptr),
            GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemRegisterSegments(domain.nic, nullptr, 1, nullptr, 0, UINT32_MAX, &memory),
            GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemDeregister(domain.nic, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_PostFma(endpoint, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_PostRdma(endpoint, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_PostCqWrite(endpoint, nullptr), GNI_RC_INVALID_PARAM);
}

TEST_F(BadInput, DomainsThatDoNotExistAreRefused) {
  gni_cdm_handle_t cdm = nullptr;
  gni_nic_handle_t nic = nullptr;
  std::uint32_t address = 0;
  EXPECT_EQ(GNI_CdmCreate(1, 1, 1, 0x400, &cdm), GNI_RC_INVALID_PARAM) << "a mode bit without a name";
  EXPECT_EQ(GNI_CdmCreate(1, 1, 1, GNI_CDM_MODE_ERR_NO_KILL | GNI_CDM_MODE_ERR_ALL_KILL, &cdm),
            GNI_RC_INVALID_PARAM);
  ASSERT_EQ(GNI_CdmCreate(9000, client::ptag(), client::cookie() + 77, 0, &cdm), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_PERMISSION_ERROR) << "a cookie of no job";
  EXPECT_EQ(GNI_CdmAttach(cdm, 5, &address, &nic), GNI_RC_NO_MATCH) << "no such device";
  EXPECT_EQ(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CdmAttach(domain.cdm, 0, &address, &nic), GNI_RC_INVALID_STATE) << "attached already";
  EXPECT_EQ(GNI_CdmAttach(domain.cdm, UINT32_MAX, &address, &nic), GNI_RC_INVALID_STATE);
  std::uint32_t cpu = 0;
  EXPECT_EQ(GNI_CdmGetNicAddress(1, &address, &cpu), GNI_RC_NO_MATCH);
  int fd = -1;
  EXPECT_EQ(GNI_CdmHold(client::ptag(), client::cookie() + 77, &fd), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_CdmRelease(-1), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CdmRelease(0), GNI_RC_INVALID_PARAM);
  ASSERT_EQ(GNI_CdmHold(client::ptag(), client::cookie(), &fd), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CdmRelease(fd), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CdmRelease(fd), GNI_RC_INVALID_PARAM) << "released already";
  std::uint8_t ptag = 0;
  EXPECT_EQ(GNI_GetPtag(0, client::cookie() + 77, &ptag), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_GetPtag(1, client::cookie(), &ptag), GNI_RC_NO_MATCH);
}

TEST_F(BadInput, DevicesAndResourcesThatDoNotExistAreRefused) {
  gni_dev_res_desc_t device{};
  gni_job_res_desc_t job{};
  std::uint32_t granularity = 0;
  int ids[4] = {-1, -1, -1, -1};
  EXPECT_EQ(GNI_GetLocalDeviceIds(0, ids), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetLocalDeviceIds(-1, ids), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetDevResInfo(1, GNI_DEV_RES_CQ, &device), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_GetDevResInfo(0, GNI_DEV_RES_FIRST, &device), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetDevResInfo(0, GNI_DEV_RES_LAST, &device), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetDevResInfo(0, GNI_DEV_RES_DVA, &device), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(GNI_GetJobResInfo(1, client::ptag(), GNI_JOB_RES_CQ, &job), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_GetJobResInfo(0, client::ptag(), GNI_JOB_RES_FIRST, &job), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetJobResInfo(0, client::ptag(), GNI_JOB_RES_LAST, &job), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetJobResInfo(0, client::ptag(), GNI_JOB_RES_GART, &job), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(GNI_GetNttGran(1, &granularity), GNI_RC_NO_MATCH);
}

TEST_F(BadInput, QueuesOfImpossibleSizesAndModesAreRefused) {
  gni_cq_handle_t cq = nullptr;
  EXPECT_EQ(GNI_CqCreate(domain.nic, 0, 0, 0, nullptr, nullptr, &cq), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqCreate(domain.nic, 8, 0, 0x8000, nullptr, nullptr, &cq), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqCreate(domain.nic, UINT32_MAX, 0, 0, nullptr, nullptr, &cq), GNI_RC_ERROR_RESOURCE);
  gni_cq_entry_t event = 77;
  EXPECT_EQ(GNI_CqWaitEvent(source, 10, &event), GNI_RC_ERROR_RESOURCE) << "a queue that cannot block";
  EXPECT_EQ(event, 77U);
  EXPECT_EQ(GNI_CqDestroy(source), GNI_RC_ERROR_RESOURCE) << "an endpoint names it";
}

TEST_F(BadInput, EventsThatNobodyRaisedFindNoDescriptor) {
  gni_post_descriptor_t* done = &reinterpret_cast<gni_post_descriptor_t&>(page);
  for (const std::uint64_t event : {0ull, 1ull, 0x0600000000000000ull, 0x0580000005000000ull, ~0ull}) {
    EXPECT_EQ(GNI_GetCompleted(source, event, &done), GNI_RC_DESCRIPTOR_ERROR) << event;
    EXPECT_EQ(done, nullptr);
  }
}

TEST_F(BadInput, MemoryThatCannotBeRegisteredIsRefusedAndTheHandleLeftAlone) {
  gni_mem_handle_t handle{5, 6};
  const auto reg = [&](std::uint64_t address, std::uint64_t length, std::uint32_t flags) {
    return GNI_MemRegister(domain.nic, address, length, nullptr, flags, UINT32_MAX, &handle);
  };
  const std::uint64_t here = address_of(page.data());
  EXPECT_EQ(reg(here, 0, 0), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(reg(here, ~0ull, 0), GNI_RC_INVALID_PARAM) << "wraps";
  EXPECT_EQ(reg(~0ull, 2, 0), GNI_RC_INVALID_PARAM) << "wraps";
  EXPECT_EQ(reg(0, 64, 0), GNI_RC_INVALID_PARAM) << "nothing is mapped there";
  EXPECT_EQ(reg(here, 64, 0x80000000), GNI_RC_INVALID_PARAM) << "a flag without a name";
  EXPECT_EQ(reg(here, 64, GNI_MEM_PHYS_CONT), GNI_RC_PERMISSION_ERROR);
  EXPECT_EQ(reg(here, 64, GNI_MEM_USE_VMDH), GNI_RC_ERROR_RESOURCE);
  void* read_only = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(reg(address_of(read_only), 64, 0), GNI_RC_PERMISSION_ERROR);
  EXPECT_EQ(handle.qword1, 5U);
  EXPECT_EQ(handle.qword2, 6U);
  EXPECT_EQ(reg(address_of(read_only), 64, GNI_MEM_READ_ONLY), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &handle), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &handle), GNI_RC_INVALID_PARAM) << "twice";
  munmap(read_only, 4096);

  gni_mem_segment_t segments[2] = {{here, 64}, {here + 128, 0}};
  const auto reg_list = [&](std::uint32_t count) {
    return GNI_MemRegisterSegments(domain.nic, segments, count, nullptr, 0, UINT32_MAX, &handle);
  };
  EXPECT_EQ(reg_list(0), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(reg_list(2), GNI_RC_INVALID_PARAM) << "a segment of length 0";
  EXPECT_EQ(reg_list(UINT32_MAX), GNI_RC_ERROR_RESOURCE);
  segments[1] = {here, ~0ull};
  EXPECT_EQ(reg_list(2), GNI_RC_INVALID_PARAM) << "wraps";

  gni_mem_handle_t changed = memory;
  changed.qword1 ^= 1ull << 60;
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &changed), GNI_RC_INVALID_PARAM);
  int yesno = 7;
  EXPECT_EQ(GNI_MemHndlQueryAttr(&changed, GNI_MEMHNDL_ATTR_READONLY, &yesno), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemHndlQueryAttr(&memory, static_cast<gni_mem_handle_attr_t>(0), &yesno),
            GNI_RC_INVALID_PARAM);
  EXPECT_EQ(yesno, 7);
}

TEST_F(BadInput, EndpointsAreBoundOnce) {
  gni_ep_handle_t ep = nullptr;
  ASSERT_EQ(GNI_EpCreate(domain.nic, source, &ep), GNI_RC_SUCCESS);
  refused("an unbound endpoint", GNI_PostFma, ep, good(GNI_POST_FMA_PUT), GNI_RC_INVALID_PARAM);
  refused("an unbound endpoint", GNI_PostRdma, ep, good(GNI_POST_RDMA_GET), GNI_RC_INVALID_PARAM);
  refused("an unbound endpoint", GNI_PostCqWrite, ep, good(GNI_POST_CQWRITE), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpBind(ep, domain.address, 1), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_EpBind(ep, domain.address, 1), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpUnbind(ep), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_EpBind(ep, domain.address, 2), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
}

TEST_F(BadInput, RequestsThatCannotBeCarriedOutAreRefusedAtOnce) {
  struct Row {
    const char* what;
    Post post;
    int type;  // an int, because some rows hold what the enumeration does not
    std::function<void(gni_post_descriptor_t&)> spoil;
    gni_return_t code;
  };
  const auto fma = GNI_PostFma;
  const auto rdma = GNI_PostRdma;
  const auto write = GNI_PostCqWrite;
  const auto as_is = [](gni_post_descriptor_t&) {};
  gni_mem_handle_t read_only = domain.memory(page.data(), 4096, nullptr, GNI_MEM_READ_ONLY);
  gni_mem_handle_t gone = domain.memory(page.data(), 64);
  ASSERT_EQ(GNI_MemDeregister(domain.nic, &gone), GNI_RC_SUCCESS);
  const Row rows[] = {
      {"type of another call", fma, GNI_POST_RDMA_PUT, as_is, GNI_RC_INVALID_PARAM},
      {"type of another call", rdma, GNI_POST_FMA_GET, as_is, GNI_RC_INVALID_PARAM},
      {"type of another call", write, GNI_POST_FMA_PUT, as_is, GNI_RC_INVALID_PARAM},
      {"type 0", fma, 0, as_is, GNI_RC_INVALID_PARAM},
      {"type 99", rdma, 99, as_is, GNI_RC_INVALID_PARAM},
      {"unknown event", fma, GNI_POST_FMA_PUT, [](auto& d) { d.cq_mode = 8; }, GNI_RC_INVALID_PARAM},
      {"LOCAL and GLOBAL", fma, GNI_POST_FMA_PUT, [](auto& d) { d.cq_mode = 3; }, GNI_RC_INVALID_PARAM},
      {"LOCAL and GLOBAL", rdma, GNI_POST_RDMA_GET, [](auto& d) { d.cq_mode = 3; }, GNI_RC_INVALID_PARAM},
      {"source 0", fma, GNI_POST_FMA_PUT, [](auto& d) { d.local_addr = 0; }, GNI_RC_INVALID_PARAM},
      {"over 1 GiB", fma, GNI_POST_FMA_PUT, [](auto& d) { d.length = (1ull << 30) + 1; }, GNI_RC_SIZE_ERROR},
      {"4 GiB", rdma, GNI_POST_RDMA_PUT, [](auto& d) { d.length = 1ull << 32; }, GNI_RC_SIZE_ERROR},
      {"get of 0", fma, GNI_POST_FMA_GET, [](auto& d) { d.length = 0; }, GNI_RC_INVALID_PARAM},
      {"get of 0", rdma, GNI_POST_RDMA_GET, [](auto& d) { d.length = 0; }, GNI_RC_INVALID_PARAM},
      {"get of 5", fma, GNI_POST_FMA_GET, [](auto& d) { d.length = 5; }, GNI_RC_ALIGNMENT_ERROR},
      {"get from 2", rdma, GNI_POST_RDMA_GET, [](auto& d) { d.remote_addr += 2; }, GNI_RC_ALIGNMENT_ERROR},
      {"no local handle", fma, GNI_POST_FMA_GET, [](auto& d) { d.local_mem_hndl = {}; },
       GNI_RC_INVALID_PARAM},
      {"no local handle", rdma, GNI_POST_RDMA_PUT, [](auto& d) { d.local_mem_hndl = {}; },
       GNI_RC_INVALID_PARAM},
      {"all ones", rdma, GNI_POST_RDMA_PUT,
       [](auto& d) {
         d.local_mem_hndl = {~0ull, ~0ull};
       },
       GNI_RC_INVALID_PARAM},
      {"deregistered", rdma, GNI_POST_RDMA_GET, [&](auto& d) { d.local_mem_hndl = gone; },
       GNI_RC_INVALID_PARAM},
      {"before it", rdma, GNI_POST_RDMA_PUT, [](auto& d) { d.local_addr -= 8; }, GNI_RC_INVALID_PARAM},
      {"behind it", rdma, GNI_POST_RDMA_GET, [](auto& d) { d.local_addr += 8192 - 60; },
       GNI_RC_INVALID_PARAM},
      {"wraps", fma, GNI_POST_FMA_GET, [](auto& d) { d.local_addr = ~0ull - 3; }, GNI_RC_INVALID_PARAM},
      {"into read-only", rdma, GNI_POST_RDMA_GET, [&](auto& d) { d.local_mem_hndl = read_only; },
       GNI_RC_PERMISSION_ERROR},
      {"physical", rdma, GNI_POST_RDMA_PUT, [](auto& d) { d.rdma_mode = GNI_RDMAMODE_PHYS_ADDR; },
       GNI_RC_PERMISSION_ERROR},
      {"AMO", fma, GNI_POST_AMO, as_is, GNI_RC_ILLEGAL_OP},
      {"CE without a tree", fma, GNI_POST_CE, as_is, GNI_RC_INVALID_PARAM},
  };
  for (const Row& row : rows) {
    gni_post_descriptor_t d = good(row.type);
    row.spoil(d);
    refused(row.what, row.post, endpoint, d, row.code);
  }
  const gni_ep_handle_t silent = domain.endpoint(nullptr, domain.address, 1);
  refused("an event without a queue", fma, silent, good(GNI_POST_FMA_PUT), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpDestroy(silent), GNI_RC_SUCCESS);
}

TEST_F(BadInput, RemoteHandlesThatLeadNowhereEndInAnEvent) {
  gni_mem_handle_t read_only = domain.memory(page.data(), 4096, nullptr, GNI_MEM_READ_ONLY);
  gni_mem_handle_t gone = domain.memory(page.data(), 64);
  ASSERT_EQ(GNI_MemDeregister(domain.nic, &gone), GNI_RC_SUCCESS);
  gni_mem_handle_t elsewhere = memory;  // of a process slot that is empty
  elsewhere.qword1 |= 0x3ffull << 42;
  struct Row {
    const char* what;
    gni_mem_handle_t handle;
    std::uint64_t address_change;
  };
  const Row rows[] = {
      {"none", {}, 0},
      {"all ones", {~0ull, ~0ull}, 0},
      {"random", {0x123456789abcdef0, 0xfedcba9876543210}, 0},
      {"deregistered", gone, 0},
      {"of a process that is not there", elsewhere, 0},
      {"behind it", memory, 8192},
      {"before it", memory, ~0ull << 20},
      {"at the end of everything", memory, ~0ull - (address_of(page.data()) + 256) - 7},
  };
  for (const Row& row : rows) {
    for (const auto& [post, type] :
         std::initializer_list<std::pair<Post, gni_post_type_t>>{{GNI_PostFma, GNI_POST_FMA_PUT},
                                                                 {GNI_PostFma, GNI_POST_FMA_PUT_W_SYNCFLAG},
                                                                 {GNI_PostRdma, GNI_POST_RDMA_PUT},
                                                                 {GNI_PostFma, GNI_POST_FMA_GET},
                                                                 {GNI_PostFma, GNI_POST_AMO},
                                                                 {GNI_PostRdma, GNI_POST_RDMA_GET}}) {
      gni_post_descriptor_t d = good(type);
      d.remote_mem_hndl = row.handle;
      d.remote_addr += row.address_change & ~3ull;
      d.sync_flag_addr = d.remote_addr;
      d.amo_cmd = GNI_FMA_ATOMIC2_FAND_S;
      fails_later(std::string(row.what) + ", type " + std::to_string(type), post, d);
    }
    if (row.address_change == 0) {
      gni_post_descriptor_t d = good(GNI_POST_CQWRITE);
      d.remote_mem_hndl = row.handle;
      fails_later(std::string(row.what) + ", CQ write", GNI_PostCqWrite, d);
    }
  }
  gni_post_descriptor_t d = good(GNI_POST_FMA_PUT);
  d.remote_mem_hndl = read_only;
  fails_later("a put to read-only memory", GNI_PostFma, d);
  d = good(GNI_POST_FMA_PUT_W_SYNCFLAG);
  d.sync_flag_addr = 0;
  fails_later("a flag outside the registration", GNI_PostFma, d);
  const gni_ep_handle_t astray = domain.endpoint(source, domain.address + 1, 1);
  gni_post_descriptor_t lost = good(GNI_POST_FMA_PUT);
  ASSERT_EQ(GNI_PostFma(astray, &lost), GNI_RC_SUCCESS);
  gni_cq_entry_t event = 0;
  EXPECT_EQ(client::next_event(source, &event), GNI_RC_TRANSACTION_ERROR) << "behind another NIC address";
  gni_post_descriptor_t* done = nullptr;
  EXPECT_EQ(GNI_GetCompleted(source, event, &done), GNI_RC_TRANSACTION_ERROR);
  EXPECT_EQ(GNI_EpDestroy(astray), GNI_RC_SUCCESS);
}

TEST_F(BadInput, EverythingOfADomainEndsWithIt) {
  gni_cq_handle_t cq = nullptr;
  gni_ep_handle_t ep = nullptr;
  gni_nic_handle_t nic = nullptr;
  gni_mem_handle_t handle{};
  {
    client::Domain brief(0, 7000);
    nic = brief.nic;
    cq = brief.queue(4);
    ep = brief.endpoint(cq, brief.address, brief.instance);
    handle = brief.memory(page.data(), 4096);
  }
  gni_cq_entry_t event = 0;
  EXPECT_EQ(GNI_CqGetEvent(cq, &event), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpUnbind(ep), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MemDeregister(nic, &handle), GNI_RC_INVALID_PARAM);
  gni_post_descriptor_t d = good(GNI_POST_FMA_PUT);
  d.remote_mem_hndl = handle;
  fails_later("memory of a domain that has ended", GNI_PostFma, d);
}

}  // namespace
