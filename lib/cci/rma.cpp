// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/wait.hpp"
#include "emu/memory/guarded.hpp"
#include "emu/memory/lent_space.hpp"
#include "lib/cci/endpoint.hpp"
#include "lib/cci/mapping.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// Remote memory access. Between processes of one user and host the initiator copies, with the kernel's help;
// elsewhere frames carry the data, and the owner's polls or its thread copy.
//
// A handle: stuff[0] the endpoint's nonce, [1] generation << 32 | index of the registration, [2] start,
// [3] length. What a peer does is checked against the registration itself, whatever the handle says.
namespace orrery::cci {

namespace {

constexpr std::uint64_t kChunk = 64 * 1024;
constexpr std::uint32_t kHandleChunk = 256;
constexpr std::uint64_t kRead = 1;
constexpr std::uint64_t kWrite = 2;

// Copies for a peer: false where the owner of registered memory has unmapped or protected it. By the kernel,
// but to memory that may be moved at this moment, where the kernel would fail instead of waiting.
bool copy_checked(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (memory::space_exists()) {
    struct Copy {
      std::byte* to;
      const std::byte* from;
      std::size_t bytes;
    } copy{to, from, bytes};
    return memory::run_guarded(
        [](void* argument) {
          const auto& all = *static_cast<const Copy*>(argument);
          std::memcpy(all.to, all.from, all.bytes);
        },
        &copy);
  }
  while (bytes != 0) {
    const iovec source{const_cast<std::byte*>(from), bytes};
    const iovec target{to, bytes};
    // Not by libc's function: a sanitizer's would look at the bytes itself.
    const long copied = ::syscall(SYS_process_vm_writev, ::getpid(), &source, 1ul, &target, 1ul, 0ul);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && (errno == ENOSYS || errno == EPERM)) {  // a container's rules
      std::memcpy(to, from, bytes);
      return true;
    }
    if (copied <= 0) return false;
    to += copied;
    from += copied;
    bytes -= static_cast<std::size_t>(copied);
  }
  return true;
}

constexpr std::uint64_t registered(std::uint32_t generation, int flags) {
  return static_cast<std::uint64_t>(generation) << 32 | ((flags & CCI_FLAG_READ) != 0 ? kRead : 0) |
         ((flags & CCI_FLAG_WRITE) != 0 ? kWrite : 0);
}
constexpr std::uint32_t index_of(std::uint64_t name) { return static_cast<std::uint32_t>(name); }
constexpr std::uint32_t generation_of(std::uint64_t name) { return static_cast<std::uint32_t>(name >> 32); }

// Whether `control` is the registration of that generation with that right, and the range lies in it.
bool allows(std::uint64_t control, std::uint64_t name, bool write, std::uint64_t length_of,
            std::uint64_t offset, std::uint64_t length) {
  return (generation_of(name) & 1) != 0 && static_cast<std::uint32_t>(control >> 32) == generation_of(name) &&
         (control & (write ? kWrite : kRead)) != 0 && offset <= length_of && length <= length_of - offset;
}

}  // namespace

struct cci_rma_handle& Endpoint::handle_at(std::uint32_t index) const {
  return handles_[index / kHandleChunk][index % kHandleChunk];
}

int Endpoint::register_memory(void* start, std::uint64_t length, int flags, cci_rma_handle_t** handle) {
  const auto begin = reinterpret_cast<std::uintptr_t>(start);
  int status = CCI_SUCCESS;
  mapping::look_while({begin, begin + length},
                      [&](bool in_file) { status = register_now(start, length, flags, in_file, handle); });
  return status;
}

int Endpoint::register_now(void* start, std::uint64_t length, int flags, bool in_file,
                           cci_rma_handle_t** handle) {
  const std::lock_guard lock(lock_);
  std::uint32_t index;
  if (!free_registrations_.empty()) {
    index = free_registrations_.back();
    free_registrations_.pop_back();
  } else if (fresh_registrations_ < kMaxRegistrations) {
    index = fresh_registrations_++;
    if (index % kHandleChunk == 0)
      handles_.push_back(std::make_unique<struct cci_rma_handle[]>(kHandleChunk));
  } else {
    return CCI_ENOMEM;
  }
  Registration& entry = segment_->registration(index);
  const std::uint32_t generation =
      static_cast<std::uint32_t>(entry.control.load(std::memory_order_relaxed) >> 32) + 1;
  entry.start.store(reinterpret_cast<std::uintptr_t>(start), std::memory_order_relaxed);
  entry.length.store(length, std::memory_order_relaxed);
  entry.touched.store(0, std::memory_order_relaxed);
  const auto begin = reinterpret_cast<std::uintptr_t>(start);
  const std::uint64_t way = in_file ? kMapped : mapping::is_moving({begin, begin + length}) ? kMoving : 0;
  // Release: a peer that sees the generation sees the range.
  entry.control.store(registered(generation, flags) | way, std::memory_order_release);
  handle_at(index) = {{nonce_, static_cast<std::uint64_t>(generation) << 32 | index,
                       reinterpret_cast<std::uintptr_t>(start), length}};
  *handle = &handle_at(index);
  return CCI_SUCCESS;
}

int Endpoint::deregister_memory(const cci_rma_handle* handle) {
  memory::Range range;
  bool stalled = false;
  const int status = deregister_now(handle, &range, &stalled);
  if (status == CCI_SUCCESS) mapping::end(range, stalled);
  return status;
}

int Endpoint::deregister_now(const cci_rma_handle* handle, memory::Range* range, bool* stalled) {
  const std::lock_guard lock(lock_);
  // A handle is known by its address: what a stale one points to may not be read.
  for (std::uint32_t chunk = 0; chunk < handles_.size(); ++chunk) {
    const std::less<const cci_rma_handle*> before;
    const cci_rma_handle* const first = handles_[chunk].get();
    if (before(handle, first) || !before(handle, first + kHandleChunk)) continue;
    const std::uint32_t index = chunk * kHandleChunk + static_cast<std::uint32_t>(handle - first);
    if (&handle_at(index) != handle || handle->stuff[1] == 0) return CCI_EINVAL;
    *range = {handle_at(index).stuff[2], handle_at(index).stuff[2] + handle_at(index).stuff[3]};
    *stalled = !end_registration(index);
    handle_at(index) = {};
    free_registrations_.push_back(index);
    return CCI_SUCCESS;
  }
  return CCI_EINVAL;
}

// Until no peer copies from or to a registration that has just ended. False: one is stopped. By the kernel it
// does not make a copy that has not begun (CrossAttach::write_while); by the memory file it may.
bool Endpoint::wait_for_peers(std::uint32_t registration) {
  const std::int64_t limit = monotonic_ns() + 100'000'000;
  while (is_touched(registration)) {
    if (monotonic_ns() >= limit) return false;
    yield_cpu();
  }
  return true;
}

// Whether a peer copies from or to a registration at this moment.
bool Endpoint::is_touched(std::uint32_t registration) const {
  return std::any_of(connections_.begin(), connections_.end(), [&](const auto& connection) {
    // One that this side has ended may have a peer that does not know it yet.
    return connection->shared && connection->in != nullptr &&
           (connection->state == ConnectionState::open || connection->state == ConnectionState::ended) &&
           connection->in->touching.load(std::memory_order_seq_cst) == registration + 1;
  });
}

// All of them, with the endpoint: a peer that does not know it yet has the segment still.
void Endpoint::end_registrations() {
  for (std::uint32_t index = 0; index < fresh_registrations_; ++index) {
    const struct cci_rma_handle handle = handle_at(index);
    if (handle.stuff[1] != 0)
      mapping::end({handle.stuff[2], handle.stuff[2] + handle.stuff[3]}, !end_registration(index));
  }
}

// Ends it for peers: none of them copies when this has returned. False: but one that is stopped, and may
// write by the memory file.
bool Endpoint::end_registration(std::uint32_t index) {
  Registration& entry = segment_->registration(index);
  const std::uint64_t control = entry.control.load(std::memory_order_relaxed);
  entry.control.store(((control >> 32) + 1) << 32, std::memory_order_seq_cst);
  const bool used = entry.touched.load(std::memory_order_seq_cst) != 0;
  return !used || wait_for_peers(index) || (control & kMapped) == 0;
}

int Endpoint::rma(Connection* connection, const void* message, std::uint32_t message_bytes,
                  const cci_rma_handle& local, std::uint64_t local_offset, const cci_rma_handle& remote,
                  std::uint64_t remote_offset, std::uint64_t length, void* context, int flags) {
  std::unique_lock lock(lock_);
  if (connection->state != ConnectionState::open) return refusal(*connection);
  if (message_bytes > connection->shown.max_send_size) return CCI_EMSGSIZE;
  const std::uint32_t index = index_of(local.stuff[1]);
  if (local.stuff[0] != nonce_ || index >= fresh_registrations_) return CCI_EINVAL;
  const Registration& entry = segment_->registration(index);
  const std::uint64_t own_length = entry.length.load(std::memory_order_relaxed);
  if ((generation_of(local.stuff[1]) & 1) == 0 ||
      entry.control.load(std::memory_order_relaxed) >> 32 != generation_of(local.stuff[1]) ||
      local_offset > own_length || length > own_length - local_offset)
    return CCI_EINVAL;
  if (sends_out_ >= send_limit_) return CCI_ENOBUFS;
  if (flies(*connection)) {
    if (const int status = look_at_peer(connection); status != CCI_SUCCESS) return status;
  }
  Op* const op = new_op(connection, context, flags);
  op->kind = (flags & CCI_FLAG_WRITE) != 0 ? OpKind::write : OpKind::read;
  op->local = reinterpret_cast<std::byte*>(entry.start.load(std::memory_order_relaxed)) + local_offset;
  op->remote = remote.stuff[1];
  op->remote_offset = remote_offset;
  op->length = length;
  op->message_bytes = message_bytes;
  if (message_bytes != 0) {
    if ((flags & CCI_FLAG_NO_COPY) == 0) {
      const auto* const bytes = static_cast<const std::byte*>(message);
      op->copy.assign(bytes, bytes + message_bytes);
      op->message = op->copy.data();
    } else {
      op->message = static_cast<const std::byte*>(message);
    }
  }
  // A handle of another endpoint than the connection's, whatever it says.
  if (remote.stuff[0] != connection->theirs.endpoint) op->remote = 0;
  if (flies(*connection)) {
    lock.unlock();
    fly(connection, op);
    lock.lock();
    return post(op, flags);
  }
  connection->queue.push(op);
  pump(connection);
  if (connection->queue.head != nullptr) block(connection);
  return post(op, flags);
}

// By the kernel, into or out of the peer's memory.
static Errc attached_copy(const PeerSegment& peer, const Registration& entry, std::uint64_t control,
                          const Op& op, std::uint64_t target) {
  if (op.kind == OpKind::write)
    return peer.attach.write_while(entry.control, control, target, op.local, op.length).code();
  return peer.attach.read(op.local, target, op.length).code();
}

// Copies at once where the peer's memory can be reached. Outcomes: ok; unsupported: by frames;
// invalid_handle; unreachable.
Errc Endpoint::copy_directly(Connection* connection, Op* op) {
  if (!connection->shared) return Errc::unsupported;
  const bool write = op->kind == OpKind::write;
  const bool attaches = connection->peer->attaches && (!write || memory::CrossAttach::can_write());
  const std::uint32_t index = index_of(op->remote);
  if (index >= kMaxRegistrations) return Errc::invalid_handle;
  Registration& entry = connection->peer->segment->registration(index);
  bool by_file = (entry.control.load(std::memory_order_relaxed) & kMapped) != 0;
  // Counted before the copy: the owner waits for none where nothing was counted.
  const std::uint64_t count = entry.touched.fetch_add(1, std::memory_order_relaxed) + 1;
  connection->out->touching.store(index + 1, std::memory_order_seq_cst);
  const std::uint64_t control = entry.control.load(std::memory_order_seq_cst);
  Errc done = Errc::invalid_handle;
  if (allows(control, op->remote, write, entry.length.load(std::memory_order_relaxed), op->remote_offset,
             op->length)) {
    const std::uint64_t target = entry.start.load(std::memory_order_relaxed) + op->remote_offset;
    done = Errc::unsupported;
    if ((control & kMapped) != 0) done = copy_mapped(connection, *op, target);
    by_file = done != Errc::unsupported;
    if (!by_file && attaches && (control & kMoving) == 0)
      done = attached_copy(*connection->peer, entry, control, *op, target);
  }
  connection->out->touching.store(0, std::memory_order_release);
  if (!by_file) ask_to_map(connection, count, op->remote);
  if (done == Errc::not_done || done == Errc::permission || done == Errc::unsupported)
    return Errc::unsupported;
  return done == Errc::bounds ? Errc::invalid_handle : done;
}

// Moves the operation at the head of a queue on. True: the data is in place, or the operation is gone. By
// frames one operation of a connection is under way at a time, so each is a fence for the next.
bool Endpoint::pump_rma(Connection* connection, Op* op) {
  const auto end_in = [&](cci_status status) {
    connection->queue.pop();
    complete(op, status);
    return true;
  };
  if (!op->started) {
    const Errc copied = copy_directly(connection, op);
    if (copied == Errc::ok) {
      op->data_done = true;
      return true;
    }
    if (copied == Errc::unreachable) return end_in(CCI_ERR_DISCONNECTED);
    if (copied != Errc::unsupported) return end_in(CCI_ERR_RMA_HANDLE);
    op->started = true;
    op->number = ++connection->operations;
    if (op->kind == OpKind::read) {
      const iovec piece{&op->length, sizeof op->length};
      send_frame(connection, FrameKind::rma_read, 0, op->number, op->remote, op->remote_offset, &piece, 1);
      return false;
    }
  }
  while (op->kind == OpKind::write && op->moved < op->length && connection->outgoing.size() < 4 * kChunk &&
         connection->state == ConnectionState::open) {
    const std::uint64_t bytes = std::min(kChunk, op->length - op->moved);
    const iovec piece{op->local + op->moved, bytes};
    op->moved += bytes;
    send_frame(connection, FrameKind::rma_write, op->moved == op->length ? kFrameLast : 0, op->number,
               op->remote, op->remote_offset + (op->moved - bytes), &piece, 1);
  }
  return false;
}

// Where a peer's frame may copy, or null.
std::byte* Endpoint::checked_target(std::uint64_t name, std::uint64_t offset, std::uint64_t length,
                                    bool write) const {
  if (index_of(name) >= fresh_registrations_) return nullptr;
  const Registration& entry = segment_->registration(index_of(name));
  if (!allows(entry.control.load(std::memory_order_relaxed), name, write,
              entry.length.load(std::memory_order_relaxed), offset, length))
    return nullptr;
  return reinterpret_cast<std::byte*>(entry.start.load(std::memory_order_relaxed)) + offset;
}

Errc Endpoint::handle_rma(Connection* connection, const FrameHeader& header,
                          std::span<const std::byte> payload) {
  if (connection->shown.attribute > CCI_CONN_ATTR_RU) return Errc::corrupt;
  Op* const op = connection->queue.head;
  const bool answers = op != nullptr && op->started && !op->data_done && op->number == header.a;
  switch (header.kind) {
    case FrameKind::rma_write: {
      std::byte* const target = checked_target(header.b, header.c, payload.size(), true);
      if (target == nullptr) {
        connection->rma_failed = true;
      } else if (!connection->rma_failed) {
        connection->rma_failed = !copy_checked(target, payload.data(), payload.size());
      }
      if ((header.flags & kFrameLast) != 0) {
        const std::uint64_t status = connection->rma_failed ? CCI_ERR_RMA_HANDLE : CCI_SUCCESS;
        connection->rma_failed = false;
        send_frame(connection, FrameKind::rma_done, 0, header.a, status, 0, nullptr, 0);
      }
      return Errc::ok;
    }
    case FrameKind::rma_read: {
      // What a peer does not take off its socket is not made for it.
      if (connection->outgoing.size() > 4 * kChunk) {
        stall(connection);
        return Errc::not_done;
      }
      std::uint64_t length = 0;
      if (payload.size() != sizeof length) return Errc::corrupt;
      std::memcpy(&length, payload.data(), sizeof length);
      std::byte* const target = checked_target(header.b, header.c, length, false);
      if (target == nullptr || length == 0) {
        send_frame(connection, FrameKind::rma_done, 0, header.a, CCI_ERR_RMA_HANDLE, 0, nullptr, 0);
        return Errc::ok;
      }
      // One chunk; the initiator asks for the next when it has this one.
      std::vector<std::byte> chunk(std::min(kChunk, length));
      if (!copy_checked(chunk.data(), target, chunk.size())) {
        send_frame(connection, FrameKind::rma_done, 0, header.a, CCI_ERR_RMA_HANDLE, 0, nullptr, 0);
        return Errc::ok;
      }
      const iovec piece{chunk.data(), chunk.size()};
      send_frame(connection, FrameKind::rma_data, 0, header.a, 0, header.c, &piece, 1);
      return Errc::ok;
    }
    case FrameKind::rma_data: {
      if (!answers) return header.a <= connection->operations ? Errc::ok : Errc::corrupt;  // it was given up
      if (op->kind != OpKind::read || payload.empty() || payload.size() > op->length - op->moved)
        return Errc::corrupt;
      std::memcpy(op->local + op->moved, payload.data(), payload.size());
      op->moved += payload.size();
      if (op->moved < op->length) {
        const std::uint64_t left = op->length - op->moved;
        const iovec piece{const_cast<std::uint64_t*>(&left), sizeof left};
        send_frame(connection, FrameKind::rma_read, 0, op->number, op->remote, op->remote_offset + op->moved,
                   &piece, 1);
        return Errc::ok;
      }
      op->data_done = true;
      pump(connection);
      return Errc::ok;
    }
    case FrameKind::rma_done: {
      if (!answers) return header.a <= connection->operations ? Errc::ok : Errc::corrupt;
      if (op->kind == OpKind::write && op->moved < op->length) return Errc::corrupt;
      if (header.b != CCI_SUCCESS) {
        connection->queue.pop();
        complete(op, CCI_ERR_RMA_HANDLE);
      } else if (op->kind == OpKind::write) {
        op->data_done = true;
      } else {
        return Errc::corrupt;
      }
      pump(connection);
      return Errc::ok;
    }
    default:
      return Errc::corrupt;
  }
}

}  // namespace orrery::cci
