// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/group.hpp"

#include "lib/shmem/access.hpp"
#include "lib/shmem/life.hpp"
#include "lib/shmem/wait.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

namespace orrery::shmem::group {

namespace {

constexpr const char* kCall = "a collective";

// Of what a member combines at once.
constexpr std::size_t kChunk = 32 << 10;
// Of a reduction of DMAPP's.
constexpr std::size_t kDmappBytes = 64;

void raise(const Set& set, std::uint64_t* word, int place) {
  amo(kCall, word, set.pe(place), amo_of<std::uint64_t>(DMAPP_AMO_ADD, 1));
}

void must_have_met(dmapp_return_t rc) {
  if (rc == DMAPP_RC_SUCCESS) [[likely]]
    return;
  fail_if_a_pe_just_ended(kCall);
  const char* why = "";
  (void)dmapp_explain_error(rc, &why);
  fail(kCall, "the PEs of the set did not meet: %s", why);
}

// By the set of DMAPP's: up to 8 QWs, of the types that it has. true: done.
bool reduced_by_dmapp(const Set& set, void* dest, const void* source, std::size_t nelems, std::size_t width,
                      const Reduction& reduction) {
  if (set.pset == 0 || !reduction.dmapp_has_it || nelems == 0 || nelems * width > kDmappBytes) return false;
  dmapp_return_t rc = dmapp_c_greduce_start(set.pset, plain(source), dest, static_cast<std::uint32_t>(nelems),
                                            reduction.type, reduction.op);
  if (rc == DMAPP_RC_SUCCESS) rc = dmapp_c_pset_wait(set.pset);
  must_have_met(rc);
  return true;
}

// The place `distance` places further on, around.
int after(const Set& set, int distance) { return (set.me + distance) % set.size; }

}  // namespace

void sync(const Set& set) {
  if (set.pset != 0) {
    dmapp_return_t rc = dmapp_c_barrier_join(set.pset);
    if (rc == DMAPP_RC_SUCCESS) rc = dmapp_c_pset_wait(set.pset);
    must_have_met(rc);
    return;
  }
  for (int round = 0, distance = 1; distance < set.size; ++round, distance *= 2) {
    raise(set, &set.words->rounds[round], after(set, distance));
    take(set, &set.words->rounds[round]);
  }
}

void broadcast(const Set& set, void* dest, const void* source, std::size_t bytes, int root) {
  // Places are counted from the root on. In round r those below 2^r have the data, and give them to the one
  // 2^r on.
  const int mine = (set.me - root + set.size) % set.size;
  const void* from = source;
  int round = 0;
  int distance = 1;
  if (mine != 0) {
    while (distance * 2 <= mine) {
      distance *= 2;
      ++round;
    }
    take(set, &set.words->down[round]);
    from = dest;
    distance *= 2;
    ++round;
  }
  for (; mine + distance < set.size; distance *= 2, ++round) {
    const int to = after(set, distance);
    put(kCall, dest, from, bytes, set.pe(to));
    raise(set, &set.words->down[round], to);
  }
}

void fcollect(const Set& set, void* dest, const void* source, std::size_t bytes) {
  auto* const at = static_cast<std::byte*>(dest) + static_cast<std::size_t>(set.me) * bytes;
  for (int i = 1; i <= set.size; ++i) put_nbi(kCall, at, source, bytes, set.pe(after(set, i)));
  quiet(kCall);
  sync(set);
}

namespace {

// Bytes of the members before this one.
std::uint64_t bytes_before(const Set& set, std::size_t bytes) {
  // Few members: all learn all sizes at once.
  if (set.pset != 0 && static_cast<std::size_t>(set.size) * sizeof(std::uint64_t) <= kDmappBytes) {
    std::array<std::uint64_t, kDmappBytes / sizeof(std::uint64_t)> sizes{};
    sizes[static_cast<std::size_t>(set.me)] = bytes;
    (void)reduced_by_dmapp(set, sizes.data(), sizes.data(), static_cast<std::size_t>(set.size),
                           sizeof(std::uint64_t), reduction_sum<std::uint64_t>());
    return std::accumulate(sizes.begin(), sizes.begin() + set.me, std::uint64_t{0});
  }
  // By a scan: in round r the sum of the last 2^r of them comes in.
  std::uint64_t before = 0;
  std::uint64_t sum = bytes;
  for (int round = 0, distance = 1; distance < set.size; ++round, distance *= 2) {
    if (set.me + distance < set.size) {
      const int to = set.pe(set.me + distance);
      put(kCall, &set.words->sums[round], &sum, sizeof sum, to);
      raise(set, &set.words->summed[round], set.me + distance);
    }
    if (set.me >= distance) {
      take(set, &set.words->summed[round]);
      before += set.words->sums[round];
      sum += set.words->sums[round];
      set.words->sums[round] = 0;
    }
  }
  return before;
}

}  // namespace

void collect(const Set& set, void* dest, const void* source, std::size_t bytes) {
  auto* const at = static_cast<std::byte*>(dest) + bytes_before(set, bytes);
  for (int i = 1; i <= set.size; ++i) put_nbi(kCall, at, source, bytes, set.pe(after(set, i)));
  quiet(kCall);
  sync(set);
}

void alltoall(const Set& set, void* dest, const void* source, std::size_t bytes) {
  auto* const at = static_cast<std::byte*>(dest) + static_cast<std::size_t>(set.me) * bytes;
  for (int i = 1; i <= set.size; ++i) {
    const int to = after(set, i);
    put_nbi(kCall, at, static_cast<const std::byte*>(source) + static_cast<std::size_t>(to) * bytes, bytes,
            set.pe(to));
  }
  quiet(kCall);
  sync(set);
}

void alltoalls(const Set& set, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
               std::size_t nelems, std::size_t width) {
  const auto block = [&](std::ptrdiff_t stride, int place) {
    return static_cast<std::size_t>(stride) * nelems * width * static_cast<std::size_t>(place);
  };
  auto* const at = static_cast<std::byte*>(dest) + block(dst, set.me);
  for (int i = 1; i <= set.size; ++i) {
    const int to = after(set, i);
    iput(kCall, at, static_cast<const std::byte*>(source) + block(sst, to), dst, sst, nelems, width,
         set.pe(to));
  }
  quiet(kCall);
  sync(set);
}

void reduce(const Set& set, void* dest, const void* source, std::size_t nelems, std::size_t width,
            const Reduction& reduction) {
  if (reduced_by_dmapp(set, dest, source, nelems, width, reduction)) return;
  const std::size_t bytes = nelems * width;
  if (dest != source && bytes != 0) std::memmove(dest, source, bytes);
  const std::size_t chunk = std::max<std::size_t>(kChunk / width, 1);
  alignas(64) std::byte few[256];
  std::unique_ptr<std::byte[]> many;
  std::byte* room = few;
  if (bytes > sizeof few) {
    many = std::make_unique<std::byte[]>(std::min(chunk, nelems) * width);
    room = many.get();
  }
  int round = 0;
  int distance = 1;
  for (; distance < set.size && (set.me & distance) == 0; distance *= 2, ++round) {
    if (set.me + distance >= set.size) continue;
    take(set, &set.words->up[round]);
    for (std::size_t i = 0; i < nelems; i += chunk) {
      const std::size_t count = std::min(chunk, nelems - i);
      auto* const at = static_cast<std::byte*>(dest) + i * width;
      get(kCall, room, at, count * width, set.pe(set.me + distance));
      reduction.combine(at, room, count);
    }
  }
  if (set.me != 0) raise(set, &set.words->up[round], set.me - distance);
  broadcast(set, dest, dest, bytes, 0);
}

void scan(const Set& set, void* dest, const void* source, std::size_t nelems, std::size_t width,
          Combine combine, bool inclusive) {
  constexpr std::size_t kLast = kRounds - 1;
  const std::size_t bytes = nelems * width;
  // The member before writes what it and those before it come to into dest, once that may be written.
  const auto own = std::make_unique<std::byte[]>(bytes);
  if (bytes != 0) std::memcpy(own.get(), source, bytes);
  if (set.me > 0) {
    raise(set, &set.words->up[kLast], set.me - 1);
    take(set, &set.words->down[kLast]);
  } else if (bytes != 0) {
    std::memset(dest, 0, bytes);
  }
  const auto sum = std::make_unique<std::byte[]>(bytes);
  if (bytes != 0) {
    std::memcpy(sum.get(), dest, bytes);
    combine(sum.get(), own.get(), nelems);
  }
  if (set.me + 1 < set.size) {
    take(set, &set.words->up[kLast]);
    put(kCall, dest, sum.get(), bytes, set.pe(set.me + 1));
    raise(set, &set.words->down[kLast], set.me + 1);
  }
  if (inclusive && bytes != 0) std::memcpy(dest, sum.get(), bytes);
}

}  // namespace orrery::shmem::group
