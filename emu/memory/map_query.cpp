// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/map_query.hpp"

#include "emu/base/own_descriptor.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::memory {

namespace {

// Linux 6.11's struct procmap_query and its flags; the headers of Debian 12 are older. (proc(5) ioctl
// PROCMAP_QUERY; include/uapi/linux/fs.h)
struct ProcmapQuery {
  std::uint64_t size;
  std::uint64_t query_flags;
  std::uint64_t query_addr;
  std::uint64_t vma_start;
  std::uint64_t vma_end;
  std::uint64_t vma_flags;
  std::uint64_t vma_page_size;
  std::uint64_t vma_offset;
  std::uint64_t inode;
  std::uint32_t dev_major;
  std::uint32_t dev_minor;
  std::uint32_t vma_name_size;
  std::uint32_t build_id_size;
  std::uint64_t vma_name_addr;
  std::uint64_t build_id_addr;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);
constexpr std::uint64_t kReadable = 1;
constexpr std::uint64_t kWritable = 2;
constexpr std::uint64_t kExecutable = 4;
constexpr std::uint64_t kShared = 8;
constexpr std::uint64_t kCoveringOrNext = 0x10;
constexpr std::uint64_t kFileBacked = 0x20;

// Reads /proc/self/maps line by line through a fixed buffer.
class MapsReader {
 public:
  MapsReader() : file_(own_descriptor(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC))) {}
  ~MapsReader() {
    if (file_ >= 0) ::close(file_);
  }

  bool next(Mapping* out) {
    for (;;) {
      char* const newline = static_cast<char*>(std::memchr(buffer_ + at_, '\n', filled_ - at_));
      if (newline != nullptr) {
        *newline = 0;
        const bool good = parse(buffer_ + at_, out);
        at_ = static_cast<std::size_t>(newline - buffer_) + 1;
        if (good) return true;
        continue;
      }
      std::memmove(buffer_, buffer_ + at_, filled_ - at_);
      filled_ -= at_;
      at_ = 0;
      // A raw call: the mapping list may be read while our own read() is what was interposed.
      const long got = file_ < 0 || filled_ == sizeof buffer_
                           ? 0
                           : ::syscall(SYS_read, file_, buffer_ + filled_, sizeof buffer_ - filled_);
      if (got <= 0) return false;
      filled_ += static_cast<std::size_t>(got);
    }
  }

 private:
  static bool parse(const char* line, Mapping* out) {
    char flags[5] = {};
    int name_at = 0;
    std::uint64_t begin = 0, end = 0, offset = 0, inode = 0;
    unsigned major = 0, minor = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &begin, &end, flags,
                    &offset, &major, &minor, &inode, &name_at) < 7)
      return false;
    *out = Mapping{.range = {begin, end},
                   .readable = flags[0] == 'r',
                   .writable = flags[1] == 'w',
                   .executable = flags[2] == 'x',
                   .shared = flags[3] == 's',
                   .huge_pages = std::strstr(line + name_at, "anon_hugepage") != nullptr,
                   .offset = offset,
                   .inode = inode,
                   .dev_major = major,
                   .dev_minor = minor};
    return true;
  }

  const int file_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  char buffer_[8192];  // longest line: 4,096 of a path and 80 of numbers
};

}  // namespace

int Mapping::protection() const {
  return (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0) | (executable ? PROT_EXEC : 0);
}

bool MapQuery::open(bool use_ioctl) {
  file_ = own_descriptor(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (file_ < 0) return false;
  Mapping own;
  ioctl_ = true;
  ioctl_ = use_ioctl && ask_ioctl(reinterpret_cast<std::uint64_t>(&own), false, &own) &&
           own.range.contains(reinterpret_cast<std::uint64_t>(&own));
  return true;
}

void MapQuery::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

bool MapQuery::ask_ioctl(std::uint64_t address, bool files_only, Mapping* out) const {
  ProcmapQuery query{};
  query.size = sizeof query;
  query.query_flags = kCoveringOrNext | (files_only ? kFileBacked : 0);
  query.query_addr = address;
  if (::ioctl(file_, kProcmapQuery, &query) != 0) return false;
  *out = Mapping{.range = {query.vma_start, query.vma_end},
                 .readable = (query.vma_flags & kReadable) != 0,
                 .writable = (query.vma_flags & kWritable) != 0,
                 .executable = (query.vma_flags & kExecutable) != 0,
                 .shared = (query.vma_flags & kShared) != 0,
                 .huge_pages = query.vma_page_size > kPageBytes,
                 .offset = query.vma_offset,
                 .inode = query.inode,
                 .dev_major = query.dev_major,
                 .dev_minor = query.dev_minor};
  return true;
}

bool MapQuery::find(std::uint64_t address, Mapping* out) const {
  if (ioctl_) return ask_ioctl(address, false, out);
  MapsReader reader;
  while (reader.next(out))
    if (out->range.end > address) return true;
  return false;
}

void MapQuery::walk(Range range, bool files_only, Visit visit, void* context) const {
  Mapping mapping;
  if (ioctl_) {
    for (std::uint64_t at = range.begin; at < range.end && ask_ioctl(at, files_only, &mapping);
         at = mapping.range.end)
      if (mapping.range.begin >= range.end || !visit(context, mapping)) return;
    return;
  }
  MapsReader reader;
  while (reader.next(&mapping)) {
    if (mapping.range.end <= range.begin || (files_only && mapping.inode == 0)) continue;
    if (mapping.range.begin >= range.end || !visit(context, mapping)) return;
  }
}

}  // namespace orrery::memory
