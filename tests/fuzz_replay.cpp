// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What a fuzz target is linked with where there is no libFuzzer: gives it the empty input, every file of the
// corpus folder in argv[1], and mutations of each drawn from a seed (printed; ORRERY_TEST_SEED sets it).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

// Enough to reach every branch of a line parser in well under a second; the fuzzers themselves go deeper.
// REPLAY_MUTATIONS in the environment is for targets that build more than a parser for each input.
int mutations_per_input() {
  const char* asked = std::getenv("REPLAY_MUTATIONS");
  return asked != nullptr ? std::atoi(asked) : 2000;
}

Input read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Input(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

void mutate(Input& input, std::mt19937_64& random) {
  const auto edits = 1 + random() % 4;
  for (std::uint64_t i = 0; i < edits; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(input.empty() ? 0 : random() % input.size());
    switch (random() % 4) {
      case 0:
        input.insert(input.begin() + at, static_cast<std::uint8_t>(random()));
        break;
      case 1:
        if (!input.empty()) input.erase(input.begin() + at);
        break;
      case 2:
        if (!input.empty())
          input[static_cast<std::size_t>(at)] ^= static_cast<std::uint8_t>(1u << random() % 8);
        break;
      default:
        input.resize(static_cast<std::size_t>(at));
        break;
    }
  }
}

void give(const Input& input) {
  // A copy of the exact size on the heap, so that a sanitizer sees a read past the end.
  const std::vector<std::uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
  const char* asked = std::getenv("ORRERY_TEST_SEED");
  const std::uint64_t seed = asked != nullptr ? std::strtoull(asked, nullptr, 0) : std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  std::vector<Input> corpus = {Input{}};
  if (argc > 1) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) corpus.push_back(read_file(path));
  }
  const int mutations = mutations_per_input();
  std::mt19937_64 random(seed);
  for (const Input& input : corpus) {
    give(input);
    for (int i = 0; i < mutations; ++i) {
      Input changed = input;
      mutate(changed, random);
      give(changed);
    }
  }
  std::printf("%zu inputs, %d mutations of each\n", corpus.size(), mutations);
  return 0;
}
