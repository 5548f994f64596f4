// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/copy.hpp"

#include "emu/base/timed_path.hpp"

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
constexpr std::size_t kLine = 64;

// Each copies as many whole groups of lines as `bytes` holds, and returns their size. `to` is aligned to a
// line.
using Copy = std::size_t(std::byte* to, const std::byte* from, std::size_t bytes);

__attribute__((target("avx512f"))) std::size_t copy_lines(std::byte* to, const std::byte* from,
                                                          std::size_t bytes) {
  std::size_t done = 0;
  for (; done + 4 * kLine <= bytes; done += 4 * kLine) {
    const std::byte* const in = from + done;
    std::byte* const out = to + done;
    const __m512i a = _mm512_loadu_si512(in);
    const __m512i b = _mm512_loadu_si512(in + kLine);
    const __m512i c = _mm512_loadu_si512(in + 2 * kLine);
    const __m512i d = _mm512_loadu_si512(in + 3 * kLine);
    _mm512_store_si512(out, a);
    _mm512_store_si512(out + kLine, b);
    _mm512_store_si512(out + 2 * kLine, c);
    _mm512_store_si512(out + 3 * kLine, d);
  }
  return done;
}

__attribute__((target("avx2"))) std::size_t copy_half_lines(std::byte* to, const std::byte* from,
                                                            std::size_t bytes) {
  std::size_t done = 0;
  for (; done + 2 * kLine <= bytes; done += 2 * kLine) {
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

Copy* const copy_vectors = __builtin_cpu_supports("avx512f") != 0 ? &copy_lines
                           : __builtin_cpu_supports("avx2") != 0  ? &copy_half_lines
                                                                  : nullptr;

}  // namespace

ORRERY_TIMED_PATH void copy_block(void* to, const void* from, std::size_t bytes) {
  if (bytes < kByVectors || bytes > kByString || copy_vectors == nullptr) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  // A line that is written in two halves costs twice: the first one may overlap the second.
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(target) % kLine) % kLine;
  if (head != 0) std::memcpy(target, source, kLine);
  const std::size_t done = head + copy_vectors(target + head, source + head, bytes - head);
  std::memcpy(target + done, source + done, bytes - done);
}
#else
ORRERY_TIMED_PATH void copy_block(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

}  // namespace orrery
