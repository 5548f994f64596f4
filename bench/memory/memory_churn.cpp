// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// Does memory pile up? Registers, adopts and frees blocks of 64 B to 4 MiB a million times and prints the
// curve of what the memory file occupies and what is resident. Ends with 1 when their sum ever exceeds the
// bound.
#include "bench/common/options.hpp"
#include "emu/memory/address_space.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

using orrery::memory::AddressSpace;

constexpr std::uint64_t kMebi = 1 << 20;

std::uint64_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  unsigned long size = 0, resident = 0;
  if (file == nullptr || std::fscanf(file, "%lu %lu", &size, &resident) != 2) std::exit(2);
  std::fclose(file);
  return resident * orrery::memory::kPageBytes;
}

struct Block {
  char* at = nullptr;
  std::size_t bytes = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t cycles = 1'000'000;
  std::uint64_t live = 64;
  std::uint64_t limit_mebibytes = 512;
  unsigned seed = 1;
  bool quick = false;
  bench::Options options("register, adopt and free: does memory pile up?");
  options.number("--cycles", &cycles, "blocks to go through", 1, 1'000'000'000);
  options.number("--live", &live, "blocks held at once", 1, 10'000);
  options.number("--limit", &limit_mebibytes, "most MiB of file and resident set together");
  options.number("--seed", &seed, "of the sizes");
  options.flag("--quick", &quick, "20,000 cycles");
  options.parse(argc, argv);
  if (quick) cycles = std::min<std::uint64_t>(cycles, 20'000);

  auto made = AddressSpace::create({});
  if (!made.ok() || made.value()->file() < 0) return 2;
  AddressSpace& space = *made.value();
  orrery::memory::NoPeers nobody;

  std::mt19937 random(seed);
  std::vector<Block> blocks(live);
  std::uint64_t held = 0, refused = 0, most = 0, moved = 0;
  fmt::print("# register, adopt, free: {} cycles, {} blocks of 64 B to 4 MiB at once, seed {}\n", cycles,
             live, seed);
  fmt::print("# {:>9} {:>10} {:>10} {:>10} {:>9} {:>9}\n", "cycle", "held MiB", "file MiB", "RSS MiB",
             "extents", "refused");
  const std::uint64_t report_every = std::max<std::uint64_t>(1, cycles / 20);
  const std::uint64_t look_every = std::max<std::uint64_t>(1, cycles / 2'000);
  for (std::uint64_t cycle = 1; cycle <= cycles; ++cycle) {
    Block& block = blocks[random() % live];
    if (block.at != nullptr) space.settle(reinterpret_cast<std::uint64_t>(block.at), block.bytes);
    held -= block.bytes;
    std::free(block.at);
    // 2^6 to 2^22 bytes, each power as often as the others.
    block.bytes = (std::size_t{1} << (6 + random() % 16)) + random() % 64;
    block.at = static_cast<char*>(std::malloc(block.bytes));
    if (block.at == nullptr) return 2;
    std::memset(block.at, static_cast<int>(cycle), block.bytes);
    held += block.bytes;
    const auto address = reinterpret_cast<std::uint64_t>(block.at);
    if (space.inspect(address, block.bytes).value().cover != orrery::memory::Cover::direct) {
      if (space.adopt(address, block.bytes, nobody).ok())
        moved += block.bytes;
      else
        ++refused;
    }
    if (block.at[block.bytes - 1] != static_cast<char>(cycle)) {
      fmt::print(stderr, "cycle {}: a block changed when it was adopted\n", cycle);
      return 1;
    }
    if (cycle % look_every == 0) {
      const auto stats = space.stats();
      const std::uint64_t resident = resident_bytes();
      most = std::max(most, stats.file_blocks_bytes + resident);
      if (cycle % report_every == 0)
        fmt::print("  {:>9} {:>10} {:>10} {:>10} {:>9} {:>9}\n", cycle, held / kMebi,
                   stats.file_blocks_bytes / kMebi, resident / kMebi, stats.extents, refused);
    }
  }
  fmt::print("# {} MiB moved into the file; most at once: {} MiB of file and resident set, bound {} MiB\n",
             moved / kMebi, most / kMebi, limit_mebibytes);
  return most <= limit_mebibytes * kMebi ? 0 : 1;
}
