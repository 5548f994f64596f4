// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/copy.hpp"

#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace orrery {

#ifdef __x86_64__
namespace {

constexpr std::size_t kByVectors = 2048;      // and more
constexpr std::size_t kByString = 16u << 10;  // more than this: the start is lost among the rest
constexpr std::size_t kVector = sizeof(__m256i);

// Copies the multiple of four vectors that `bytes` holds and returns its size. `to` is aligned to a vector.
__attribute__((target("avx2"))) std::size_t copy_vectors(std::byte* to, const std::byte* from,
                                                         std::size_t bytes) {
  std::size_t done = 0;
  for (; done + 4 * kVector <= bytes; done += 4 * kVector) {
    const auto* const in = reinterpret_cast<const __m256i*>(from + done);
    auto* const out = reinterpret_cast<__m256i*>(to + done);
    const __m256i a = _mm256_loadu_si256(in);
    const __m256i b = _mm256_loadu_si256(in + 1);
    const __m256i c = _mm256_loadu_si256(in + 2);
    const __m256i d = _mm256_loadu_si256(in + 3);
    _mm256_store_si256(out, a);
    _mm256_store_si256(out + 1, b);
    _mm256_store_si256(out + 2, c);
    _mm256_store_si256(out + 3, d);
  }
  return done;
}

const bool has_vectors = __builtin_cpu_supports("avx2") != 0;

}  // namespace

void copy_block(void* to, const void* from, std::size_t bytes) {
  if (bytes < kByVectors || bytes > kByString || !has_vectors) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  // A line that is written in two halves costs twice: the first vector may overlap the second.
  const std::size_t head = (kVector - reinterpret_cast<std::uintptr_t>(target) % kVector) % kVector;
  if (head != 0) std::memcpy(target, source, kVector);
  const std::size_t done = head + copy_vectors(target + head, source + head, bytes - head);
  std::memcpy(target + done, source + done, bytes - done);
}
#else
void copy_block(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
#endif

}  // namespace orrery
