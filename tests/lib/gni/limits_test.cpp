// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What a client meets when its domain has used up what it may have. The job runs with
// --limit mdd=8,cq=4,fma=3,ce=1,bte=0.
#include "tests/lib/gni/client.hpp"

#include <array>
#include <memory>

namespace {

using client::address_of;
using client::descriptor;

gni_job_res_desc_t job_has(gni_job_res_t resource) {
  gni_job_res_desc_t desc{};
  EXPECT_EQ(GNI_GetJobResInfo(0, client::ptag(), resource, &desc), GNI_RC_SUCCESS);
  return desc;
}

TEST(Limits, ARegistrationBeyondTheLimitIsRefusedUntilOneIsGivenBack) {
  alignas(4096) static std::array<std::byte, 4096> page;
  std::array<gni_mem_handle_t, 8> handles{};
  {
    client::Domain domain;
    EXPECT_EQ(job_has(GNI_JOB_RES_MDD).limit, 8U);
    for (std::size_t i = 0; i < handles.size(); ++i) {
      EXPECT_EQ(job_has(GNI_JOB_RES_MDD).used, i);
      handles[i] = domain.memory(page.data(), page.size());
    }
    gni_mem_handle_t more{5, 6};
    gni_mem_segment_t segment{address_of(page.data()), 64};
    EXPECT_EQ(GNI_MemRegister(domain.nic, address_of(page.data()), 64, nullptr, 0, UINT32_MAX, &more),
              GNI_RC_ERROR_RESOURCE);
    EXPECT_EQ(GNI_MemRegisterSegments(domain.nic, &segment, 1, nullptr, 0, UINT32_MAX, &more),
              GNI_RC_ERROR_RESOURCE);
    EXPECT_EQ(more.qword1, 5U);
    // What clients do: evict one, and try again.
    EXPECT_EQ(GNI_MemDeregister(domain.nic, &handles[3]), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_MemRegisterSegments(domain.nic, &segment, 1, nullptr, 0, UINT32_MAX, &more),
              GNI_RC_SUCCESS);
    // One that fails for another reason takes nothing.
    EXPECT_EQ(GNI_MemDeregister(domain.nic, &more), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_MemRegister(domain.nic, 0, 64, nullptr, 0, UINT32_MAX, &more), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(job_has(GNI_JOB_RES_MDD).used, 7U);
  }
  EXPECT_EQ(job_has(GNI_JOB_RES_MDD).used, 0U) << "the end of the domain gives everything back";
}

TEST(Limits, QueuesAreCounted) {
  {
    client::Domain domain;
    std::array<gni_cq_handle_t, 4> queues{};
    for (auto& queue : queues) queue = domain.queue(8);
    gni_cq_handle_t more = nullptr;
    EXPECT_EQ(GNI_CqCreate(domain.nic, 8, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &more), GNI_RC_ERROR_RESOURCE);
    EXPECT_EQ(more, nullptr);
    EXPECT_EQ(GNI_CqDestroy(queues[0]), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CqCreate(domain.nic, 8, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &more), GNI_RC_SUCCESS);
    EXPECT_EQ(job_has(GNI_JOB_RES_CQ).used, 4U);
    EXPECT_EQ(job_has(GNI_JOB_RES_CQ).limit, 4U);
  }
  EXPECT_EQ(job_has(GNI_JOB_RES_CQ).used, 0U);
}

TEST(Limits, WithoutADescriptorOnlyDomainsThatShareAttach) {
  std::array<std::unique_ptr<client::Domain>, 3> domains;
  std::uint32_t instance = 1000;
  for (auto& domain : domains)
    domain = std::make_unique<client::Domain>(GNI_CDM_MODE_FMA_DEDICATED, instance++);
  gni_cdm_handle_t cdm = nullptr;
  gni_nic_handle_t nic = nullptr;
  std::uint32_t address = 0;
  REQUIRE_SUCCESS(
      GNI_CdmCreate(instance, client::ptag(), client::cookie(), GNI_CDM_MODE_FMA_DEDICATED, &cdm));
  EXPECT_EQ(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
  // What GASNet does with that answer.
  client::Domain shared(GNI_CDM_MODE_FMA_SHARED, instance);
  domains[0].reset();
  client::Domain again(GNI_CDM_MODE_FMA_DEDICATED, instance + 1);
}

TEST(Limits, TheDeviceCountsDescriptorsAndNotDomains) {
  const auto free_of_device = [] {
    gni_dev_res_desc_t desc{};
    EXPECT_EQ(GNI_GetDevResInfo(0, GNI_DEV_RES_FMA, &desc), GNI_RC_SUCCESS);
    return desc.available;
  };
  const std::uint64_t before = free_of_device();
  const client::Domain shared(GNI_CDM_MODE_FMA_SHARED, 2000);
  EXPECT_EQ(free_of_device(), before) << "it has none of its own";
  {
    const client::Domain own(GNI_CDM_MODE_FMA_DEDICATED, 2001);
    EXPECT_EQ(free_of_device(), before - 1);
  }
  EXPECT_EQ(free_of_device(), before);
}

TEST(Limits, TheEnvironmentSaysWhoSharesDescriptorsWhereTheModesDoNot) {
  const auto used_by = [](std::uint32_t modes) {
    const client::Domain domain(modes, 2010);
    return job_has(GNI_JOB_RES_FMA).used;
  };
  EXPECT_EQ(used_by(0), 1U);
  ASSERT_EQ(setenv("UGNI_FMA_SHARED", "1", 1), 0);
  EXPECT_EQ(used_by(0), 0U);
  EXPECT_EQ(used_by(GNI_CDM_MODE_FMA_DEDICATED), 1U);
  ASSERT_EQ(setenv("UGNI_FMA_SHARED", "0", 1), 0);
  EXPECT_EQ(used_by(0), 1U);
  EXPECT_EQ(used_by(GNI_CDM_MODE_FMA_SHARED), 0U);
  ASSERT_EQ(setenv("UGNI_FMA_SHARED", "yes", 1), 0);
  EXPECT_EQ(used_by(0), 1U) << "not a value";
  ASSERT_EQ(unsetenv("UGNI_FMA_SHARED"), 0);
}

TEST(Limits, CollectiveEnginesAreCounted) {
  client::Domain domain;
  gni_ce_handle_t first = nullptr;
  gni_ce_handle_t second = nullptr;
  EXPECT_EQ(GNI_CeCreate(domain.nic, &first), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CeCreate(domain.nic, &second), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(GNI_CeDestroy(first), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CeCreate(domain.nic, &second), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CeDestroy(second), GNI_RC_SUCCESS);
}

TEST(Limits, BlockTransfersThatNeedTheEngineAreRefusedWithoutADescriptor) {
  client::Domain domain;
  static std::vector<std::byte> bytes(16u << 20);
  const gni_mem_handle_t memory = domain.memory(bytes.data(), bytes.size());
  const gni_cq_handle_t source = domain.queue(8);
  const gni_ep_handle_t ep = domain.endpoint(source, domain.address, domain.instance);
  gni_post_descriptor_t d = descriptor(GNI_POST_RDMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
  d.local_addr = address_of(bytes.data());
  d.remote_addr = address_of(bytes.data()) + (8u << 20);
  d.local_mem_hndl = d.remote_mem_hndl = memory;
  d.length = 8u << 20;
  EXPECT_EQ(GNI_PostRdma(ep, &d), GNI_RC_ERROR_RESOURCE);
  d.length = 4096;
  ASSERT_EQ(GNI_PostRdma(ep, &d), GNI_RC_SUCCESS) << "a short one needs none";
  gni_cq_entry_t event = 0;
  EXPECT_EQ(client::next_event(source, &event), GNI_RC_SUCCESS);
}

}  // namespace
