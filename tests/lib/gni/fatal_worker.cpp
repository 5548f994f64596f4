// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// fatal_worker MODES WHAT: one put in a domain of these modes, through a handle that names nothing (WHAT bad)
// or its own memory (good). Says what came of it, if it is still there to say so.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <gni_pub.h>
#include <pmi.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  int spawned = 0;
  if (PMI_Init(&spawned) != PMI_SUCCESS) return 3;
  const auto ptag = static_cast<std::uint8_t>(std::atoi(std::getenv("PMI_GNI_PTAG")));
  const auto cookie = static_cast<std::uint32_t>(std::strtoul(std::getenv("PMI_GNI_COOKIE"), nullptr, 10));
  gni_cdm_handle_t cdm = nullptr;
  gni_nic_handle_t nic = nullptr;
  gni_cq_handle_t queue = nullptr;
  gni_ep_handle_t ep = nullptr;
  std::uint32_t address = 0;
  static std::uint64_t words[2];
  gni_post_descriptor_t put;
  std::memset(&put, 0, sizeof put);
  const auto modes = static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 0));
  if (GNI_CdmCreate(1, ptag, cookie, modes, &cdm) != GNI_RC_SUCCESS ||
      GNI_CdmAttach(cdm, 0, &address, &nic) != GNI_RC_SUCCESS ||
      GNI_CqCreate(nic, 8, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &queue) != GNI_RC_SUCCESS ||
      GNI_EpCreate(nic, queue, &ep) != GNI_RC_SUCCESS || GNI_EpBind(ep, address, 1) != GNI_RC_SUCCESS)
    return 4;
  if (std::strcmp(argv[2], "good") == 0 &&
      GNI_MemRegister(nic, reinterpret_cast<std::uint64_t>(words), sizeof words, nullptr, GNI_MEM_READWRITE,
                      UINT32_MAX, &put.remote_mem_hndl) != GNI_RC_SUCCESS)
    return 5;
  put.type = GNI_POST_FMA_PUT;
  put.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
  put.local_addr = reinterpret_cast<std::uint64_t>(&words[0]);
  put.remote_addr = reinterpret_cast<std::uint64_t>(&words[1]);
  put.length = 8;
  if (GNI_PostFma(ep, &put) != GNI_RC_SUCCESS) return 6;
  gni_cq_entry_t event = 0;
  gni_return_t rc = GNI_RC_NOT_DONE;
  while ((rc = GNI_CqGetEvent(queue, &event)) == GNI_RC_NOT_DONE) {
  }
  std::printf("alive after %s, status %#x\n", gni_err_str[rc],
              static_cast<unsigned>(GNI_CQ_GET_STATUS(event)));
  return 0;
}
