// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <dlfcn.h>
#include <gni_pub.h>
#include <pmi.h>
#include <unistd.h>

// A plug-in of a program: loads libugni (argv[1]) and libpmi (argv[2]), attaches, lets a thread wait for an
// event, and closes both. The thread and the service thread go on.
namespace {

template <typename Function>
Function* load(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  void* const ugni = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* const pmi = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (ugni == nullptr || pmi == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  int spawned = 0, rank = 0;
  if (load<decltype(PMI_Init)>(pmi, "PMI_Init")(&spawned) != PMI_SUCCESS) return 4;
  load<decltype(PMI_Get_rank)>(pmi, "PMI_Get_rank")(&rank);
  gni_cdm_handle_t cdm = nullptr;
  gni_nic_handle_t nic = nullptr;
  static gni_cq_handle_t queue = nullptr;
  std::uint32_t address = 0;
  if (load<decltype(GNI_CdmCreate)>(ugni, "GNI_CdmCreate")(
          static_cast<std::uint32_t>(rank), static_cast<std::uint8_t>(std::atoi(std::getenv("PMI_GNI_PTAG"))),
          static_cast<std::uint32_t>(std::strtoul(std::getenv("PMI_GNI_COOKIE"), nullptr, 10)), 0,
          &cdm) != GNI_RC_SUCCESS ||
      load<decltype(GNI_CdmAttach)>(ugni, "GNI_CdmAttach")(cdm, 0, &address, &nic) != GNI_RC_SUCCESS ||
      load<decltype(GNI_CqCreate)>(ugni, "GNI_CqCreate")(nic, 16, 0, GNI_CQ_BLOCKING, nullptr, nullptr,
                                                         &queue) != GNI_RC_SUCCESS)
    return 5;
  static auto* const wait = load<decltype(GNI_CqWaitEvent)>(ugni, "GNI_CqWaitEvent");
  std::thread([] {
    gni_cq_entry_t event = 0;
    (void)wait(queue, 200, &event);  // comes back into what would be gone
  }).detach();
  usleep(20'000);
  load<decltype(PMI_Finalize)>(pmi, "PMI_Finalize")();
  dlclose(ugni);
  dlclose(pmi);
  usleep(400'000);
  return 0;
}
