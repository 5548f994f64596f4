// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gni_pub.h>
#include <pmi.h>
#include <unistd.h>

// A plug-in of a program: loads libugni (argv[1]) and libpmi (argv[2]), attaches, lets threads sleep in each
// call that waits, and closes both. Half of the threads come back from their calls afterwards, the others are
// still inside when main returns. The service thread goes on, too.
namespace {

template <typename Function>
Function* load(void* library, const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  if (found == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::_Exit(3);
  }
  return found;
}
#define UGNI(name) load<decltype(name)>(ugni, #name)
#define PMI(name) load<decltype(name)>(pmi, #name)

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s failed\n", what);
  std::_Exit(4);
}
#define MUST_UGNI(name, ...) must(UGNI(name)(__VA_ARGS__) == GNI_RC_SUCCESS, #name)

constexpr std::uint32_t kMoment = 200;  // ms
constexpr std::uint32_t kForEver = UINT32_MAX;

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  void* const ugni = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* const pmi = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (ugni == nullptr || pmi == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  int spawned = 0;
  int rank = 0;
  must(PMI(PMI_Init)(&spawned) == PMI_SUCCESS && PMI(PMI_Get_rank)(&rank) == PMI_SUCCESS, "PMI_Init");
  gni_cdm_handle_t cdm = nullptr;
  gni_nic_handle_t nic = nullptr;
  std::uint32_t address = 0;
  MUST_UGNI(GNI_CdmCreate, static_cast<std::uint32_t>(rank),
            static_cast<std::uint8_t>(std::atoi(std::getenv("PMI_GNI_PTAG"))),
            static_cast<std::uint32_t>(std::strtoul(std::getenv("PMI_GNI_COOKIE"), nullptr, 10)), 0, &cdm);
  MUST_UGNI(GNI_CdmAttach, cdm, 0, &address, &nic);

  std::vector<std::function<void()>> moments;
  std::vector<std::function<void()>> endless;
  const auto queue = [&] {
    gni_cq_handle_t made = nullptr;
    MUST_UGNI(GNI_CqCreate, nic, 16, 0, GNI_CQ_BLOCKING, nullptr, nullptr, &made);
    return made;
  };
  // To an instance that never answers.
  const auto endpoint = [&](std::uint64_t name) {
    gni_ep_handle_t made = nullptr;
    MUST_UGNI(GNI_EpCreate, nic, nullptr, &made);
    MUST_UGNI(GNI_EpBind, made, address, 9'000 + static_cast<std::uint32_t>(name));
    MUST_UGNI(GNI_EpPostDataWId, made, nullptr, 0, nullptr, 0, name);
    return made;
  };
  for (const std::uint32_t limit : {kMoment, kForEver}) {
    const std::uint64_t wide = limit == kForEver ? UINT64_MAX : limit;
    const auto add = [&](auto call) { (limit == kForEver ? endless : moments).emplace_back(call); };
    add([wait = UGNI(GNI_CqWaitEvent), cq = queue(), wide] {
      gni_cq_entry_t event = 0;
      (void)wait(cq, wide, &event);
    });
    add([wait = UGNI(GNI_CqVectorWaitEvent), cq = queue(), wide]() mutable {
      gni_cq_entry_t event = 0;
      std::uint32_t which = 0;
      (void)wait(&cq, 1, wide, &event, &which);
    });
    add([wait = UGNI(GNI_CqVectorMonitor), cq = queue(), wide]() mutable {
      std::uint32_t which = 0;
      (void)wait(&cq, 1, wide, &which);
    });
    add([wait = UGNI(GNI_PostdataProbeWaitById), nic, limit] {
      std::uint64_t name = 0;
      (void)wait(nic, limit, &name);
    });
    const std::uint64_t name = 1 + moments.size() + endless.size();
    add([wait = UGNI(GNI_EpPostDataWaitById), ep = endpoint(name), name, limit] {
      gni_post_state_t state = GNI_POST_PENDING;
      std::uint32_t from = 0;
      std::uint32_t id = 0;
      (void)wait(ep, name, limit, &state, &from, &id);
    });
    if (limit != kForEver) continue;
    // These have no limit to the first that they wait for.
    gni_err_handle_t errors = nullptr;
    MUST_UGNI(GNI_SubscribeErrors, nic, 0, 0xff, 0, &errors);
    add([wait = UGNI(GNI_WaitErrorEvents), errors] {
      gni_error_event_t event;
      std::uint32_t count = 0;
      (void)wait(errors, &event, 1, 0, &count);
    });
    gni_comp_chan_handle_t channel = nullptr;
    gni_cq_handle_t attached = queue();
    MUST_UGNI(GNI_CompChanCreate, nic, &channel);
    MUST_UGNI(GNI_CqAttachCompChan, attached, channel);
    MUST_UGNI(GNI_CqArmCompChan, &attached, 1);
    add([wait = UGNI(GNI_CompChanGetEvent), channel] {
      gni_cq_handle_t which = nullptr;
      (void)wait(channel, &which);
    });
  }
  std::vector<std::thread> come_back;
  for (const auto& call : moments) come_back.emplace_back(call);
  for (const auto& call : endless) std::thread(call).detach();
  usleep(20'000);
  (void)PMI(PMI_Finalize)();
  dlclose(ugni);
  dlclose(pmi);
  for (std::thread& thread : come_back) thread.join();
  return 0;
}
