// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/ratios/portals3_channel.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <dlfcn.h>
#include <p3rt/p3rt.h>
#include <pmi.h>
#include <portals3.h>

namespace bench {

namespace {

void require_ok3(int code, const char* call) {
  if (code == PTL_OK) return;
  std::fprintf(stderr, "Portals 3.3: %s: %d\n", call, code);
  PMI_Abort(1, call);
  std::exit(1);
}
#define BENCH_PORTALS3(call) require_ok3((call), #call)

void* open_library() {
  void* const library = dlopen(ORRERY_PORTALS3, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  require_ok3(library == nullptr ? PTL_FAIL : PTL_OK, "dlopen");
  return library;
}

}  // namespace

struct Portals3Channel::Calls {
  void* const library = open_library();
  template <typename Call>
  Call* named(const char* name) const {
    void* const call = dlsym(library, name);
    require_ok3(call == nullptr ? PTL_FAIL : PTL_OK, name);
    return reinterpret_cast<Call*>(call);
  }
  decltype(PtlPut)* const put = named<decltype(PtlPut)>("PtlPut");
  decltype(PtlEQGet)* const get_event = named<decltype(PtlEQGet)>("PtlEQGet");
  decltype(PtlNIFini)* const close = named<decltype(PtlNIFini)>("PtlNIFini");

  ptl_handle_ni_t ni{};
  ptl_handle_eq_t arrivals{};
  ptl_handle_md_t source{};
  ptl_process_id_t peer{};
  std::uint64_t from = 0, to = 0;

  ptl_md_t memory(std::uint64_t& word, unsigned int options, ptl_handle_eq_t queue) const {
    return {&word, sizeof(word), PTL_MD_THRESH_INF, 0, options | PTL_MD_EVENT_START_DISABLE, nullptr, queue};
  }
};

Portals3Channel::Portals3Channel(int rank) : calls_(std::make_unique<Calls>()) {
  Calls& calls = *calls_;
  const auto queue = [&](ptl_handle_eq_t* handle) {
    BENCH_PORTALS3(
        calls.named<decltype(PtlEQAlloc)>("PtlEQAlloc")(calls.ni, 1024, PTL_EQ_HANDLER_NONE, handle));
  };
  BENCH_PORTALS3(calls.named<decltype(PtlInit)>("PtlInit")(nullptr));
  BENCH_PORTALS3(calls.named<decltype(PtlNIInit)>("PtlNIInit")(PTL_IFACE_DEFAULT, PTL_PID_ANY, nullptr,
                                                               nullptr, &calls.ni));
  BENCH_PORTALS3(calls.named<decltype(PtlGetRankId)>("PtlGetRankId")(
      calls.ni, static_cast<unsigned>(1 - rank), &calls.peer));
  queue(&calls.arrivals);
  ptl_handle_me_t me{};
  ptl_handle_md_t md{};
  BENCH_PORTALS3(calls.named<decltype(PtlMEAttach)>("PtlMEAttach")(calls.ni, 4, {PTL_NID_ANY, PTL_PID_ANY}, 1,
                                                                   0, PTL_RETAIN, PTL_INS_AFTER, &me));
  BENCH_PORTALS3(calls.named<decltype(PtlMDAttach)>("PtlMDAttach")(
      me, calls.memory(calls.to, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, calls.arrivals), PTL_RETAIN, &md));
  BENCH_PORTALS3(calls.named<decltype(PtlMDBind)>("PtlMDBind")(
      calls.ni, calls.memory(calls.from, 0, PTL_EQ_NONE), PTL_RETAIN, &calls.source));
  PMI_Barrier();
  // Memory that is used often moves to where it can be mapped.
  for (int i = 0; i < 200; ++i) {
    send(1);
    receive(1);
    const timespec nap{0, 500'000};
    nanosleep(&nap, nullptr);
  }
  PMI_Barrier();
}

Portals3Channel::~Portals3Channel() {
  PMI_Barrier();
  calls_->close(calls_->ni);
}

void Portals3Channel::send(int count) {
  for (int i = 0; i < count; ++i)
    BENCH_PORTALS3(calls_->put(calls_->source, PTL_NO_ACK_REQ, calls_->peer, 4, 0, 1, 0, 0));
}

void Portals3Channel::receive(int count) {
  for (int i = 0; i < count; ++i) {
    ptl_event_t event;
    int code = PTL_EQ_EMPTY;
    while ((code = calls_->get_event(calls_->arrivals, &event)) == PTL_EQ_EMPTY) {
    }
    require_ok3(code, "PtlEQGet");
  }
}

}  // namespace bench
