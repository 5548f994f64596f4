// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Half round trip of a put: each PE puts into the other's memory and polls its own for the answer. One
// operation a turn, whatever its size.
#include "bench/osu/model.hpp"
#include "bench/osu/pair.hpp"
#include "bench/osu/table.hpp"
#include "bench/osu/timed_loop.hpp"

#include <cstring>
#include <optional>

int main(int argc, char** argv) {
  bench::OsuOptions options;
  // The flag has eight bytes.
  options.parse("put ping-pong between two PEs; run with: orrery run -n 2", argc, argv, 8);
  const std::size_t flag_at = (options.largest + 7) / 8 * 8;  // a word that no line's end cuts
  bench::OsuPair pair(flag_at + 8);
  if (options.pinned) bench::pin(pair.session.rank);
  const bool first = pair.session.rank == 0;
  std::optional<bench::Model> model;
  if (options.model) model.emplace(pair.session);
  std::optional<bench::OsuTable> table;
  if (first) table.emplace(options, "Orrery uGNI Put Latency Test", "Latency (us)");

  const auto half_round_trip = [&](std::uint64_t bytes) {
    return (model->data_us(orrery::model::Op::fma_put, {0, 1}, bytes) +
            model->data_us(orrery::model::Op::fma_put, {1, 0}, bytes)) /
           2;
  };

  std::uint64_t value = 0;
  for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
    // What is polled for is the round's number: of up to a word it is the data. Data of more than a word may
    // arrive in any order, so longer ones are a put with a flag, which is seen when all of it is in place.
    const bool flagged = bytes > sizeof value;
    auto put =
        bench::put_descriptor(flagged ? GNI_POST_FMA_PUT_W_SYNCFLAG : GNI_POST_FMA_PUT,
                              GNI_CQMODE_GLOBAL_EVENT, pair.local, pair.peer, flagged ? 0 : flag_at, bytes);
    put.sync_flag_addr = pair.peer.address + flag_at;
    auto* seen = reinterpret_cast<volatile std::uint64_t*>(pair.window + flag_at);
    const auto send = [&] {
      if (flagged)
        put.sync_flag_value = value;
      else
        std::memcpy(pair.local, &value, sizeof value);
      pair.post(put);
      pair.reap();
    };
    const auto await = [&] {
      for (int spins = 0; *seen != value; ++spins) {
        gni_cq_entry_t event = 0;
        if (spins % 64 == 63) GNI_CqGetEvent(pair.queue, &event);
        if (spins > 1000) sched_yield();
      }
    };
    PMI_Barrier();
    const auto samples = bench::timed_loop(options, options.iterations_for(bytes), 0.5, [&] {
      ++value;
      if (first) {
        send();
        await();
      } else {
        await();
        send();
      }
    });
    if (first) {
      std::optional<double> expected;
      if (model) expected = half_round_trip(bytes);
      table->line(bytes, bench::average_of(samples), samples, expected);
    }
  }
  PMI_Barrier();
  return 0;
}
