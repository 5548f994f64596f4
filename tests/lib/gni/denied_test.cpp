// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Containers and sandboxes forbid system calls. Without what cannot be replaced a domain is refused, with a
// line that says why; without the rest everything works.
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <gni_pub.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pmi.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// From here on those calls of this process fail with EPERM, as under a container's profile.
bool forbid(const std::vector<long>& calls) {
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const long call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr int kRefused = 10;  // exit codes of a child: the domain was refused ...
constexpr int kWorked = 11;   // ... or a put to itself arrived
constexpr int kNoFilter = 12;

int attach_and_put() {
  gni_cdm_handle_t cdm = nullptr;
  gni_nic_handle_t nic = nullptr;
  gni_cq_handle_t cq = nullptr;
  gni_ep_handle_t ep = nullptr;
  std::uint32_t address = 0;
  int spawned = 0;
  if (PMI_Init(&spawned) != PMI_SUCCESS) return kRefused;
  const auto ptag = static_cast<std::uint8_t>(std::atoi(std::getenv("PMI_GNI_PTAG")));
  const auto cookie = static_cast<std::uint32_t>(std::strtoul(std::getenv("PMI_GNI_COOKIE"), nullptr, 10));
  if (GNI_CdmCreate(3, ptag, cookie, GNI_CDM_MODE_ERR_NO_KILL, &cdm) != GNI_RC_SUCCESS) return 1;
  if (GNI_CdmAttach(cdm, 0, &address, &nic) != GNI_RC_SUCCESS) return kRefused;
  static std::uint64_t from = 5, to = 0;
  gni_mem_handle_t memory{};
  if (GNI_CqCreate(nic, 8, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &cq) != GNI_RC_SUCCESS) return 2;
  if (GNI_MemRegister(nic, reinterpret_cast<std::uint64_t>(&to), sizeof to, nullptr, 0, UINT32_MAX,
                      &memory) != GNI_RC_SUCCESS)
    return 3;
  if (GNI_EpCreate(nic, cq, &ep) != GNI_RC_SUCCESS || GNI_EpBind(ep, address, 3) != GNI_RC_SUCCESS) return 4;
  gni_post_descriptor_t post{};
  post.type = GNI_POST_FMA_PUT;
  post.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
  post.local_addr = reinterpret_cast<std::uint64_t>(&from);
  post.remote_addr = reinterpret_cast<std::uint64_t>(&to);
  post.remote_mem_hndl = memory;
  post.length = sizeof from;
  if (GNI_PostFma(ep, &post) != GNI_RC_SUCCESS) return 5;
  gni_cq_entry_t event = 0;
  gni_return_t got = GNI_RC_NOT_DONE;
  while (got == GNI_RC_NOT_DONE) got = GNI_CqGetEvent(cq, &event);
  return got == GNI_RC_SUCCESS && to == 5 ? kWorked : 6;
}

int code_without(const std::vector<long>& calls) {
  const pid_t child = fork();
  if (child == 0) _exit(forbid(calls) ? attach_and_put() : kNoFilter);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(DeniedSystemCalls, WhatCannotBeReplacedRefusesTheDomain) {
  for (const long call :
       {SYS_memfd_create, SYS_socket, SYS_eventfd2, SYS_timerfd_create, SYS_epoll_create1}) {
    const int code = code_without({call});
    if (code == kNoFilter) ORRERY_SKIP("seccomp") << "this system has no seccomp filters to deny calls with";
    EXPECT_EQ(code, kRefused) << "system call " << call;
  }
}

TEST(DeniedSystemCalls, WhatCanIsReplaced) {
  for (const auto& calls : {std::vector<long>{SYS_membarrier},
                            {SYS_pidfd_open},
                            {SYS_userfaultfd},
                            {SYS_process_vm_readv, SYS_process_vm_writev}}) {
    const int code = code_without(calls);
    if (code == kNoFilter) ORRERY_SKIP("seccomp") << "this system has no seccomp filters to deny calls with";
    EXPECT_EQ(code, kWorked) << "system call " << calls[0];
  }
}

}  // namespace
