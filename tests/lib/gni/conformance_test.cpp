// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What a client of two or more PEs sees: data, events, their values and their order, whatever way the packets
// take. Each PE works on the next rank's memory; the same tests run for every value of ORRERY_ADOPT.
#include "tests/lib/gni/client.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include <sched.h>
#include <sys/mman.h>

namespace {

using client::address_of;
using client::descriptor;
using client::next_event;

constexpr std::size_t kBytes = 64 << 10;

// Memory of one PE, and where its neighbour's is.
class Conformance : public testing::Test {
 protected:
  struct Card {
    std::uint32_t nic_address;
    std::uint64_t address;
    gni_mem_handle_t handle;
  };

  explicit Conformance(std::uint32_t modes = 0) : domain(modes, 100) {
    void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    target = {static_cast<std::byte*>(mapped), kBytes};
    source.resize(kBytes);
    sources = domain.queue(32);
    targets = domain.queue(32);
    mine = {domain.address, address_of(target.data()), domain.memory(target.data(), kBytes, targets)};
    local = domain.memory(source.data(), kBytes);
    meet();
    endpoint = domain.endpoint(sources, peer.nic_address, 100 + static_cast<std::uint32_t>(next));
  }
  ~Conformance() override {
    pmi.barrier();  // no PE is writing to this memory any more
    EXPECT_EQ(GNI_MemDeregister(domain.nic, &mine.handle), GNI_RC_SUCCESS);
    munmap(target.data(), kBytes);
  }

  // Tells the others where `mine` is.
  void meet() {
    const auto cards = pmi.gather(mine);
    peer = cards[static_cast<std::size_t>(next)];
  }
  void fill(std::uint32_t seed) {
    for (std::size_t i = 0; i < kBytes; ++i)
      source[i] = pattern(static_cast<std::uint32_t>(pmi.rank), seed, i);
  }
  static std::byte pattern(std::uint32_t rank, std::uint32_t seed, std::size_t i) {
    return static_cast<std::byte>((rank + 1) * 31 + seed * 7 + i * 13 + (i >> 8));
  }
  // How many of `bytes` differ from what `rank` filled in.
  static std::size_t wrong(const std::byte* bytes, std::size_t length, int rank, std::uint32_t seed) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < length; ++i) {
      if (bytes[i] != pattern(static_cast<std::uint32_t>(rank), seed, i)) ++count;
    }
    return count;
  }
  gni_post_descriptor_t transfer(gni_post_type_t type, std::uint16_t cq_mode, std::uint64_t length) const {
    gni_post_descriptor_t d = descriptor(type, cq_mode);
    d.local_addr = address_of(source.data());
    d.local_mem_hndl = local;
    d.remote_addr = peer.address;
    d.remote_mem_hndl = peer.handle;
    d.length = length;
    return d;
  }
  gni_return_t post(gni_post_descriptor_t* d) const {
    const bool rdma = d->type == GNI_POST_RDMA_PUT || d->type == GNI_POST_RDMA_GET;
    return rdma ? GNI_PostRdma(endpoint, d) : GNI_PostFma(endpoint, d);
  }
  // Takes the event of `d`, and nothing else.
  void completes(gni_post_descriptor_t* d) const {
    gni_cq_entry_t event = 0;
    ASSERT_EQ(next_event(sources, &event), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CQ_GET_TYPE(event), GNI_CQ_EVENT_TYPE_POST);
    EXPECT_TRUE(GNI_CQ_STATUS_OK(event));
    gni_post_descriptor_t* done = nullptr;
    ASSERT_EQ(GNI_GetCompleted(sources, event, &done), GNI_RC_SUCCESS);
    EXPECT_EQ(done, d);
    EXPECT_EQ(d->status, static_cast<std::uint64_t>(GNI_RC_SUCCESS));
  }

  const client::Pmi& pmi = client::Pmi::get();
  const int next = (pmi.rank + 1) % pmi.size;
  const int before = (pmi.rank + pmi.size - 1) % pmi.size;
  client::Domain domain;
  std::span<std::byte> target;
  std::vector<std::byte> source;
  gni_cq_handle_t sources = nullptr;
  gni_cq_handle_t targets = nullptr;
  gni_mem_handle_t local{};
  gni_ep_handle_t endpoint = nullptr;
  Card mine{};
  Card peer{};
};

TEST_F(Conformance, PutsOfAnyLengthAndAlignmentArriveWhole) {
  std::uint32_t seed = 0;
  for (const auto type : {GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT}) {
    for (const std::uint64_t length : {1u, 3u, 8u, 64u, 100u, 4096u, 40'000u}) {
      for (const std::uint64_t shift : {0u, 1u, 12u}) {
        fill(++seed);
        gni_post_descriptor_t d = transfer(type, GNI_CQMODE_GLOBAL_EVENT, length);
        d.remote_addr += shift;
        ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
        completes(&d);
        pmi.barrier();
        EXPECT_EQ(wrong(target.data() + shift, length, before, seed), 0U)
            << type << ' ' << length << ' ' << shift;
        pmi.barrier();
      }
    }
  }
}

TEST_F(Conformance, GetsBringWhatThePeerHas) {
  std::uint32_t seed = 0;
  for (const auto type : {GNI_POST_FMA_GET, GNI_POST_RDMA_GET}) {
    for (const std::uint64_t length : {4u, 8u, 100u, 4096u, 40'000u}) {
      ++seed;
      for (std::size_t i = 0; i < length; ++i)
        target[i + 4] = pattern(static_cast<std::uint32_t>(pmi.rank), seed, i);
      pmi.barrier();
      gni_post_descriptor_t d = transfer(type, GNI_CQMODE_GLOBAL_EVENT, length);
      d.local_addr += 1;  // the local side has no alignment
      d.remote_addr += 4;
      ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
      completes(&d);
      EXPECT_EQ(wrong(source.data() + 1, length, next, seed), 0U) << type << ' ' << length;
      pmi.barrier();
    }
  }
}

TEST_F(Conformance, SmallPutsToHotMemoryGoOnArrivingWhileItIsAdopted) {
  volatile auto* word = reinterpret_cast<volatile std::uint64_t*>(target.data());
  for (std::uint64_t i = 1; i <= 400; ++i) {
    std::memcpy(source.data(), &i, sizeof i);
    gni_post_descriptor_t d = transfer(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT, 8);
    ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
    completes(&d);
  }
  pmi.barrier();
  EXPECT_EQ(*word, 400U);
}

TEST_F(Conformance, EventsCarryTheValuesThatTheInterfaceSays) {
  const auto round = [&](std::uint32_t local_value, std::uint32_t remote_value) {
    gni_post_descriptor_t d =
        transfer(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT, 8);
    ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
    gni_cq_entry_t event = 0;
    ASSERT_EQ(next_event(sources, &event), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CQ_GET_INST_ID(event), local_value & 0xffffff) << "24 bits, as on Aries";
    gni_post_descriptor_t* done = nullptr;
    ASSERT_EQ(GNI_GetCompleted(sources, event, &done), GNI_RC_SUCCESS);
    EXPECT_EQ(d.cq_mode_complete, GNI_CQMODE_GLOBAL_EVENT);
    ASSERT_EQ(next_event(targets, &event), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CQ_GET_INST_ID(event), remote_value);
    EXPECT_EQ(GNI_CQ_GET_REM_INST_ID(event), remote_value);
    EXPECT_EQ(GNI_CQ_GET_DATA(event) & 0xffffffff, remote_value);
  };
  // By default: the bound id on our side, the sender's instance on the other.
  round(100 + static_cast<std::uint32_t>(next), 100 + static_cast<std::uint32_t>(before));
  ASSERT_EQ(GNI_EpSetEventData(endpoint, 0xab000000 + static_cast<std::uint32_t>(pmi.rank),
                               0xcd000000 + static_cast<std::uint32_t>(pmi.rank)),
            GNI_RC_SUCCESS);
  pmi.barrier();
  round(0xab000000 + static_cast<std::uint32_t>(pmi.rank), 0xcd000000 + static_cast<std::uint32_t>(before));
}

TEST_F(Conformance, EndpointsReachWhoeverTheHandleNamesBehindTheNicAddress) {
  const gni_ep_handle_t any = domain.endpoint(sources, peer.nic_address, 0xfffff0);
  fill(77);
  gni_post_descriptor_t d = transfer(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT, 100);
  ASSERT_EQ(GNI_PostFma(any, &d), GNI_RC_SUCCESS);
  completes(&d);
  pmi.barrier();
  EXPECT_EQ(wrong(target.data(), 100, before, 77), 0U);
  EXPECT_EQ(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

TEST_F(Conformance, PutsOfLengthZeroOnlyRaiseTheirEvents) {
  gni_post_descriptor_t d = transfer(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT, 0);
  ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
  completes(&d);
  gni_cq_entry_t event = 0;
  EXPECT_EQ(next_event(targets, &event), GNI_RC_SUCCESS);
}

TEST_F(Conformance, TheFlagOfAPutIsSeenBehindItsData) {
  auto* flag = reinterpret_cast<std::uint64_t*>(target.data() + 32'768);
  for (std::uint32_t round = 1; round <= 50; ++round) {
    fill(round);
    gni_post_descriptor_t d = transfer(GNI_POST_FMA_PUT_W_SYNCFLAG, GNI_CQMODE_GLOBAL_EVENT, 3000);
    d.sync_flag_addr = peer.address + 32'768;
    d.sync_flag_value = round;
    ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
    const std::time_t give_up = std::time(nullptr) + 60;
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != round && std::time(nullptr) < give_up) sched_yield();
    ASSERT_EQ(*flag, round);
    EXPECT_EQ(wrong(target.data(), 3000, before, round), 0U);
    completes(&d);
    pmi.barrier();
  }
}

TEST_F(Conformance, CqWritesArriveWithAllTheirBits) {
  gni_post_descriptor_t d = descriptor(GNI_POST_CQWRITE, GNI_CQMODE_GLOBAL_EVENT);
  d.remote_mem_hndl = peer.handle;
  d.cqwrite_value = 0xfedc'ba98'7654'3200ull + static_cast<std::uint64_t>(pmi.rank);
  ASSERT_EQ(GNI_PostCqWrite(endpoint, &d), GNI_RC_SUCCESS);
  completes(&d);
  gni_cq_entry_t event = 0;
  ASSERT_EQ(next_event(targets, &event), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CQ_GET_DATA(event), 0xba98'7654'3200ull + static_cast<std::uint64_t>(before)) << "48 bits";
  EXPECT_EQ(GNI_CQ_GET_REM_INST_ID(event), 0x7654'3200u + static_cast<std::uint32_t>(before));
}

TEST_F(Conformance, AQueueThatOverranSaysSoOnceForEachEventThatItLost) {
  const gni_cq_handle_t tiny = domain.queue(1);
  const gni_mem_handle_t before_that = mine.handle;
  mine.handle = domain.memory(target.data(), kBytes, tiny);
  meet();
  for (int i = 0; i < 4; ++i) {
    gni_post_descriptor_t d =
        transfer(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT, 8);
    ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
    completes(&d);
  }
  pmi.barrier();
  gni_cq_entry_t event = 0;
  EXPECT_EQ(GNI_CqTestEvent(tiny), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CqGetEvent(tiny, &event), GNI_RC_SUCCESS);
  for (int lost = 0; lost < 3; ++lost) {
    EXPECT_EQ(GNI_CqTestEvent(tiny), GNI_RC_ERROR_RESOURCE);
    EXPECT_EQ(GNI_CqGetEvent(tiny, &event), GNI_RC_ERROR_RESOURCE);
    EXPECT_NE(GNI_CQ_OVERRUN(event), 0U);
  }
  EXPECT_EQ(GNI_CqGetEvent(tiny, &event), GNI_RC_NOT_DONE);
  gni_mem_handle_t registered = before_that;
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &registered), GNI_RC_SUCCESS);
}

TEST_F(Conformance, RequestsBeyondTheQueuesDepthAreTurnedAwayAndNothingIsLost) {
  std::array<gni_post_descriptor_t, 64> all;
  std::size_t accepted = 0;
  for (auto& d : all) {
    d = transfer(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT, 8);
    const gni_return_t rc = post(&d);
    if (rc != GNI_RC_SUCCESS) {
      EXPECT_EQ(rc, GNI_RC_ERROR_RESOURCE);
      break;
    }
    ++accepted;
  }
  EXPECT_EQ(accepted, 32U) << "the depth of the queue";
  std::set<gni_post_descriptor_t*> done;
  for (std::size_t i = 0; i < accepted; ++i) {
    gni_cq_entry_t event = 0;
    ASSERT_EQ(next_event(sources, &event), GNI_RC_SUCCESS);
    gni_post_descriptor_t* one = nullptr;
    ASSERT_EQ(GNI_GetCompleted(sources, event, &one), GNI_RC_SUCCESS);
    done.insert(one);
  }
  EXPECT_EQ(done.size(), accepted);
  gni_post_descriptor_t d = transfer(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT, 8);
  ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
  completes(&d);
}

TEST_F(Conformance, SegmentsAreAddressedByOffsetsOnBothSides) {
  // Three pieces out of order, of odd lengths: 5,000 bytes in all.
  const std::array<gni_mem_segment_t, 3> theirs{{{address_of(target.data()) + 20'000, 1000},
                                                 {address_of(target.data()) + 100, 3001},
                                                 {address_of(target.data()) + 40'000, 999}}};
  std::array<gni_mem_segment_t, 2> ours{
      {{address_of(source.data()) + 30'001, 2500}, {address_of(source.data()) + 7, 2500}}};
  gni_mem_handle_t remote_list{};
  gni_mem_handle_t local_list{};
  auto copy = theirs;
  ASSERT_EQ(GNI_MemRegisterSegments(domain.nic, copy.data(), 3, targets, 0, UINT32_MAX, &remote_list),
            GNI_RC_SUCCESS);
  ASSERT_EQ(GNI_MemRegisterSegments(domain.nic, ours.data(), 2, nullptr, 0, UINT32_MAX, &local_list),
            GNI_RC_SUCCESS);
  const gni_mem_handle_t whole = mine.handle;
  mine.handle = remote_list;
  meet();
  for (std::size_t i = 0; i < 5000; ++i) {
    source[i < 2500 ? 30'001 + i : 7 + i - 2500] = pattern(static_cast<std::uint32_t>(pmi.rank), 9, i);
  }
  gni_post_descriptor_t d =
      transfer(GNI_POST_RDMA_PUT, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT, 4990);
  d.local_mem_hndl = local_list;
  d.local_addr = 10;
  d.remote_addr = 10;
  ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
  completes(&d);
  gni_cq_entry_t event = 0;
  ASSERT_EQ(next_event(targets, &event), GNI_RC_SUCCESS);
  std::size_t bad = 0;
  for (std::size_t i = 10; i < 5000; ++i) {
    const std::size_t at = i < 1000 ? 20'000 + i : i < 4001 ? 100 + i - 1000 : 40'000 + i - 4001;
    if (target[at] != pattern(static_cast<std::uint32_t>(before), 9, i)) ++bad;
  }
  EXPECT_EQ(bad, 0U);
  // And back, into the local pieces.
  std::fill(source.begin(), source.end(), std::byte{0});
  pmi.barrier();
  d = transfer(GNI_POST_RDMA_GET, GNI_CQMODE_GLOBAL_EVENT, 4000);
  d.local_mem_hndl = local_list;
  d.local_addr = 900;
  d.remote_addr = 900;
  ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
  completes(&d);
  bad = 0;
  for (std::size_t i = 900; i < 4900; ++i) {
    if (source[i < 2500 ? 30'001 + i : 7 + i - 2500] != pattern(static_cast<std::uint32_t>(pmi.rank), 9, i))
      ++bad;
  }
  EXPECT_EQ(bad, 0U);
  EXPECT_EQ(source[30'001 + 899], std::byte{0});
  pmi.barrier();
  mine.handle = whole;
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &remote_list), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &local_list), GNI_RC_SUCCESS);
}

TEST_F(Conformance, MemoryThatIsNoLongerRegisteredRefusesItsPeers) {
  std::vector<std::byte> passing(4096);
  const gni_mem_handle_t whole = mine.handle;
  mine.handle = domain.memory(passing.data(), passing.size());
  mine.address = address_of(passing.data());
  meet();
  gni_post_descriptor_t d = transfer(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT, 8);
  ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
  completes(&d);
  pmi.barrier();
  ASSERT_EQ(GNI_MemDeregister(domain.nic, &mine.handle), GNI_RC_SUCCESS);
  std::fill(passing.begin(), passing.end(), std::byte{0x5a});
  pmi.barrier();
  for (const auto type : {GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_GET}) {
    d = transfer(type, GNI_CQMODE_GLOBAL_EVENT, 8);
    ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
    gni_cq_entry_t event = 0;
    EXPECT_EQ(next_event(sources, &event), GNI_RC_TRANSACTION_ERROR);
    gni_post_descriptor_t* done = nullptr;
    EXPECT_EQ(GNI_GetCompleted(sources, event, &done), GNI_RC_TRANSACTION_ERROR);
    EXPECT_EQ(done, &d);
  }
  pmi.barrier();
  EXPECT_TRUE(std::all_of(passing.begin(), passing.end(), [](std::byte b) { return b == std::byte{0x5a}; }));
  mine.handle = whole;
}

TEST_F(Conformance, RdmaPostsMayNameAnotherQueue) {
  const gni_cq_handle_t another = domain.queue(4);
  gni_post_descriptor_t d = transfer(GNI_POST_RDMA_PUT, GNI_CQMODE_GLOBAL_EVENT, 64);
  d.src_cq_hndl = another;
  ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
  gni_cq_entry_t event = 0;
  ASSERT_EQ(next_event(another, &event), GNI_RC_SUCCESS);
  gni_post_descriptor_t* done = nullptr;
  EXPECT_EQ(GNI_GetCompleted(another, event, &done), GNI_RC_SUCCESS);
  EXPECT_EQ(done, &d);
  EXPECT_EQ(GNI_CqGetEvent(sources, &event), GNI_RC_NOT_DONE);
}

TEST_F(Conformance, BlockingQueuesWaitAndWakeUp) {
  const gni_cq_handle_t blocking = domain.queue(8, GNI_CQ_BLOCKING);
  gni_cq_entry_t event = 0;
  EXPECT_EQ(GNI_CqWaitEvent(blocking, 20, &event), GNI_RC_TIMEOUT);
  const gni_mem_handle_t whole = mine.handle;
  mine.handle = domain.memory(target.data(), kBytes, blocking);
  meet();
  if (pmi.rank == 0) {
    timespec moment{0, 50'000'000};  // the others are asleep by then, most likely
    nanosleep(&moment, nullptr);
  }
  gni_post_descriptor_t d = descriptor(GNI_POST_CQWRITE, GNI_CQMODE_GLOBAL_EVENT);
  d.remote_mem_hndl = peer.handle;
  d.cqwrite_value = 5;
  ASSERT_EQ(GNI_PostCqWrite(endpoint, &d), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CqWaitEvent(blocking, 60'000, &event), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CQ_GET_DATA(event), 5U);
  completes(&d);
  pmi.barrier();
  gni_mem_handle_t registered = mine.handle;
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &registered), GNI_RC_SUCCESS);
  mine.handle = whole;
}

TEST_F(Conformance, TheHandlerOfAQueueRunsBeforeItsEventIsHandedOver) {
  struct Seen {
    int calls = 0;
    gni_cq_entry_t last = 0;
  } seen;
  gni_cq_handle_t cq = nullptr;
  ASSERT_EQ(GNI_CqCreate(
                domain.nic, 4, 0, GNI_CQ_NOBLOCK,
                [](gni_cq_entry_t* entry, void* context) {
                  auto* s = static_cast<Seen*>(context);
                  ++s->calls;
                  s->last = *entry;
                },
                &seen, &cq),
            GNI_RC_SUCCESS);
  gni_post_descriptor_t d = transfer(GNI_POST_RDMA_PUT, GNI_CQMODE_GLOBAL_EVENT, 64);
  d.src_cq_hndl = cq;
  ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
  EXPECT_EQ(seen.calls, 0) << "no event was asked for";
  gni_cq_entry_t event = 0;
  ASSERT_EQ(next_event(cq, &event), GNI_RC_SUCCESS);
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.last, event);
  gni_post_descriptor_t* done = nullptr;
  EXPECT_EQ(GNI_GetCompleted(cq, event, &done), GNI_RC_SUCCESS);
}

// A domain that may ask for both events of a post.
class ConformanceWithDualEvents : public Conformance {
 protected:
  ConformanceWithDualEvents() : Conformance(GNI_CDM_MODE_DUAL_EVENTS) {}
};

TEST_F(ConformanceWithDualEvents, APostMayRaiseALocalAndAGlobalEvent) {
  gni_post_descriptor_t d = transfer(GNI_POST_RDMA_PUT, GNI_CQMODE_DUAL_EVENTS, 512);
  ASSERT_EQ(post(&d), GNI_RC_SUCCESS);
  std::uint32_t seen = 0;
  for (int i = 0; i < 2; ++i) {
    gni_cq_entry_t event = 0;
    ASSERT_EQ(next_event(sources, &event), GNI_RC_SUCCESS);
    gni_post_descriptor_t* done = nullptr;
    ASSERT_EQ(GNI_GetCompleted(sources, event, &done), GNI_RC_SUCCESS);
    EXPECT_EQ(done, &d);
    seen |= d.cq_mode_complete;
  }
  EXPECT_EQ(seen, static_cast<std::uint32_t>(GNI_CQMODE_DUAL_EVENTS));
  pmi.barrier();
}

TEST_F(ConformanceWithDualEvents, TheQueueTakesHalfAsManyRequests) {
  std::array<gni_post_descriptor_t, 64> all;
  int accepted = 0;
  for (auto& d : all) {
    d = transfer(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT, 8);
    if (post(&d) != GNI_RC_SUCCESS) break;
    ++accepted;
  }
  EXPECT_EQ(accepted, 16) << "half the depth of the queue";
  for (int i = 0; i < accepted; ++i) {
    gni_cq_entry_t event = 0;
    ASSERT_EQ(next_event(sources, &event), GNI_RC_SUCCESS);
    gni_post_descriptor_t* done = nullptr;
    ASSERT_EQ(GNI_GetCompleted(sources, event, &done), GNI_RC_SUCCESS);
  }
}

}  // namespace
