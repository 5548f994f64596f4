// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Match entries and memory descriptors.
#include "emu/base/check.hpp"
#include "lib/portals3/process.hpp"

#include <cstdint>

namespace orrery::portals3 {

static_assert(PTL_MD_OP_PUT == classic::kAllowPut && PTL_MD_OP_GET == classic::kAllowGet &&
              PTL_MD_MANAGE_REMOTE == classic::kManageRemote && PTL_MD_TRUNCATE == classic::kTruncate &&
              PTL_MD_ACK_DISABLE == classic::kNoAck && PTL_MD_IOVEC == classic::kPieces &&
              PTL_MD_MAX_SIZE == classic::kMaxSize && PTL_MD_EVENT_START_DISABLE == classic::kNoStart &&
              PTL_MD_EVENT_END_DISABLE == classic::kNoEnd);
static_assert(PTL_NID_ANY == match::kAny && PTL_PID_ANY == match::kAny);

std::uint32_t find_entry(const match::View& view, ptl_handle_me_t handle) {
  const Handle parts = open_handle(handle);
  if (!parts.is(Kind::me) || parts.index == 0 || parts.index >= view.header().entry_pool.fresh) return 0;
  const match::Entry& entry = view.entry(parts.index);
  return entry.state == match::kLinked && (entry.generation & 0xfff) == parts.generation ? parts.index : 0;
}

std::uint32_t find_descriptor(const match::View& view, ptl_handle_md_t handle) {
  const Handle parts = open_handle(handle);
  if (!parts.is(Kind::md) || parts.index == 0 || parts.index >= view.header().entry_pool.fresh) return 0;
  const match::Descriptor& descriptor = view.descriptor(parts.index);
  return descriptor.attached != 0 && (descriptor.generation & 0xfff) == parts.generation ? parts.index : 0;
}

namespace {

constexpr unsigned int kAllOptions = 0x1ff;

// What the program says of its memory. PTL_OK, PTL_MD_ILLEGAL, PTL_EQ_INVALID.
int read_memory(const ptl_md_t& md, classic::Memory* memory) {
  if ((md.options & ~kAllOptions) != 0 || md.threshold < PTL_MD_THRESH_INF ||
      (md.start == nullptr && md.length != 0))
    return PTL_MD_ILLEGAL;
  if (md.eq_handle != PTL_EQ_NONE) {
    memory->queue = find_queue(md.eq_handle);
    if (memory->queue == 0) return PTL_EQ_INVALID;
  }
  memory->queue_handle = md.eq_handle;
  memory->start = reinterpret_cast<std::uint64_t>(md.start);
  memory->length = memory->given_length = md.length;
  memory->threshold = md.threshold;
  memory->max_size = md.max_size;
  memory->options = md.options;
  // An initiator that says where its messages go also sees to the room.
  if ((md.options & PTL_MD_MANAGE_REMOTE) != 0) memory->options &= ~PTL_MD_MAX_SIZE;
  memory->user = reinterpret_cast<std::uint64_t>(md.user_ptr);
  if ((md.options & PTL_MD_IOVEC) == 0) return PTL_OK;
  if (md.length > static_cast<ptl_size_t>(Process::get().limits.max_md_iovecs)) return PTL_MD_ILLEGAL;
  const auto* const pieces = static_cast<const ptl_md_iovec_t*>(md.start);
  memory->length = 0;
  memory->pieces = static_cast<std::uint32_t>(md.length);
  for (ptl_size_t i = 0; i < md.length; ++i) {
    if (pieces[i].iov_len > UINT64_MAX - memory->length) return PTL_MD_ILLEGAL;
    memory->length += pieces[i].iov_len;
  }
  return PTL_OK;
}

void give_memory(const classic::Memory& memory, ptl_md_t* md) {
  md->start = reinterpret_cast<void*>(memory.start);
  md->length = memory.given_length;
  md->threshold = memory.threshold;
  md->max_size = memory.max_size;
  md->options = memory.options;
  md->user_ptr = reinterpret_cast<void*>(memory.user);
  md->eq_handle = memory.queue_handle;
}

// The index of the new entry, PTL_OK; else what the interface says.
int insert(match::Session& session, const classic::NewMatch& what, std::uint32_t* entry) {
  const auto inserted = classic::insert(session, what);
  switch (inserted.code()) {
    case Errc::ok:
      *entry = inserted.value();
      return PTL_OK;
    case Errc::invalid_param:
      return PTL_PT_INDEX_INVALID;
    case Errc::size:
      return PTL_ME_LIST_TOO_LONG;
    default:
      return PTL_NO_SPACE;
  }
}

int insert(const classic::NewMatch& what, ptl_handle_me_t base, ptl_handle_me_t* handle) {
  if (handle == nullptr) return PTL_SEGV;
  match::Session session(Process::get().own());
  const match::View& view = session.view();
  classic::NewMatch where = what;
  if (base != PTL_INVALID_HANDLE) {
    where.base = find_entry(view, base);
    if (where.base == 0) return PTL_ME_INVALID;
    where.portal = view.entry(where.base).portal;
  }
  std::uint32_t entry = 0;
  const int code = insert(session, where, &entry);
  if (code == PTL_OK) *handle = make_handle(Kind::me, view.entry(entry).generation, entry);
  return code;
}

bool is_position(ptl_ins_pos_t position) { return position == PTL_INS_BEFORE || position == PTL_INS_AFTER; }
bool is_unlink(ptl_unlink_t op) { return op == PTL_RETAIN || op == PTL_UNLINK; }

}  // namespace

}  // namespace orrery::portals3

using namespace orrery::portals3;
using orrery::Errc;

extern "C" {

int PtlMEAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_process_id_t match_id,
                ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op,
                ptl_ins_pos_t position, ptl_handle_me_t* me_handle) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (!is_position(position) || !is_unlink(unlink_op)) return PTL_FAIL;
  return insert({.interface = kInterface,
                 .portal = pt_index,
                 .source = {match_id.nid, match_id.pid},
                 .match_bits = match_bits,
                 .ignore_bits = ignore_bits,
                 .unlinks = unlink_op == PTL_UNLINK,
                 .before = position == PTL_INS_BEFORE},
                PTL_INVALID_HANDLE, me_handle);
}

int PtlMEAttachAny(ptl_handle_ni_t ni_handle, ptl_pt_index_t* pt_index, ptl_process_id_t match_id,
                   ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op,
                   ptl_handle_me_t* me_handle) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (pt_index == nullptr || me_handle == nullptr) return PTL_SEGV;
  if (!is_unlink(unlink_op)) return PTL_FAIL;
  const match::View view = Process::get().own();
  const std::uint32_t portals = view.interface(kInterface).portals;
  for (std::uint32_t i = 0; i < portals; ++i) {
    if (view.portal(kInterface, i).count[match::kPriority] != 0) continue;
    const int code =
        PtlMEAttach(ni_handle, i, match_id, match_bits, ignore_bits, unlink_op, PTL_INS_AFTER, me_handle);
    if (code == PTL_OK) *pt_index = i;
    return code;
  }
  return PTL_PT_FULL;
}

int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op, ptl_ins_pos_t position,
                ptl_handle_me_t* me_handle) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (!Process::get().open || base == PTL_INVALID_HANDLE) return PTL_ME_INVALID;
  if (!is_position(position) || !is_unlink(unlink_op)) return PTL_FAIL;
  return insert({.interface = kInterface,
                 .source = {match_id.nid, match_id.pid},
                 .match_bits = match_bits,
                 .ignore_bits = ignore_bits,
                 .unlinks = unlink_op == PTL_UNLINK,
                 .before = position == PTL_INS_BEFORE},
                base, me_handle);
}

int PtlMEUnlink(ptl_handle_me_t me_handle) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (!Process::get().open) return PTL_ME_INVALID;
  match::Session session(Process::get().own());
  const std::uint32_t index = find_entry(session.view(), me_handle);
  if (index == 0) return PTL_ME_INVALID;
  return classic::remove(session, index).ok() ? PTL_OK : PTL_ME_IN_USE;
}

int PtlMDAttach(ptl_handle_me_t me_handle, ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_md_t* md_handle) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (!Process::get().open) return PTL_ME_INVALID;
  if (md_handle == nullptr) return PTL_SEGV;
  if (!is_unlink(unlink_op)) return PTL_FAIL;
  classic::Memory memory;
  const int read = read_memory(md, &memory);
  match::Session session(Process::get().own());
  const match::View& view = session.view();
  const std::uint32_t index = find_entry(view, me_handle);
  if (index == 0) return PTL_ME_INVALID;
  if (read != PTL_OK) return read;
  if (!classic::attach(session, index, memory, unlink_op == PTL_UNLINK).ok()) return PTL_ME_IN_USE;
  *md_handle = make_handle(Kind::md, view.descriptor(index).generation, index);
  return PTL_OK;
}

int PtlMDBind(ptl_handle_ni_t ni_handle, ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_md_t* md_handle) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (md_handle == nullptr) return PTL_SEGV;
  if (!is_unlink(unlink_op)) return PTL_FAIL;
  classic::Memory memory;
  const int read = read_memory(md, &memory);
  if (read != PTL_OK) return read;
  match::Session session(Process::get().own());
  const auto bound = classic::bind(session, kInterface, memory, unlink_op == PTL_UNLINK);
  if (!bound.ok()) return PTL_NO_SPACE;
  *md_handle = make_handle(Kind::md, session.view().descriptor(bound.value()).generation, bound.value());
  Process::get().sources.keep(*md_handle, memory);
  return PTL_OK;
}

int PtlMEMDPost(ptl_handle_ni_t ni_handle, ptl_handle_me_t base, ptl_process_id_t match_id,
                ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink_op,
                ptl_ins_pos_t position, ptl_md_t md, ptl_unlink_t md_unlink_op, ptl_handle_me_t* me_handle,
                ptl_handle_md_t* md_handle, ptl_handle_eq_t test_queue) {
  ORRERY_PORTALS3_NEEDS_NI(ni_handle);
  if (me_handle == nullptr || md_handle == nullptr) return PTL_SEGV;
  if (!is_position(position) || !is_unlink(me_unlink_op) || !is_unlink(md_unlink_op)) return PTL_FAIL;
  classic::Memory memory;
  const int read = read_memory(md, &memory);
  const std::uint32_t queue = test_queue == PTL_EQ_NONE ? 0 : find_queue(test_queue);
  match::Session session(Process::get().own());
  const match::View& view = session.view();
  const std::uint32_t next = find_entry(view, base);
  if (next == 0) return PTL_ME_INVALID;
  if (test_queue != PTL_EQ_NONE && queue == 0) return PTL_EQ_INVALID;
  if (read != PTL_OK) return read;
  if (queue != 0 && !classic::is_quiet(session, queue)) return PTL_MD_NO_UPDATE;
  std::uint32_t entry = 0;
  const int code = insert(session,
                          {.interface = kInterface,
                           .portal = view.entry(next).portal,
                           .source = {match_id.nid, match_id.pid},
                           .match_bits = match_bits,
                           .ignore_bits = ignore_bits,
                           .unlinks = me_unlink_op == PTL_UNLINK,
                           .base = next,
                           .before = position == PTL_INS_BEFORE},
                          &entry);
  if (code != PTL_OK) return code;
  // A new entry has no memory: this cannot fail.
  ORRERY_CHECK(classic::attach(session, entry, memory, md_unlink_op == PTL_UNLINK).ok(),
               "a new entry has memory");
  *me_handle = make_handle(Kind::me, view.entry(entry).generation, entry);
  *md_handle = make_handle(Kind::md, view.descriptor(entry).generation, entry);
  return PTL_OK;
}

int PtlMDUnlink(ptl_handle_md_t md_handle) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (!Process::get().open) return PTL_MD_INVALID;
  match::Session session(Process::get().own());
  const std::uint32_t index = find_descriptor(session.view(), md_handle);
  if (index == 0) return PTL_MD_INVALID;
  if (!classic::detach(session, index).ok()) return PTL_MD_IN_USE;
  Process::get().sources.forget(md_handle);
  return PTL_OK;
}

int PtlMDUpdate(ptl_handle_md_t md_handle, ptl_md_t* old_md, ptl_md_t* new_md, ptl_handle_eq_t test_queue) {
  ORRERY_PORTALS3_NEEDS_INIT;
  if (!Process::get().open) return PTL_MD_INVALID;
  classic::Memory memory;
  const int read = new_md != nullptr ? read_memory(*new_md, &memory) : PTL_OK;
  const std::uint32_t queue = test_queue == PTL_EQ_NONE ? 0 : find_queue(test_queue);
  match::Session session(Process::get().own());
  const match::View& view = session.view();
  const std::uint32_t index = find_descriptor(view, md_handle);
  if (index == 0) return PTL_MD_INVALID;
  if (test_queue != PTL_EQ_NONE && queue == 0) return PTL_EQ_INVALID;
  if (read != PTL_OK) return read;
  if (old_md != nullptr) give_memory(classic::memory_of(view, index), old_md);
  if (new_md == nullptr) return PTL_OK;
  if (queue != 0 && !classic::is_quiet(session, queue)) return PTL_MD_NO_UPDATE;
  if (!classic::update(session, index, memory).ok()) return PTL_MD_NO_UPDATE;
  if (view.descriptor(index).bound != 0) Process::get().sources.keep(md_handle, memory);
  return PTL_OK;
}

}  // extern "C"
