// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/frame_check.hpp"

#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orrery::wire {

namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

constexpr std::uint32_t step(std::uint32_t state, std::byte byte) {
  return (state >> 8) ^ kTable[(state ^ static_cast<std::uint32_t>(byte)) & 0xff];
}

// Eight bytes, the lowest first.
std::uint64_t word_at(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

#if defined(__x86_64__)
// The instruction takes three cycles but one can start in each: long input is read as three strands. A
// strand's result is carried over the bytes behind it by a linear map, which is tabulated byte by byte of the
// state.
constexpr std::size_t kStrand = 1024;

using ShiftTable = std::array<std::array<std::uint32_t, 256>, 4>;

// What the state `1 << bit` has become after kStrand bytes of zeros, for every bit; the rest follows by
// linearity.
constexpr ShiftTable make_shift() {
  std::array<std::uint32_t, 32> basis{};
  for (std::uint32_t bit = 0; bit < 32; ++bit) basis[bit] = std::uint32_t{1} << bit;
  const auto apply = [](const std::array<std::uint32_t, 32>& map, std::uint32_t state) {
    std::uint32_t out = 0;
    for (std::uint32_t bit = 0; bit < 32; ++bit) out ^= (state >> bit & 1) != 0 ? map[bit] : 0;
    return out;
  };
  for (auto& image : basis) image = step(image, std::byte{0});  // one byte of zeros
  for (std::size_t bytes = 1; bytes < kStrand; bytes *= 2) {    // doubled until it is a strand of them
    std::array<std::uint32_t, 32> twice{};
    for (std::uint32_t bit = 0; bit < 32; ++bit) twice[bit] = apply(basis, basis[bit]);
    basis = twice;
  }
  ShiftTable table{};
  for (std::uint32_t place = 0; place < 4; ++place) {
    for (std::uint32_t value = 0; value < 256; ++value)
      table[place][value] = apply(basis, value << (8 * place));
  }
  return table;
}
constexpr ShiftTable kShift = make_shift();

std::uint32_t shift(std::uint32_t state) {
  return kShift[0][state & 0xff] ^ kShift[1][state >> 8 & 0xff] ^ kShift[2][state >> 16 & 0xff] ^
         kShift[3][state >> 24];
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes,
                                                                      std::uint32_t before) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t state = ~before;
  for (; left >= 3 * kStrand; at += 3 * kStrand, left -= 3 * kStrand) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < kStrand; i += 8) {
      state = _mm_crc32_u64(state, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + kStrand + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * kStrand + i));
    }
    state = shift(shift(static_cast<std::uint32_t>(state)) ^ static_cast<std::uint32_t>(second)) ^ third;
  }
  for (; left >= 8; at += 8, left -= 8) state = _mm_crc32_u64(state, word_at(at));
  auto tail = static_cast<std::uint32_t>(state);
  for (; left > 0; ++at, --left) tail = _mm_crc32_u8(tail, static_cast<unsigned char>(*at));
  return ~tail;
}

// Long input where the processor multiplies polynomials 512 bits at a time: several times as fast as strands.
// Four registers walk over the input; each step carries them over the 256 bytes that it goes on by. A lane of
// 128 bits is carried over `bits` by multiplying its halves by x^(bits + 32) and x^(bits - 32) modulo the
// polynomial (Intel, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", 2009; bits
// reversed as in all of this sum).
constexpr std::size_t kFoldBytes = 256;
constexpr std::size_t kFoldWorthwhile = 1024;

constexpr std::uint64_t power_of_x(unsigned exponent) {
  std::uint32_t value = 0x80000000;  // x^0
  for (unsigned i = 0; i < exponent; ++i) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
  return std::uint64_t{value} << 1;
}

struct FoldKeys {
  std::uint64_t low, high;
};
constexpr FoldKeys fold_keys(unsigned bits) { return {power_of_x(bits + 32), power_of_x(bits - 32)}; }
constexpr FoldKeys kFoldFar = fold_keys(8 * kFoldBytes);
constexpr FoldKeys kFoldNear = fold_keys(512);

#define ORRERY_FOLDING __attribute__((target("sse4.2,avx512f,vpclmulqdq")))

ORRERY_FOLDING inline __m512i keys_of(FoldKeys keys) {
  return _mm512_set_epi64(static_cast<long long>(keys.high), static_cast<long long>(keys.low),
                          static_cast<long long>(keys.high), static_cast<long long>(keys.low),
                          static_cast<long long>(keys.high), static_cast<long long>(keys.low),
                          static_cast<long long>(keys.high), static_cast<long long>(keys.low));
}

ORRERY_FOLDING inline __m512i carry(__m512i value, __m512i keys, __m512i onto) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(value, keys, 0x00),
                                   _mm512_clmulepi64_epi128(value, keys, 0x11), onto, kXorOfThree);
}

ORRERY_FOLDING inline __m512i load(const std::byte* from) { return _mm512_loadu_si512(from); }

// REQUIRES: bytes.size() >= kFoldBytes.
ORRERY_FOLDING std::uint32_t crc32c_by_folding(std::span<const std::byte> bytes, std::uint32_t before) {
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  // The initial state is added to the first bytes.
  const auto initial = static_cast<int>(~before);
  __m512i a = _mm512_xor_si512(load(at), _mm512_zextsi128_si512(_mm_cvtsi32_si128(initial)));
  __m512i b = load(at + 64);
  __m512i c = load(at + 128);
  __m512i d = load(at + 192);
  const __m512i far = keys_of(kFoldFar);
  for (at += kFoldBytes; end - at >= static_cast<std::ptrdiff_t>(kFoldBytes); at += kFoldBytes) {
    a = carry(a, far, load(at));
    b = carry(b, far, load(at + 64));
    c = carry(c, far, load(at + 128));
    d = carry(d, far, load(at + 192));
  }
  const __m512i near = keys_of(kFoldNear);
  d = carry(carry(carry(a, near, b), near, c), near, d);
  for (; end - at >= 64; at += 64) d = carry(d, near, load(at));
  alignas(64) std::uint64_t words[8];
  _mm512_store_si512(words, d);
  std::uint64_t state = 0;
  for (const std::uint64_t word : words) state = _mm_crc32_u64(state, word);
  for (; end - at >= 8; at += 8) state = _mm_crc32_u64(state, word_at(at));
  auto tail = static_cast<std::uint32_t>(state);
  for (; at != end; ++at) tail = _mm_crc32_u8(tail, static_cast<unsigned char>(*at));
  return ~tail;
}
#undef ORRERY_FOLDING
#endif

template <int kRounds>
struct SipState {
  std::uint64_t v0, v1, v2, v3;
  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void take(std::uint64_t word) {
    v3 ^= word;
    for (int i = 0; i < kRounds; ++i) round();
    v0 ^= word;
  }
};

// The last bytes, fewer than eight.
std::uint64_t tail_at(const std::byte* at, std::size_t bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes; ++i) word |= static_cast<std::uint64_t>(at[i]) << (8 * i);
  return word;
}

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t state = ~before;
  for (const std::byte byte : bytes) state = step(state, byte);
  return ~state;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  if (bytes.size() >= kFoldWorthwhile && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("vpclmulqdq"))
    return crc32c_by_folding(bytes, before);
  if (__builtin_cpu_supports("sse4.2")) return crc32c_by_instruction(bytes, before);
#endif
  return crc32c_by_table(bytes, before);
}

template <int kRounds, int kLastRounds>
std::uint64_t siphash(const AuthKey& key, std::span<const std::byte> bytes) {
  SipState<kRounds> s{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
                      key[1] ^ 0x7465646279746573};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) s.take(word_at(at));
  s.take(tail_at(at, left) | static_cast<std::uint64_t>(bytes.size() & 0xff) << 56);
  s.v2 ^= 0xff;
  for (int i = 0; i < kLastRounds; ++i) s.round();
  return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

std::uint64_t siphash24(const AuthKey& key, std::span<const std::byte> bytes) {
  return siphash<2, 4>(key, bytes);
}

std::uint64_t siphash13(const AuthKey& key, std::span<const std::byte> bytes) {
  return siphash<1, 3>(key, bytes);
}

AuthKey derive_key(const AuthKey& secret, const AuthScope& scope) {
  std::array<std::byte, 32> text{};
  const auto put = [&](std::size_t at, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) text[at + i] = static_cast<std::byte>(value >> (8 * i));
  };
  put(0, scope.job, 8);
  put(8, scope.from, 8);
  put(16, scope.to, 8);
  put(24, scope.domain, 2);
  AuthKey key{};
  for (std::size_t half = 0; half < 2; ++half) {
    text[31] = static_cast<std::byte>(half + 1);
    key[half] = siphash24(secret, text);
  }
  return key;
}

}  // namespace orrery::wire
