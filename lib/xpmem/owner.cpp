// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/xpmem/owner.hpp"

#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/clock/clock.hpp"
#include "emu/job/abstract_socket.hpp"
#include "emu/memory/range.hpp"
#include "lib/xpmem/shared_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::xpmem {

namespace {

constexpr std::size_t kMaxPending = 64;

}  // namespace

Status Owner::listen() {
  job::Job& job = runtime_.job();
  const auto self = job.directory().info_of(job.self());
  if (!self.ok()) return self.code();
  auto socket = job::listen_at(socket_name(self.value().socket_name));
  if (!socket.ok()) return socket.code();
  socket_ = std::move(socket).value();
  return job.loop().add(socket_.get(), EPOLLIN, [this](std::uint32_t) { on_connect(); });
}

void Owner::stop() {
  EventLoop& loop = runtime_.job().loop();
  (void)loop.run_and_wait([this, &loop] {
    loop.remove(socket_.get());
    for (const UniqueFd& one : pending_) loop.remove(one.get());
    pending_.clear();
    socket_.reset();
  });
}

std::int64_t Owner::make(std::uint64_t address, std::uint64_t length, bool writable) {
  const std::lock_guard lock(mu_);
  const auto free =
      std::find_if(segments_.begin(), segments_.end(), [](const Segment& s) { return !s.live; });
  if (free == segments_.end()) return 0;
  const std::uint32_t serial = free->serial % 0xff + 1;
  *free = {serial, true, writable, address, length};
  const job::ProcessRef self = runtime_.job().self();
  return encode({self.generation, self.index, serial, static_cast<std::uint32_t>(free - segments_.begin())});
}

bool Owner::remove(std::int64_t segment) {
  const SegmentName name = decode(segment);
  const job::ProcessRef self = runtime_.job().self();
  const std::lock_guard lock(mu_);
  Segment& found = segments_[name.place];
  if (segment <= 0 || name.slot != self.index || name.generation != self.generation || !found.live ||
      found.serial != name.serial)
    return false;
  found.live = false;
  return true;
}

void Owner::on_connect() {
  UniqueFd client(own_descriptor(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  if (!client.valid()) return;
  const auto peer = job::peer_of(client.get());
  if (!peer || peer->uid != geteuid()) return;
  const int fd = client.get();
  // A client that says nothing holds one place, the oldest goes first.
  if (pending_.size() >= kMaxPending) {
    runtime_.job().loop().remove(pending_.front().get());
    pending_.pop_front();
  }
  pending_.push_back(std::move(client));
  const Status added = runtime_.job().loop().add(fd, EPOLLIN, [this, fd](std::uint32_t) { on_request(fd); });
  if (!added.ok()) pending_.pop_back();
}

void Owner::on_request(int fd) {
  std::array<std::byte, sizeof(Request) + 1> bytes;  // one more, so that a longer record is seen as such
  if (recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT) == static_cast<ssize_t>(sizeof(Request))) {
    Request request;
    std::memcpy(&request, bytes.data(), sizeof request);
    if (request.magic == Request::kMagic && request.secret == runtime_.job().directory().secret()) {
      UniqueFd file;
      const Answer given = answer(request, &file);
      const int number = file.get();
      // A client that has gone needs no answer.
      (void)job::send_with_fds(fd, std::as_bytes(std::span(&given, 1)),
                               std::span(&number, given.has_file != 0 ? 1 : 0));
    }
  }
  runtime_.job().loop().remove(fd);
  std::erase_if(pending_, [fd](const UniqueFd& one) { return one.get() == fd; });
}

Answer Owner::answer(const Request& request, UniqueFd* file) {
  const SegmentName name = decode(request.segment);
  const job::ProcessRef self = runtime_.job().self();
  Segment segment;
  {
    const std::lock_guard lock(mu_);
    segment = segments_[name.place];
  }
  if (!segment.live || segment.serial != name.serial || name.slot != self.index ||
      name.generation != self.generation)
    return {.error = ENOENT};
  if (request.writes != 0 && !segment.writable) return {.error = EACCES};
  if (request.ask == Ask::get) return {.address = segment.address};
  if (request.ask != Ask::attach || request.length == 0 || request.offset > segment.length ||
      request.length > segment.length - request.offset)
    return {.error = EINVAL};
  const std::uint64_t begin = segment.address + request.offset;
  const std::uint64_t end = begin + request.length;
  if (end < begin || end > memory::AddressSpace::kSpan) return {.error = EFAULT};
  const memory::Range pages = memory::page_hull({begin, end});
  // Under a clock, pages that the program polls may just have been taken away (page_watch.hpp).
  if (clock::Clock* const clock = runtime_.nic().clock()) clock->before_inspection();
  const auto there = runtime_.memory().inspect(pages.begin, pages.size());
  // Pages that are in the file already may have been made read-only since: not for a process that writes.
  if (!there.ok() || !there.value().mapped || (request.writes != 0 && !there.value().writable))
    return {.error = EFAULT};
  std::uint64_t offset = 0;
  if (there.value().cover == memory::Cover::none &&
      find_shared_file(pages, request.writes != 0, file, &offset)) {
    if (file->valid()) return {.has_file = 1, .address = segment.address, .offset = offset};
    return {.error = EFAULT};
  }
  if (there.value().cover != memory::Cover::direct) {
    const Status adopted = runtime_.nic().regions().adopt_range(pages.begin, pages.end, false);
    if (!adopted.ok()) {
      log::debug("memory at {:#x}, {} bytes, cannot be attached: {}", begin, request.length,
                 errc_name(adopted.code()));
      return {
          .error = static_cast<std::uint32_t>(
              adopted.code() == Errc::no_memory || adopted.code() == Errc::no_resource ? ENOMEM : EFAULT)};
    }
  }
  return {.address = segment.address};
}

}  // namespace orrery::xpmem
