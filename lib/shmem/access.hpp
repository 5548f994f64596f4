// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/shmem/job.hpp"
#include "lib/shmem/team.hpp"

#include <cstdint>
#include <cstring>

// Puts, gets and AMOs of this library by DMAPP's: the segment is the one that the address lies in. An
// address outside both is DMAPP's to refuse, so that a good one costs no check here.
namespace orrery::shmem {

[[gnu::always_inline]] inline dmapp_seg_desc_t* segment_of(const void* symmetric) {
  const auto address = reinterpret_cast<std::uint64_t>(symmetric);
  return address - g_job.heap.begin < g_job.heap.bytes ? &g_job.heap.segment : &g_job.data.segment;
}

// Bytes of that many elements; more than there is memory where the product is too large for a number, which
// DMAPP refuses.
[[gnu::always_inline]] inline std::uint64_t bytes_of(std::uint64_t nelems, std::uint64_t width) {
  std::uint64_t bytes = 0;
  return __builtin_mul_overflow(nelems, width, &bytes) ? UINT64_MAX : bytes;
}

// Ends the job where a range is not symmetric: for what no request of DMAPP's looks at.
void must_be_symmetric(const char* call, const void* address, std::uint64_t bytes);

// DMAPP's parameters are not const, and it changes nothing that is to be read.
inline void* plain(const void* pointer) { return const_cast<void*>(pointer); }

[[gnu::always_inline]] inline void put(const char* call, void* dest, const void* source, std::uint64_t bytes,
                                       int pe) {
  if (bytes == 0) return;
  must(call, dmapp_put(dest, segment_of(dest), pe, plain(source), bytes, DMAPP_BYTE), dest, bytes, pe);
}
[[gnu::always_inline]] inline void put_nbi(const char* call, void* dest, const void* source,
                                           std::uint64_t bytes, int pe) {
  if (bytes == 0) return;
  must(call, dmapp_put_nbi(dest, segment_of(dest), pe, plain(source), bytes, DMAPP_BYTE), dest, bytes, pe);
}
// Whether DMAPP's put that does not wait has taken its source when it returns: under a machine's clock, and
// below the threshold that the calling thread has now, as the FMA unit does. REQUIRES: g_job.clocked.
bool is_taken_at_once(std::uint64_t bytes);
// put_away() under a machine's clock.
void put_away_clocked(const char* call, void* dest, const void* source, std::uint64_t bytes, int pe);
// Returns when the source may be written again: a client's put. The library's own puts, which something
// follows that must come behind them, are above.
[[gnu::always_inline]] inline void put_away(const char* call, void* dest, const void* source,
                                            std::uint64_t bytes, int pe) {
  if (g_job.clocked) [[unlikely]] {
    put_away_clocked(call, dest, source, bytes, pe);
    return;
  }
  put(call, dest, source, bytes, pe);
}
[[gnu::always_inline]] inline void get(const char* call, void* dest, const void* source, std::uint64_t bytes,
                                       int pe) {
  if (bytes == 0) return;
  must(call, dmapp_get(dest, plain(source), segment_of(source), pe, bytes, DMAPP_BYTE), source, bytes, pe);
}
[[gnu::always_inline]] inline void get_nbi(const char* call, void* dest, const void* source,
                                           std::uint64_t bytes, int pe) {
  if (bytes == 0) return;
  must(call, dmapp_get_nbi(dest, plain(source), segment_of(source), pe, bytes, DMAPP_BYTE), source, bytes,
       pe);
}
void iput(const char* call, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
          std::uint64_t nelems, std::size_t width, int pe);
void iget(const char* call, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
          std::uint64_t nelems, std::size_t width, int pe);

// An operand as DMAPP takes it: the value's bits in the low bytes.
template <typename T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <typename T>
dmapp_amo_t amo_of(dmapp_amo_op_t op, T operand1, T operand2 = T{}) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return {.op = op,
          .type = sizeof(T) == 8 ? DMAPP_QW : DMAPP_DW,
          .operand1 = bits_of(operand1),
          .operand2 = bits_of(operand2)};
}

namespace detail {

// The entry point of its own that DMAPP has for most operations on 8 bytes costs half of the general one.
// `what` is known when this is compiled, so that one call is left.
[[gnu::always_inline]] inline dmapp_return_t put_qw(void* word, dmapp_seg_desc_t* segment, int pe,
                                                    dmapp_amo_t& what) {
  const auto a = static_cast<std::int64_t>(what.operand1);
  switch (what.op) {
    case DMAPP_AMO_ADD:
      return dmapp_aadd_qw_nbi(word, segment, pe, a);
    case DMAPP_AMO_AND:
      return dmapp_aand_qw_nbi(word, segment, pe, a);
    case DMAPP_AMO_OR:
      return dmapp_aor_qw_nbi(word, segment, pe, a);
    case DMAPP_AMO_XOR:
      return dmapp_axor_qw_nbi(word, segment, pe, a);
    default:
      return dmapp_amo_put_nbi(word, segment, pe, &what);
  }
}
[[gnu::always_inline]] inline dmapp_return_t get_qw(void* result, void* word, dmapp_seg_desc_t* segment,
                                                    int pe, dmapp_amo_t& what) {
  const auto a = static_cast<std::int64_t>(what.operand1);
  switch (what.op) {
    case DMAPP_AMO_ADD:
      return dmapp_afadd_qw(result, word, segment, pe, a);
    case DMAPP_AMO_AND:
      return dmapp_afand_qw(result, word, segment, pe, a);
    case DMAPP_AMO_OR:
      return dmapp_afor_qw(result, word, segment, pe, a);
    case DMAPP_AMO_XOR:
      return dmapp_afxor_qw(result, word, segment, pe, a);
    case DMAPP_AMO_CSWAP:
      return dmapp_acswap_qw(result, word, segment, pe, a, static_cast<std::int64_t>(what.operand2));
    default:
      return dmapp_amo_get(result, word, segment, pe, &what);
  }
}

}  // namespace detail

template <typename T>
[[gnu::always_inline]] inline void amo(const char* call, T* dest, int pe, dmapp_amo_t what) {
  dmapp_seg_desc_t* const segment = segment_of(dest);
  const dmapp_return_t rc =
      sizeof(T) == 8 ? detail::put_qw(dest, segment, pe, what) : dmapp_amo_put_nbi(dest, segment, pe, &what);
  must(call, rc, dest, sizeof(T), pe);
}
template <typename T>
[[gnu::always_inline]] inline T fetch_amo(const char* call, const T* word, int pe, dmapp_amo_t what) {
  T old;
  dmapp_seg_desc_t* const segment = segment_of(word);
  const dmapp_return_t rc = sizeof(T) == 8 ? detail::get_qw(&old, plain(word), segment, pe, what)
                                           : dmapp_amo_get(&old, plain(word), segment, pe, &what);
  must(call, rc, word, sizeof(T), pe);
  return old;
}
template <typename T>
void fetch_amo_nbi(const char* call, T* result, const T* word, int pe, dmapp_amo_t what) {
  must(call, dmapp_amo_get_nbi(result, plain(word), segment_of(word), pe, &what), word, sizeof(T), pe);
}

// Ends the job: an operation that was under way ended with `rc`.
[[noreturn]] void fail_quiet(const char* call, dmapp_return_t rc);
// Everything of this PE that is under way is done.
[[gnu::always_inline]] inline void quiet(const char* call) {
  const dmapp_return_t rc = dmapp_gsync_wait();
  if (rc != DMAPP_RC_SUCCESS) [[unlikely]]
    fail_quiet(call, rc);
}
// What the calling thread has started, alone.
void quiet_of_thread(const char* call);

}  // namespace orrery::shmem
