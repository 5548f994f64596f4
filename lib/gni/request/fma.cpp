// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "include/orrery/fma.h"

#include "emu/nic/initiator/fma_window.hpp"
#include "lib/gni/domain/mem_handle.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/status.hpp"

#include <algorithm>

// FMA windows for programs: our own interface beside the machines'.
namespace orrery::gni {

namespace {

constexpr bool same(int ours, gni_return_t theirs) { return ours == static_cast<int>(theirs); }
static_assert(same(ORRERY_FMA_SUCCESS, GNI_RC_SUCCESS) && same(ORRERY_FMA_NOT_DONE, GNI_RC_NOT_DONE) &&
              same(ORRERY_FMA_INVALID_PARAM, GNI_RC_INVALID_PARAM) &&
              same(ORRERY_FMA_ERROR_RESOURCE, GNI_RC_ERROR_RESOURCE) &&
              same(ORRERY_FMA_ALIGNMENT_ERROR, GNI_RC_ALIGNMENT_ERROR) &&
              same(ORRERY_FMA_INVALID_STATE, GNI_RC_INVALID_STATE) &&
              same(ORRERY_FMA_TRANSACTION_ERROR, GNI_RC_TRANSACTION_ERROR) &&
              same(ORRERY_FMA_ILLEGAL_OP, GNI_RC_ILLEGAL_OP) &&
              same(ORRERY_FMA_ERROR_NOMEM, GNI_RC_ERROR_NOMEM));
static_assert(ORRERY_FMA_PE_BITS == nic::kPeBits && ORRERY_FMA_OFFSET_BITS == nic::kOffsetBits);

// What an opaque window is.
nic::FmaWindow* window_of(orrery_fma_window_t* window) { return reinterpret_cast<nic::FmaWindow*>(window); }

// Reaching a PE may fail as an operation does, and then the call does.
int of_map(Errc code) {
  switch (code) {
    case Errc::invalid_handle:
    case Errc::permission:
    case Errc::bounds:
      return ORRERY_FMA_TRANSACTION_ERROR;
    default:
      return return_of(code);
  }
}

}  // namespace

}  // namespace orrery::gni

using orrery::Errc;
using orrery::gni::Attachment;
using orrery::gni::find;
using orrery::gni::return_of;
using orrery::gni::window_of;
using orrery::nic::FmaWindow;

extern "C" {

int orrery_fma_open(void* nic, const orrery_fma_descriptor_t* descriptor, const orrery_fma_place_t* places,
                    uint32_t count, orrery_fma_window_t** window) {
  Attachment* const attachment = find(static_cast<gni_nic_handle_t>(nic));
  if (attachment == nullptr || descriptor == nullptr || places == nullptr || window == nullptr ||
      count == 0 || count > 1u << ORRERY_FMA_PE_BITS ||
      (descriptor->ntt != nullptr && descriptor->ntt_entries == 0))
    return ORRERY_FMA_INVALID_PARAM;
  std::vector<orrery::nic::WindowPlace> list;
  list.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const gni_mem_handle_t handle{places[i].handle[0], places[i].handle[1]};
    list.push_back({places[i].nic_address, orrery::gni::mem_handle::key_of(handle), places[i].address});
  }
  const orrery::nic::NodeTranslation translation{{descriptor->ntt, descriptor->ntt_entries},
                                                 descriptor->ntt_group};
  auto opened = FmaWindow::open(*attachment->nic, *attachment->port,
                                {.base_pe = descriptor->base_pe,
                                 .base_offset = descriptor->base_offset,
                                 .pe_shift = descriptor->pe_shift,
                                 .pe_bits = descriptor->pe_bits},
                                list, descriptor->ntt == nullptr ? nullptr : &translation);
  if (!opened.ok()) return return_of(opened.code());
  opened.value()->context = attachment;
  attachment->windows.push_back(std::move(opened).value());
  *window = reinterpret_cast<orrery_fma_window_t*>(attachment->windows.back().get());
  return ORRERY_FMA_SUCCESS;
}

int orrery_fma_close(orrery_fma_window_t* window) {
  if (window == nullptr) return ORRERY_FMA_INVALID_PARAM;
  auto* const attachment = static_cast<Attachment*>(window_of(window)->context);
  attachment->statistics.add(orrery::gni::kFmaLaunchCount, window_of(window)->launches());
  std::erase_if(attachment->windows, [&](const auto& w) { return w.get() == window_of(window); });
  return ORRERY_FMA_SUCCESS;
}

int orrery_fma_begin(orrery_fma_window_t* window) {
  if (window == nullptr) return ORRERY_FMA_INVALID_PARAM;
  return return_of(window_of(window)->begin());
}

int orrery_fma_end(orrery_fma_window_t* window, uint32_t* name) {
  if (window == nullptr || name == nullptr) return ORRERY_FMA_INVALID_PARAM;
  const auto ended = window_of(window)->end();
  if (!ended.ok()) return return_of(ended.code());
  *name = ended.value();
  return ORRERY_FMA_SUCCESS;
}

int orrery_fma_test(orrery_fma_window_t* window, uint32_t name) {
  if (window == nullptr) return ORRERY_FMA_INVALID_PARAM;
  Errc status = Errc::ok;
  const Errc found = window_of(window)->test(name, &status);
  if (found != Errc::ok) return return_of(found);
  return status == Errc::ok ? ORRERY_FMA_SUCCESS : ORRERY_FMA_TRANSACTION_ERROR;
}

int orrery_fma_store(orrery_fma_window_t* window, uint64_t offset, const void* from, uint64_t bytes) {
  if (window == nullptr || (from == nullptr && bytes != 0)) [[unlikely]]
    return ORRERY_FMA_INVALID_PARAM;
  const Errc stored = window_of(window)->store(offset, static_cast<const std::byte*>(from), bytes);
  if (stored == Errc::ok) [[likely]]
    return ORRERY_FMA_SUCCESS;
  return return_of(stored);
}

int orrery_fma_launch(orrery_fma_window_t* window, orrery_fma_word_t word) {
  if (window == nullptr) [[unlikely]]
    return ORRERY_FMA_INVALID_PARAM;
  const Errc launched = window_of(window)->launch(word.where, word.data);
  if (launched == Errc::ok) [[likely]] {
    window_of(window)->count_launch();
    return ORRERY_FMA_SUCCESS;
  }
  return return_of(launched);
}

int orrery_fma_map(orrery_fma_window_t* window, void** base, uint64_t* bytes) {
  if (window == nullptr || base == nullptr || bytes == nullptr) return ORRERY_FMA_INVALID_PARAM;
  const auto mapped = window_of(window)->map();
  if (!mapped.ok()) return orrery::gni::of_map(mapped.code());
  *base = mapped.value().data();
  *bytes = mapped.value().size();
  return ORRERY_FMA_SUCCESS;
}

}  // extern "C"
