// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "include/xpmem/xpmem.h"

#include "emu/base/own_descriptor.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/abstract_socket.hpp"
#include "lib/xpmem/owner.hpp"
#include "lib/xpmem/shared_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::xpmem {

namespace {

// How long a peer waits for an owner that is stopped.
constexpr std::int64_t kAnswerNs = 10'000'000'000;

struct Attachment {
  std::byte* base = nullptr;  // page boundary
  std::size_t bytes = 0;      // whole pages
  xpmem_apid_t access = 0;
};

struct Access {
  xpmem_segid_t segment = 0;
  bool writes = false;
  UniqueFd file;  // the owner's memory file, from the first attachment on
};

// What this process has of the interface. Made by the first call; never destroyed, because exit handlers may
// still call; a forked child begins anew.
struct Process {
  pid_t pid = 0;
  nic::Runtime* runtime = nullptr;  // null: the process ends, and its NIC is gone
  std::unique_ptr<Owner> owner;     // once something was made
  std::map<xpmem_apid_t, Access> accesses;
  std::vector<Attachment> attachments;
  xpmem_apid_t next_access = 1;
};
std::mutex g_mu;
Process* g_process = nullptr;  // guarded by g_mu

// At the process's end, before the runtime's own end: the service thread, which outlives it, gives no
// answers with its help any more.
void end_process() {
  const std::lock_guard lock(g_mu);
  if (g_process == nullptr || g_process->pid != getpid() || g_process->runtime == nullptr) return;
  if (g_process->owner != nullptr) g_process->owner->stop();
  g_process->runtime = nullptr;
}

// REQUIRES: g_mu. Null with errno set when there is no job to be in.
Process* process() {
  if (g_process != nullptr && g_process->pid == getpid()) {
    if (g_process->runtime != nullptr) return g_process;
    errno = ENXIO;
    return nullptr;
  }
  const auto runtime = nic::Runtime::of_process();
  auto* const made = runtime.ok() ? new (std::nothrow) Process : nullptr;
  if (made == nullptr) {
    errno = runtime.ok() ? ENOMEM : ENXIO;
    return nullptr;
  }
  made->pid = getpid();
  made->runtime = runtime.value();
  // After the runtime has registered its end, so before it; in a child once more, after that child's. The
  // thread that held the lock when a child was made is not in it.
  std::atexit(end_process);
  static const int once = pthread_atfork(nullptr, nullptr, [] { new (&g_mu) std::mutex; });
  (void)once;
  g_process = made;  // in a child the parent's is left as it is: its threads are not here
  return made;
}

template <typename T>
T fail(int error, T result) {
  errno = error;
  return result;
}

// Asks the segment's owner. 0, or the errno to give. `file`: of a shared mapping, when the answer has one.
int ask(nic::Runtime& runtime, Request request, Answer* answer, UniqueFd* file) {
  job::Job& job = runtime.job();
  const SegmentName name = decode(request.segment);
  const auto owner = job.directory().info_of({.index = name.slot, .generation = name.generation});
  if (!owner.ok() || owner.value().socket_name.empty()) return ENOENT;
  const std::int64_t deadline = monotonic_ns() + kAnswerNs;
  const auto connected = job::connect_to(socket_name(owner.value().socket_name), deadline);
  if (!connected.ok()) return connected.code() == Errc::timeout ? ETIMEDOUT : ENOENT;
  const int fd = connected.value().get();
  const auto peer = job::peer_of(fd);
  if (!peer || peer->uid != geteuid()) return EACCES;
  request.secret = job.directory().secret();
  if (send(fd, &request, sizeof request, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof request)) return ENOENT;
  std::vector<UniqueFd> files;
  const auto got =
      job::receive_with_fds(fd, std::as_writable_bytes(std::span(answer, 1)), 1, deadline, &files);
  if (!got.ok()) return got.code() == Errc::timeout ? ETIMEDOUT : ENOENT;
  if (got.value() != sizeof *answer) return ENOENT;  // closed without an answer: it ends
  if (answer->error == 0 && answer->has_file != 0) {
    if (files.size() != 1) return ENOENT;
    *file = std::move(files[0]);
  }
  return static_cast<int>(answer->error);
}

// What stands where something else is mapped now is an attachment no more: a later detach or release of it
// would take away what is there.
void forget_attachments(std::vector<Attachment>& all, std::byte* begin, std::byte* end) {
  std::vector<Attachment> left;
  for (const Attachment& one : all) {
    std::byte* const one_end = one.base + one.bytes;
    if (one_end <= begin || one.base >= end) {
      left.push_back(one);
      continue;
    }
    if (one.base < begin) left.push_back({one.base, static_cast<std::size_t>(begin - one.base), one.access});
    if (one_end > end) left.push_back({end, static_cast<std::size_t>(one_end - end), one.access});
  }
  all = std::move(left);
}

// The owner's memory file, for this access. 0, or the errno to give.
int open_file(nic::Runtime& runtime, Access& access) {
  if (access.file.valid()) return 0;
  job::Job& job = runtime.job();
  const SegmentName name = decode(access.segment);
  if (name.slot == job.self().index) {
    access.file.reset(own_descriptor(dup(runtime.memory().file())));
    return access.file.valid() ? 0 : ENOMEM;
  }
  auto descriptors =
      job.fetch({.index = name.slot, .generation = name.generation}, monotonic_ns() + kAnswerNs);
  if (!descriptors.ok()) return descriptors.code() == Errc::timeout ? ETIMEDOUT : ENOENT;
  access.file = std::move(descriptors.value().memory_file);
  return access.file.valid() ? 0 : EFAULT;
}

}  // namespace

}  // namespace orrery::xpmem

using orrery::UniqueFd;
using orrery::xpmem::Answer;
using orrery::xpmem::ask;
using orrery::xpmem::Ask;
using orrery::xpmem::Attachment;
using orrery::xpmem::fail;
using orrery::xpmem::forget_attachments;
using orrery::xpmem::g_mu;
using orrery::xpmem::open_file;
using orrery::xpmem::Process;
using orrery::xpmem::process;
using orrery::xpmem::Request;

extern "C" {

int xpmem_version(void) {
  const std::lock_guard lock(g_mu);
  return process() == nullptr ? -1 : XPMEM_CURRENT_VERSION;
}

xpmem_segid_t xpmem_make(void* vaddr, size_t size, int permit_type, void* permit_value) {
  const auto address = reinterpret_cast<std::uint64_t>(vaddr);
  const auto mode = reinterpret_cast<std::uint64_t>(permit_value);
  const bool whole = size == XPMEM_MAXADDR_SIZE && address == 0;
  if (size == 0 || address % orrery::memory::kPageBytes != 0 || permit_type != XPMEM_PERMIT_MODE ||
      (mode & ~std::uint64_t{0777}) != 0 || (mode & 0400) == 0 || (!whole && address + size < address))
    return fail<xpmem_segid_t>(EINVAL, -1);
  const std::lock_guard lock(g_mu);
  Process* const own = process();
  if (own == nullptr) return -1;
  if (own->owner == nullptr) {
    auto owner = std::make_unique<orrery::xpmem::Owner>(*own->runtime);
    if (!owner->listen().ok()) return fail<xpmem_segid_t>(ENXIO, -1);
    own->owner = std::move(owner);
  }
  const std::int64_t made = own->owner->make(address, size, (mode & 0200) != 0);
  return made == 0 ? fail<xpmem_segid_t>(ENOSPC, -1) : made;
}

int xpmem_remove(xpmem_segid_t segid) {
  const std::lock_guard lock(g_mu);
  Process* const own = process();
  if (own == nullptr) return -1;
  return own->owner != nullptr && own->owner->remove(segid) ? 0 : fail(EINVAL, -1);
}

xpmem_apid_t xpmem_get(xpmem_segid_t segid, int flags, int permit_type, void* /*permit_value*/) {
  if (segid <= 0 || (flags != XPMEM_RDONLY && flags != XPMEM_RDWR) || permit_type != XPMEM_PERMIT_MODE)
    return fail<xpmem_apid_t>(EINVAL, -1);
  const std::lock_guard lock(g_mu);
  Process* const own = process();
  if (own == nullptr) return -1;
  const Request request{.ask = Ask::get, .segment = segid, .writes = flags == XPMEM_RDWR ? 1u : 0u};
  Answer answer;
  UniqueFd none;
  if (const int error = ask(*own->runtime, request, &answer, &none); error != 0)
    return fail<xpmem_apid_t>(error, -1);
  const xpmem_apid_t access = own->next_access++;
  own->accesses[access] = {segid, flags == XPMEM_RDWR, {}};
  return access;
}

int xpmem_release(xpmem_apid_t apid) {
  const std::lock_guard lock(g_mu);
  Process* const own = process();
  if (own == nullptr) return -1;
  if (own->accesses.erase(apid) == 0) return fail(EINVAL, -1);
  std::erase_if(own->attachments, [apid](const Attachment& one) {
    if (one.access != apid) return false;
    munmap(one.base, one.bytes);
    return true;
  });
  return 0;
}

void* xpmem_attach(struct xpmem_addr addr, size_t size, void* vaddr) {
  void* const failed = reinterpret_cast<void*>(-1);
  if (size == 0 || addr.offset < 0 ||
      reinterpret_cast<std::uint64_t>(vaddr) % orrery::memory::kPageBytes != 0)
    return fail(EINVAL, failed);
  const std::lock_guard lock(g_mu);
  Process* const own = process();
  if (own == nullptr) return failed;
  const auto found = own->accesses.find(addr.apid);
  if (found == own->accesses.end()) return fail(EINVAL, failed);
  auto& access = found->second;
  const Request request{.ask = Ask::attach,
                        .segment = access.segment,
                        .offset = static_cast<std::uint64_t>(addr.offset),
                        .length = size,
                        .writes = access.writes ? 1u : 0u};
  Answer answer;
  UniqueFd shared;
  if (const int error = ask(*own->runtime, request, &answer, &shared); error != 0) return fail(error, failed);
  // Of the memory file the offset is the owner's virtual address.
  std::uint64_t begin = answer.address + request.offset;
  std::uint64_t unit = orrery::memory::kPageBytes;
  if (shared.valid()) {
    begin = answer.offset + begin % orrery::memory::kPageBytes;
    unit = orrery::xpmem::mapping_unit(shared.get());
    if (reinterpret_cast<std::uint64_t>(vaddr) % unit != 0) return fail(EINVAL, failed);
  } else if (const int error = open_file(*own->runtime, access); error != 0) {
    return fail(error, failed);
  }
  const orrery::memory::Range pages{begin / unit * unit, (begin + size + unit - 1) / unit * unit};
  if (pages.end > orrery::memory::AddressSpace::kSpan || pages.empty()) return fail(EFAULT, failed);
  void* const base = mmap(vaddr, pages.size(), access.writes ? PROT_READ | PROT_WRITE : PROT_READ,
                          MAP_SHARED | (vaddr != nullptr ? MAP_FIXED : 0),
                          shared.valid() ? shared.get() : access.file.get(), static_cast<off_t>(pages.begin));
  if (base == MAP_FAILED) return fail(ENOMEM, failed);
  forget_attachments(own->attachments, static_cast<std::byte*>(base),
                     static_cast<std::byte*>(base) + pages.size());
  own->attachments.push_back({static_cast<std::byte*>(base), pages.size(), addr.apid});
  return static_cast<std::byte*>(base) + (begin - pages.begin);
}

int xpmem_detach(void* vaddr) {
  const auto* const at = static_cast<const std::byte*>(vaddr);
  const std::lock_guard lock(g_mu);
  Process* const own = process();
  if (own == nullptr) return -1;
  const auto found =
      std::find_if(own->attachments.begin(), own->attachments.end(),
                   [at](const Attachment& one) { return at >= one.base && at < one.base + one.bytes; });
  if (found == own->attachments.end()) return fail(EINVAL, -1);
  munmap(found->base, found->bytes);
  own->attachments.erase(found);
  return 0;
}

}  // extern "C"
