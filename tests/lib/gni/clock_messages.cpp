// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The parts of clock_worker that send messages, and that reduce in the NICs' collective engines.
#include "tests/lib/gni/clock_world.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include <unistd.h>

namespace clock_worker {

// Short messages round a ring.
void messages(World& w) {
  gni_smsg_attr_t mine{};
  mine.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
  mine.mbox_maxcredit = 4;
  mine.msg_maxsize = 64;
  BENCH_REQUIRE(GNI_SmsgBufferSizeNeeded(&mine, &mine.buff_size));
  mine.msg_buffer = std::calloc(2, mine.buff_size);
  mine.mem_hndl = w.session.registered(mine.msg_buffer, 2 * std::size_t{mine.buff_size});
  const bench::Window here{reinterpret_cast<std::uint64_t>(mine.msg_buffer), mine.mem_hndl};
  const auto all = bench::all_gather(here, w.rank(), w.size());
  const int next = (w.rank() + 1) % w.size(), before = (w.rank() + w.size() - 1) % w.size();
  const auto open = [&](int peer, std::uint32_t ours, std::uint32_t other) {
    const gni_ep_handle_t ep = w.session.endpoint(peer, w.source);
    gni_smsg_attr_t theirs = mine;
    theirs.msg_buffer = reinterpret_cast<void*>(all[static_cast<std::size_t>(peer)].address);
    theirs.mem_hndl = all[static_cast<std::size_t>(peer)].handle;
    mine.mbox_offset = ours * mine.buff_size;
    theirs.mbox_offset = other * mine.buff_size;
    BENCH_REQUIRE(GNI_SmsgInit(ep, &mine, &theirs));
    return ep;
  };
  const gni_ep_handle_t to = open(next, 1, 0), from = open(before, 0, 1);
  PMI_Barrier();
  int sent = 0, received = 0;
  while (sent < 100 || received < 100) {
    if (sent < 100) {
      const gni_return_t rc =
          GNI_SmsgSendWTag(to, &sent, sizeof sent, nullptr, 0, static_cast<std::uint32_t>(sent), 3);
      if (rc == GNI_RC_SUCCESS) {
        ++sent;
      } else if (rc != GNI_RC_NOT_DONE) {
        bench::require(rc, "GNI_SmsgSendWTag");
      }
    }
    gni_cq_entry_t event = 0;
    (void)GNI_CqGetEvent(w.source, &event);
    void* message = nullptr;
    if (GNI_SmsgGetNext(from, &message) == GNI_RC_SUCCESS) {
      if (*static_cast<int*>(message) != received++) std::printf("PE %d: wrong order\n", w.rank());
      BENCH_REQUIRE(GNI_SmsgRelease(from));
    }
  }
  std::printf("PE %d: all by %" PRId64 "\n", w.rank(), now_ns());
}

// Messages back and forth between two PEs that look for them as a message-passing library's engine does: at
// the mailbox alone, and at four queues and for datagrams as well.
void engine_messages(World& w) {
  constexpr int kRounds = 100;
  const int peer = 1 - w.rank();
  gni_smsg_attr_t mine{};
  mine.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
  mine.mbox_maxcredit = 16;
  mine.msg_maxsize = 64;
  BENCH_REQUIRE(GNI_SmsgBufferSizeNeeded(&mine, &mine.buff_size));
  mine.msg_buffer = std::calloc(1, mine.buff_size);
  const gni_cq_handle_t arrived = w.session.queue(64), blocks = w.session.queue(64),
                        sent = w.session.queue(64);
  mine.mem_hndl = w.session.registered(mine.msg_buffer, mine.buff_size, arrived);
  const bench::Window here{reinterpret_cast<std::uint64_t>(mine.msg_buffer), mine.mem_hndl};
  const auto all = bench::all_gather(here, w.rank(), w.size());
  gni_smsg_attr_t theirs = mine;
  theirs.msg_buffer = reinterpret_cast<void*>(all[static_cast<std::size_t>(peer)].address);
  theirs.mem_hndl = all[static_cast<std::size_t>(peer)].handle;
  const gni_ep_handle_t ep = w.session.endpoint(peer, sent);
  BENCH_REQUIRE(GNI_SmsgInit(ep, &mine, &theirs));
  const auto look = [](gni_cq_handle_t queue) {
    gni_cq_entry_t event = 0;
    (void)GNI_CqGetEvent(queue, &event);
  };
  for (const bool engine : {false, true}) {
    PMI_Barrier();
    const std::int64_t start = now_ns();
    std::uint32_t turn = 0;
    const auto receive = [&] {
      void* message = nullptr;
      for (;;) {
        if (engine) {
          std::uint64_t name = 0;
          if (++turn % 8 == 0) (void)GNI_PostDataProbeById(w.session.nic, &name);
          for (const gni_cq_handle_t queue : {sent, blocks, w.source, arrived}) look(queue);
        }
        std::uint8_t tag = GNI_SMSG_ANY_TAG;
        if (GNI_SmsgGetNextWTag(ep, &message, &tag) == GNI_RC_SUCCESS) break;
      }
      BENCH_REQUIRE(GNI_SmsgRelease(ep));
    };
    for (int i = 0; i < kRounds; ++i) {
      if (w.rank() == 1) receive();
      gni_return_t rc = GNI_RC_NOT_DONE;
      while ((rc = GNI_SmsgSendWTag(ep, &i, sizeof i, nullptr, 0, 0, 1)) == GNI_RC_NOT_DONE) look(sent);
      bench::require(rc, "GNI_SmsgSendWTag");
      if (w.rank() == 0) receive();
    }
    const std::int64_t took = now_ns() - start;
    if (w.rank() == 0)
      std::printf("%s: %" PRId64 " ns\n", engine ? "engine" : "mailbox", took / (2 * kRounds));
  }
  PMI_Barrier();
}

namespace {
int keep(std::uint32_t id, std::uint32_t /*address*/, void* message, std::uint8_t /*tag*/, void* context) {
  auto& sum = *static_cast<std::uint64_t*>(context);
  std::uint64_t value = 0;
  std::memcpy(&value, message, sizeof value);
  sum += value * (id + 1);
  return 1;
}
}  // namespace

// The message queue of a node that all PEs are on: it is there when the last one has joined, and a wait for
// messages that no PE sends is over at its time.
void shared_queue(World& w) {
  usleep(static_cast<useconds_t>(w.rank() * 100));
  gni_msgq_attr_t attrs{};
  attrs.max_msg_sz = 64;
  attrs.smsg_q_sz = 8;
  attrs.rcv_pool_sz = 64;
  attrs.num_msgq_eps = 1;
  attrs.nloc_insts = static_cast<std::uint32_t>(w.size());
  attrs.modes = GNI_MSGQ_MODE_BLOCKING;
  attrs.rcv_cq_sz = 64;
  std::uint64_t sum = 0;
  gni_msgq_handle_t queue = nullptr;
  BENCH_REQUIRE(GNI_MsgqInit(w.session.nic, keep, &sum, nullptr, &attrs, &queue));
  const std::int64_t start = now_ns();
  BENCH_REQUIRE(GNI_MsgqProgress(queue, 100));
  const bool waited = now_ns() - start >= 100'000'000;
  std::printf("PE %d: joined, %s\n", w.rank(), waited ? "waited" : "did not wait");
  PMI_Barrier();
  while (GNI_MsgqRelease(queue) == GNI_RC_NOT_DONE) {
  }
}

// Two PEs of one node. PE 0 connects its node to others, and tells PE 1 of it, which looks for no news until
// its buffers have long been full, and computes for seconds of real time and milliseconds of its own
// meanwhile.
void told_late(World& w) {
  gni_msgq_attr_t attrs{};
  attrs.max_msg_sz = 64;
  attrs.smsg_q_sz = 8;
  attrs.rcv_pool_sz = 64;
  attrs.num_msgq_eps = 100;
  attrs.nloc_insts = static_cast<std::uint32_t>(w.size());
  attrs.rcv_cq_sz = 64;
  std::uint64_t sum = 0;
  gni_msgq_handle_t queue = nullptr;
  BENCH_REQUIRE(GNI_MsgqInit(w.session.nic, keep, &sum, nullptr, &attrs, &queue));
  PMI_Barrier();
  const std::int64_t start = now_ns();
  if (w.rank() == 0) {
    constexpr std::uint32_t kConnections = 66;  // PE 1 hears twice of each, and has 128 buffers
    for (std::uint32_t i = 0; i < kConnections; ++i) {
      const std::uint32_t address = w.session.addresses[0] + 100 + i;
      gni_msgq_ep_attr_t other{};
      std::uint32_t bytes = 0;
      BENCH_REQUIRE(GNI_MsgqGetConnAttrs(queue, address, &other, &bytes));
      other.pe_addr = address;
      BENCH_REQUIRE(GNI_MsgqConnect(queue, address, &other));
      BENCH_REQUIRE(GNI_MsgqConnRelease(queue, address));
    }
  } else {
    for (int i = 0; i < 6; ++i) {
      for (const std::int64_t end = real_ns() + 500'000'000; real_ns() < end;) {
      }
      usleep(2000);
    }
    BENCH_REQUIRE(GNI_MsgqProgress(queue, 0));
  }
  const std::int64_t took = now_ns() - start;
  std::printf("PE %d: done after %s\n", w.rank(), took >= 12'000'000 ? "12 ms" : "less than 12 ms");
  PMI_Barrier();
  while (GNI_MsgqRelease(queue) == GNI_RC_NOT_DONE) {
  }
}

namespace {
int keep_one(std::uint32_t /*id*/, std::uint32_t /*address*/, void* message, std::uint8_t /*tag*/,
             void* context) {
  auto& numbers = *static_cast<std::vector<int>*>(context);
  int value = 0;
  std::memcpy(&value, message, sizeof value);
  numbers.push_back(value);
  return 0;
}
}  // namespace

// Each PE sends to each other one, which is on another node. It takes one message a call and looks at a queue
// of its own in between: in vain, but it finds messages all the while.
void one_by_one(World& w) {
  gni_msgq_attr_t attrs{};
  attrs.max_msg_sz = 64;
  attrs.smsg_q_sz = 8;
  attrs.rcv_pool_sz = 64;
  attrs.num_msgq_eps = static_cast<std::uint32_t>(w.size());
  attrs.nloc_insts = 1;
  attrs.rcv_cq_sz = 64;
  std::vector<int> numbers;
  gni_msgq_handle_t queue = nullptr;
  BENCH_REQUIRE(GNI_MsgqInit(w.session.nic, keep_one, &numbers, nullptr, &attrs, &queue));
  std::vector<gni_ep_handle_t> to(static_cast<std::size_t>(w.size()));
  gni_msgq_ep_attr_t mine{};
  const auto others = [&](const auto& body) {
    for (int pe = 0; pe < w.size(); ++pe)
      if (pe != w.rank()) body(pe, w.session.addresses[static_cast<std::size_t>(pe)]);
  };
  others([&](int, std::uint32_t address) {
    std::uint32_t bytes = 0;
    BENCH_REQUIRE(GNI_MsgqGetConnAttrs(queue, address, &mine, &bytes));
  });
  auto ends = bench::all_gather(mine, w.rank(), w.size());
  others([&](int pe, std::uint32_t address) {
    BENCH_REQUIRE(GNI_MsgqConnect(queue, address, &ends[static_cast<std::size_t>(pe)]));
    to[static_cast<std::size_t>(pe)] = w.session.endpoint(pe, w.source);
  });
  PMI_Barrier();
  const std::int64_t start = now_ns();
  constexpr int kMessages = 300;
  const auto due = static_cast<std::size_t>(kMessages * (w.size() - 1));
  std::vector<int> sent(to.size());
  for (std::size_t all_sent = 0; all_sent < due || numbers.size() < due;) {
    for (std::size_t pe = 0; pe < to.size(); ++pe) {
      if (to[pe] == nullptr || sent[pe] == kMessages) continue;
      const gni_return_t rc = GNI_MsgqSend(queue, to[pe], &sent[pe], sizeof sent[pe], nullptr, 0, 0, 0);
      if (rc == GNI_RC_NOT_DONE) continue;
      bench::require(rc, "GNI_MsgqSend");
      ++sent[pe];
      ++all_sent;
    }
    (void)GNI_MsgqProgress(queue, 0);
    gni_cq_entry_t event = 0;
    (void)GNI_CqGetEvent(w.source, &event);
  }
  const std::int64_t took = now_ns() - start;
  std::printf("PE %d: %zu taken, %" PRId64 " ns\n", w.rank(), numbers.size(), took);
  PMI_Barrier();
  while (GNI_MsgqRelease(queue) == GNI_RC_NOT_DONE) {
  }
}

// Sums in the NICs' collective engine, entered at different times: a tree of engines, each with up to
// `branch` PEs below it, and one above them all that has them as its children; all PEs below the root's own
// where there is room. Half of the roots say by an event of their queue when a sum is complete.
void reduce(World& w, int branch) {
  const int groups = (w.size() + branch - 1) / branch, group = w.rank() / branch;
  const int head = group * branch, members = std::min(branch, w.size() - head);
  const bool is_head = w.rank() == head, is_root = w.rank() == 0 && groups > 1;
  struct Card {
    std::uint32_t below, root;
  } mine{};
  gni_ce_handle_t below = nullptr, root = nullptr;
  const auto made = [&](gni_ce_handle_t* engine, std::uint32_t* id) {
    BENCH_REQUIRE(GNI_CeCreate(w.session.nic, engine));
    BENCH_REQUIRE(GNI_CeGetId(*engine, id));
  };
  if (is_head) made(&below, &mine.below);
  if (is_root) made(&root, &mine.root);
  const auto cards = bench::all_gather(mine, w.rank(), w.size());
  gni_cq_handle_t told = w.session.queue(64);
  const auto edge = [&](int pe, std::uint32_t id, int child, gni_ce_child_t type) {
    const gni_ep_handle_t ep = w.session.endpoint(pe, w.source);
    BENCH_REQUIRE(GNI_EpSetCeAttr(ep, id, static_cast<std::uint32_t>(child), type));
    return ep;
  };
  const auto configured = [&](gni_ce_handle_t engine, std::vector<gni_ep_handle_t>& children,
                              gni_ep_handle_t parent, bool tells) {
    BENCH_REQUIRE(GNI_CeConfigure(engine, children.data(), static_cast<std::uint32_t>(children.size()),
                                  parent, tells ? told : nullptr,
                                  GNI_CE_MODE_ROUND_NEAR | (tells ? GNI_CE_MODE_CQE_ONCOMP : 0)));
  };
  const bool tells = w.rank() == 0;
  if (is_root) {
    std::vector<gni_ep_handle_t> children;
    for (int g = 0; g < groups; ++g)
      children.push_back(
          edge(g * branch, cards[static_cast<std::size_t>(g * branch)].below, g, GNI_CE_CHILD_VCE));
    configured(root, children, nullptr, tells);
  }
  if (is_head) {
    std::vector<gni_ep_handle_t> children;
    for (int i = 0; i < members; ++i) children.push_back(edge(head + i, UINT32_MAX, i, GNI_CE_CHILD_PE));
    const gni_ep_handle_t parent = groups > 1 ? edge(0, cards[0].root, group, GNI_CE_CHILD_VCE) : nullptr;
    configured(below, children, parent, tells && groups == 1);
  }
  const gni_ep_handle_t up =
      edge(head, cards[static_cast<std::size_t>(head)].below, w.rank() - head, GNI_CE_CHILD_PE);
  PMI_Barrier();
  auto* result = reinterpret_cast<gni_ce_result_t*>(w.local);
  for (int round = 0; round < 10; ++round) {
    usleep(static_cast<useconds_t>(w.rank() * 3));
    gni_post_descriptor_t post{};
    post.type = GNI_POST_CE;
    post.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    post.local_addr = reinterpret_cast<std::uint64_t>(result);
    post.local_mem_hndl = w.local_handle;
    post.ce_cmd = GNI_FMA_CE_IADD;
    post.ce_red_id = static_cast<std::uint64_t>(round);
    post.first_operand = static_cast<std::uint64_t>(w.rank());
    const std::int64_t start = now_ns();
    BENCH_REQUIRE(GNI_PostFma(up, &post));
    w.reap();
    std::int64_t told_after = 0;
    if (tells) {
      gni_cq_entry_t event = 0;
      gni_return_t got = GNI_RC_NOT_DONE;
      while ((got = GNI_CqGetEvent(told, &event)) == GNI_RC_NOT_DONE) {
      }
      bench::require(got, "GNI_CqGetEvent");
      BENCH_REQUIRE(GNI_CQ_GET_REDUCTN_ID(event) == static_cast<std::uint64_t>(round) ? GNI_RC_SUCCESS
                                                                                      : GNI_RC_INVALID_STATE);
      told_after = now_ns() - start;
    }
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_CeCheckResult(result, 1)) == GNI_RC_NOT_DONE) {
    }
    bench::require(rc, "GNI_CeCheckResult");
    const std::int64_t after = now_ns() - start;
    std::printf("PE %d round %d: sum %" PRIu64 " after %" PRId64 " told after %" PRId64 "\n", w.rank(), round,
                static_cast<std::uint64_t>(result->result1), after, told_after);
  }
}

}  // namespace clock_worker
