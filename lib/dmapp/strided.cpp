// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/issue.hpp"

#include <cstddef>

// Puts and gets of elements that lie apart: by strides, by an index list, over a list of PEs.
namespace orrery::dmapp {

namespace {

constexpr std::uint64_t kMostStride = std::uint64_t{1} << 43;  // elements; times 16 bytes it is all of memory

enum class Direction : std::uint8_t { put, get };

// Where element i of each side is, in elements from the begin.
struct Strides {
  std::ptrdiff_t remote = 1;
  std::ptrdiff_t local = 1;
  const std::ptrdiff_t* index = nullptr;  // instead of i * remote

  std::ptrdiff_t of(std::uint64_t i) const {
    return index != nullptr ? index[i] : static_cast<std::ptrdiff_t>(i) * remote;
  }
};

bool in_range(std::ptrdiff_t elements) {
  return elements < static_cast<std::ptrdiff_t>(kMostStride) &&
         elements > -static_cast<std::ptrdiff_t>(kMostStride);
}

const std::byte* moved(const void* base, std::ptrdiff_t elements, int shift) {
  return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uint64_t>(base) +
                                            static_cast<std::uint64_t>(elements) *
                                                (std::uint64_t{1} << shift));
}

// Elements that lie side by side on both sides go together.
dmapp_return_t transfer(Mode mode, Direction direction, const void* remote, const dmapp_seg_desc_t* segment,
                        int pe, const void* local, const Strides& strides, std::uint64_t nelems,
                        dmapp_type_t type, dmapp_syncid_handle_t* syncid) {
  const Visit visit;
  Context* const context = visit.context();
  const int shift = shift_of(type);
  if (context == nullptr || local == nullptr || shift < 0 || nelems > kMostElements ||
      (mode == Mode::syncid && syncid == nullptr) || !in_range(strides.remote) || !in_range(strides.local))
    return DMAPP_RC_INVALID_PARAM;
  Place place;
  if (const dmapp_return_t rc = context->find(segment, pe, remote, 0, &place); rc != DMAPP_RC_SUCCESS)
    return rc;
  const std::uint64_t size = std::uint64_t{1} << shift;
  // Everything is checked before anything moves. Of strides the first and the last element say it.
  const std::uint64_t step = strides.index != nullptr || nelems < 2 ? 1 : nelems - 1;
  for (std::uint64_t i = 0; i < nelems; i += step) {
    if (strides.index == nullptr && i != 0 && strides.remote != 0 && i > kMostStride)
      return DMAPP_RC_NOT_FOUND;
    const std::ptrdiff_t at = strides.index != nullptr ? strides.index[i] : 0;
    std::ptrdiff_t product = 0;
    if (strides.index == nullptr &&
        (__builtin_mul_overflow(static_cast<std::ptrdiff_t>(i), strides.remote, &product) ||
         !in_range(product)))
      return DMAPP_RC_NOT_FOUND;
    if (!in_range(at)) return DMAPP_RC_NOT_FOUND;
    const dmapp_return_t rc = context->find(
        segment, pe, moved(remote, strides.index != nullptr ? at : product, shift), size, &place);
    if (rc != DMAPP_RC_SUCCESS) return rc;
  }
  Issue issue(*context, mode);
  for (std::uint64_t i = 0; i < nelems;) {
    const std::ptrdiff_t first = strides.of(i);
    std::uint64_t run = 1;
    while (strides.local == 1 && i + run < nelems &&
           strides.of(i + run) == first + static_cast<std::ptrdiff_t>(run))
      ++run;
    const dmapp_return_t rc = context->find(segment, pe, moved(remote, first, shift), size * run, &place);
    if (rc != DMAPP_RC_SUCCESS) return rc;
    const std::byte* const here = moved(local, static_cast<std::ptrdiff_t>(i) * strides.local, shift);
    if (direction == Direction::put) {
      issue.put(place, here, size * run);
    } else {
      issue.get(place, const_cast<std::byte*>(here), size * run);  // NOLINT: the caller's target
    }
    i += run;
  }
  return issue.finish(syncid);
}

// How the blocks of the local side go with the PEs of a list.
enum class Blocks : std::uint8_t { same, one_each };

dmapp_return_t over_list(Mode mode, Direction direction, Blocks blocks, const void* remote,
                         const dmapp_seg_desc_t* segment, const dmapp_pe_t* pes, std::uint32_t count,
                         const void* local, std::uint64_t nelems, dmapp_type_t type,
                         dmapp_syncid_handle_t* syncid) {
  const Visit visit;
  Context* const context = visit.context();
  const int shift = shift_of(type);
  if (context == nullptr || pes == nullptr || local == nullptr || shift < 0 || nelems > kMostElements ||
      (mode == Mode::syncid && syncid == nullptr))
    return DMAPP_RC_INVALID_PARAM;
  const std::uint64_t bytes = nelems << shift;
  Place place;
  for (std::uint32_t i = 0; i < count; ++i) {
    const dmapp_return_t rc = context->find(segment, pes[i], remote, bytes, &place);
    if (rc != DMAPP_RC_SUCCESS) return rc;
  }
  Issue issue(*context, mode);
  for (std::uint32_t i = 0; i < count && bytes != 0; ++i) {
    (void)context->find(segment, pes[i], remote, bytes, &place);
    const std::byte* const here =
        static_cast<const std::byte*>(local) + (blocks == Blocks::one_each ? i * bytes : 0);
    if (direction == Direction::put) {
      issue.put(place, here, bytes);
    } else {
      issue.get(place, const_cast<std::byte*>(here), bytes);  // NOLINT: the caller's target
    }
  }
  return issue.finish(syncid);
}

}  // namespace
}  // namespace orrery::dmapp

using orrery::dmapp::Blocks;
using orrery::dmapp::Direction;
using orrery::dmapp::Mode;
using orrery::dmapp::over_list;
using orrery::dmapp::transfer;

extern "C" {

dmapp_return_t dmapp_iput(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                          void* source_addr, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                          dmapp_type_t type) {
  return transfer(Mode::blocking, Direction::put, target_addr, target_seg, target_pe, source_addr,
                  {.remote = tst, .local = sst}, nelems, type, nullptr);
}

dmapp_return_t dmapp_iput_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             void* source_addr, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                             dmapp_type_t type, dmapp_syncid_handle_t* syncid) {
  return transfer(Mode::syncid, Direction::put, target_addr, target_seg, target_pe, source_addr,
                  {.remote = tst, .local = sst}, nelems, type, syncid);
}

dmapp_return_t dmapp_iput_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                              void* source_addr, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                              dmapp_type_t type) {
  return transfer(Mode::implicit, Direction::put, target_addr, target_seg, target_pe, source_addr,
                  {.remote = tst, .local = sst}, nelems, type, nullptr);
}

dmapp_return_t dmapp_iget(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                          dmapp_pe_t source_pe, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                          dmapp_type_t type) {
  return transfer(Mode::blocking, Direction::get, source_addr, source_seg, source_pe, target_addr,
                  {.remote = sst, .local = tst}, nelems, type, nullptr);
}

dmapp_return_t dmapp_iget_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                             dmapp_pe_t source_pe, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                             dmapp_type_t type, dmapp_syncid_handle_t* syncid) {
  return transfer(Mode::syncid, Direction::get, source_addr, source_seg, source_pe, target_addr,
                  {.remote = sst, .local = tst}, nelems, type, syncid);
}

dmapp_return_t dmapp_iget_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                              dmapp_pe_t source_pe, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                              dmapp_type_t type) {
  return transfer(Mode::implicit, Direction::get, source_addr, source_seg, source_pe, target_addr,
                  {.remote = sst, .local = tst}, nelems, type, nullptr);
}

dmapp_return_t dmapp_ixput(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                           void* source_addr, ptrdiff_t* tidx, uint64_t nelems, dmapp_type_t type) {
  return tidx == nullptr ? DMAPP_RC_INVALID_PARAM
                         : transfer(Mode::blocking, Direction::put, target_addr, target_seg, target_pe,
                                    source_addr, {.index = tidx}, nelems, type, nullptr);
}

dmapp_return_t dmapp_ixput_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                              void* source_addr, ptrdiff_t* tidx, uint64_t nelems, dmapp_type_t type,
                              dmapp_syncid_handle_t* syncid) {
  return tidx == nullptr ? DMAPP_RC_INVALID_PARAM
                         : transfer(Mode::syncid, Direction::put, target_addr, target_seg, target_pe,
                                    source_addr, {.index = tidx}, nelems, type, syncid);
}

dmapp_return_t dmapp_ixput_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                               void* source_addr, ptrdiff_t* tidx, uint64_t nelems, dmapp_type_t type) {
  return tidx == nullptr ? DMAPP_RC_INVALID_PARAM
                         : transfer(Mode::implicit, Direction::put, target_addr, target_seg, target_pe,
                                    source_addr, {.index = tidx}, nelems, type, nullptr);
}

dmapp_return_t dmapp_ixget(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                           dmapp_pe_t source_pe, ptrdiff_t* sidx, uint64_t nelems, dmapp_type_t type) {
  return sidx == nullptr ? DMAPP_RC_INVALID_PARAM
                         : transfer(Mode::blocking, Direction::get, source_addr, source_seg, source_pe,
                                    target_addr, {.index = sidx}, nelems, type, nullptr);
}

dmapp_return_t dmapp_ixget_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                              dmapp_pe_t source_pe, ptrdiff_t* sidx, uint64_t nelems, dmapp_type_t type,
                              dmapp_syncid_handle_t* syncid) {
  return sidx == nullptr ? DMAPP_RC_INVALID_PARAM
                         : transfer(Mode::syncid, Direction::get, source_addr, source_seg, source_pe,
                                    target_addr, {.index = sidx}, nelems, type, syncid);
}

dmapp_return_t dmapp_ixget_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                               dmapp_pe_t source_pe, ptrdiff_t* sidx, uint64_t nelems, dmapp_type_t type) {
  return sidx == nullptr ? DMAPP_RC_INVALID_PARAM
                         : transfer(Mode::implicit, Direction::get, source_addr, source_seg, source_pe,
                                    target_addr, {.index = sidx}, nelems, type, nullptr);
}

dmapp_return_t dmapp_put_ixpe(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t* target_pe_list,
                              uint32_t num_target_pes, void* source_addr, uint64_t nelems,
                              dmapp_type_t type) {
  return over_list(Mode::blocking, Direction::put, Blocks::same, target_addr, target_seg, target_pe_list,
                   num_target_pes, source_addr, nelems, type, nullptr);
}

dmapp_return_t dmapp_put_ixpe_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t* target_pe_list,
                                 uint32_t num_target_pes, void* source_addr, uint64_t nelems,
                                 dmapp_type_t type, dmapp_syncid_handle_t* syncid) {
  return over_list(Mode::syncid, Direction::put, Blocks::same, target_addr, target_seg, target_pe_list,
                   num_target_pes, source_addr, nelems, type, syncid);
}

dmapp_return_t dmapp_put_ixpe_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t* target_pe_list,
                                  uint32_t num_target_pes, void* source_addr, uint64_t nelems,
                                  dmapp_type_t type) {
  return over_list(Mode::implicit, Direction::put, Blocks::same, target_addr, target_seg, target_pe_list,
                   num_target_pes, source_addr, nelems, type, nullptr);
}

dmapp_return_t dmapp_scatter_ixpe(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t* target_pe_list,
                                  uint32_t num_target_pes, void* source_addr, uint64_t nelems,
                                  dmapp_type_t type) {
  return over_list(Mode::blocking, Direction::put, Blocks::one_each, target_addr, target_seg, target_pe_list,
                   num_target_pes, source_addr, nelems, type, nullptr);
}

dmapp_return_t dmapp_scatter_ixpe_nb(void* target_addr, dmapp_seg_desc_t* target_seg,
                                     dmapp_pe_t* target_pe_list, uint32_t num_target_pes, void* source_addr,
                                     uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t* syncid) {
  return over_list(Mode::syncid, Direction::put, Blocks::one_each, target_addr, target_seg, target_pe_list,
                   num_target_pes, source_addr, nelems, type, syncid);
}

dmapp_return_t dmapp_scatter_ixpe_nbi(void* target_addr, dmapp_seg_desc_t* target_seg,
                                      dmapp_pe_t* target_pe_list, uint32_t num_target_pes, void* source_addr,
                                      uint64_t nelems, dmapp_type_t type) {
  return over_list(Mode::implicit, Direction::put, Blocks::one_each, target_addr, target_seg, target_pe_list,
                   num_target_pes, source_addr, nelems, type, nullptr);
}

dmapp_return_t dmapp_gather_ixpe(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t* source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                 dmapp_type_t type) {
  return over_list(Mode::blocking, Direction::get, Blocks::one_each, source_addr, source_seg, source_pe_list,
                   num_source_pes, target_addr, nelems, type, nullptr);
}

dmapp_return_t dmapp_gather_ixpe_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                    dmapp_pe_t* source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                    dmapp_type_t type, dmapp_syncid_handle_t* syncid) {
  return over_list(Mode::syncid, Direction::get, Blocks::one_each, source_addr, source_seg, source_pe_list,
                   num_source_pes, target_addr, nelems, type, syncid);
}

dmapp_return_t dmapp_gather_ixpe_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                     dmapp_pe_t* source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                     dmapp_type_t type) {
  return over_list(Mode::implicit, Direction::get, Blocks::one_each, source_addr, source_seg, source_pe_list,
                   num_source_pes, target_addr, nelems, type, nullptr);
}

}  // extern "C"
