// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A sum over all PEs in the NICs' collective engine. Its line's size is the number of PEs.
#include "bench/common/clock.hpp"
#include "bench/osu/collective.hpp"
#include "bench/osu/reduction.hpp"

int main(int argc, char** argv) {
  bench::OsuOptions options;
  options.iterations = 1000;
  options.has_sizes = false;
  options.parse("a sum over all PEs, at most 256; run with: orrery run -n N", argc, argv);
  bench::Session session;
  if (options.pinned) bench::pin(session.rank);
  bench::Reduction reduction(session);
  const auto rank = static_cast<std::uint64_t>(session.rank), pes = static_cast<std::uint64_t>(session.size);
  const std::uint64_t sum = pes * (pes - 1) / 2;
  bench::time_collective(
      session, options, "Orrery uGNI Allreduce Test", pes,
      [&] {
        if (const std::uint64_t result = reduction.run(GNI_FMA_CE_IADD, rank); result != sum) {
          std::fprintf(stderr, "PE %d: the sum is %llu, not %llu\n", session.rank,
                       static_cast<unsigned long long>(result), static_cast<unsigned long long>(sum));
          PMI_Abort(1, "wrong sum");
        }
      },
      [&](const bench::Model& m) {
        return m.collective_us(orrery::model::Collective::allreduce, session.size, 16);
      });
  return 0;
}
