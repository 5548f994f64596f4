// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Half round trip of a short message (SMSG), answered when it has come; the receiver asks its mailbox.
#include "bench/osu/model.hpp"
#include "bench/osu/pair.hpp"
#include "bench/osu/table.hpp"
#include "bench/osu/timed_loop.hpp"

namespace {

// A mailbox at each of the two PEs.
gni_ep_handle_t connected(bench::OsuPair& pair, std::size_t largest) {
  gni_smsg_attr_t mine;
  std::memset(&mine, 0, sizeof mine);
  mine.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
  mine.mbox_maxcredit = 16;
  mine.msg_maxsize = static_cast<std::uint32_t>(largest);
  BENCH_REQUIRE(GNI_SmsgBufferSizeNeeded(&mine, &mine.buff_size));
  const std::size_t bytes = (mine.buff_size + 4095U) / 4096 * 4096;
  mine.msg_buffer = std::aligned_alloc(4096, bytes);
  std::memset(mine.msg_buffer, 0, bytes);
  mine.mem_hndl = pair.session.registered(mine.msg_buffer, bytes);
  auto theirs = bench::all_gather(mine, pair.session.rank, 2)[static_cast<std::size_t>(pair.partner)];
  const gni_ep_handle_t ep = pair.session.endpoint(pair.partner, nullptr);
  BENCH_REQUIRE(GNI_SmsgInit(ep, &mine, &theirs));
  return ep;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t kLargest = 1024;
  bench::OsuOptions options;
  options.largest = kLargest;
  options.parse("short messages back and forth between two PEs; run with: orrery run -n 2", argc, argv, 1, 1);
  if (options.largest > 8192) {
    std::fprintf(stderr, "--max %zu is not accepted: expected at most 8192 bytes\n", options.largest);
    return 2;
  }
  bench::OsuPair pair(options.largest);
  if (options.pinned) bench::pin(pair.session.rank);
  std::optional<bench::Model> model;
  if (options.model) model.emplace(pair.session);
  const bool first = pair.session.rank == 0;
  const gni_ep_handle_t ep = connected(pair, options.largest);
  std::optional<bench::OsuTable> table;
  if (first) table.emplace(options, "Orrery uGNI Short Message Latency Test", "Latency (us)");
  const auto yield_now_and_then = [](int& spins) {
    if (++spins > 1000) sched_yield();
  };
  for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
    const auto send = [&] {
      gni_return_t rc = GNI_RC_SUCCESS;
      int spins = 0;
      while ((rc = GNI_SmsgSend(ep, pair.local, static_cast<std::uint32_t>(bytes), nullptr, 0, 0)) ==
             GNI_RC_NOT_DONE)
        yield_now_and_then(spins);
      bench::require(rc, "GNI_SmsgSend");
    };
    const auto receive = [&] {
      void* message = nullptr;
      gni_return_t rc = GNI_RC_SUCCESS;
      int spins = 0;
      while ((rc = GNI_SmsgGetNext(ep, &message)) == GNI_RC_NOT_DONE) yield_now_and_then(spins);
      bench::require(rc, "GNI_SmsgGetNext");
      BENCH_REQUIRE(GNI_SmsgRelease(ep));
    };
    PMI_Barrier();
    const auto samples = bench::timed_loop(options, options.iterations_for(bytes), 0.5, [&] {
      if (first) {
        send();
        receive();
      } else {
        receive();
        send();
      }
    });
    if (!first) continue;
    std::optional<double> expected;
    if (model) {
      using orrery::model::Op;
      expected =
          (model->data_us(Op::message, {0, 1}, bytes) + model->data_us(Op::message, {1, 0}, bytes)) / 2;
    }
    table->line(bytes, bench::average_of(samples), samples, expected);
  }
  table.reset();
  PMI_Barrier();
  return 0;
}
