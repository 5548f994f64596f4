// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/xpmem/shared_file.hpp"

#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/memory/map_query.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace orrery::xpmem {

namespace {

using memory::Mapping;

bool is_file_of(const Mapping& mapping, const struct stat& info) {
  return info.st_ino == mapping.inode && major(info.st_dev) == mapping.dev_major &&
         minor(info.st_dev) == mapping.dev_minor;
}

std::string hexadecimal(std::uint64_t number) {
  char text[17];
  return std::string(text, std::to_chars(text, text + sizeof text, number, 16).ptr);
}

// By the kernel's link to the mapping itself, which privileged processes may follow; anonymous shared memory
// has one.
UniqueFd open_by_mapping(const Mapping& mapping, int flags) {
  const std::string name =
      "/proc/self/map_files/" + hexadecimal(mapping.range.begin) + "-" + hexadecimal(mapping.range.end);
  return UniqueFd(own_descriptor(open(name.c_str(), flags | O_CLOEXEC)));
}

// By a descriptor of the file that the program has still open.
UniqueFd open_by_descriptor(const Mapping& mapping, bool writes) {
  struct Close {
    void operator()(DIR* one) const { closedir(one); }
  };
  const std::unique_ptr<DIR, Close> all(opendir("/proc/self/fd"));
  while (const dirent* const entry = all ? readdir(all.get()) : nullptr) {
    const int fd = std::atoi(entry->d_name);
    struct stat info {};
    if (entry->d_name[0] == '.' || fstat(fd, &info) != 0 || !is_file_of(mapping, info)) continue;
    const int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
    if (mode == O_RDWR || (mode == O_RDONLY && !writes))
      return UniqueFd(own_descriptor(fcntl(fd, F_DUPFD_CLOEXEC, 0)));
  }
  return UniqueFd();
}

// By its name, where it still has one.
UniqueFd open_by_name(const Mapping& mapping, int flags) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  UniqueFd found;
  char line[4352];
  while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
    std::string_view text(line);
    if (!text.starts_with(hexadecimal(mapping.range.begin) + "-")) continue;
    const auto name_at = text.find('/');
    if (name_at == std::string_view::npos) break;
    std::string name(text.substr(name_at));
    if (!name.empty() && name.back() == '\n') name.pop_back();
    found.reset(own_descriptor(open(name.c_str(), flags | O_CLOEXEC | O_NONBLOCK)));
    struct stat info {};
    if (found.valid() && (fstat(found.get(), &info) != 0 || !is_file_of(mapping, info))) found.reset();
    break;
  }
  if (maps != nullptr) std::fclose(maps);
  return found;
}

}  // namespace

bool find_shared_file(memory::Range pages, bool writes, UniqueFd* file, std::uint64_t* offset) {
  memory::MapQuery query;
  Mapping first;
  if (!query.open(true) || !query.find(pages.begin, &first) || first.range.begin > pages.begin ||
      !first.shared || first.inode == 0)
    return false;
  *offset = first.offset + (pages.begin - first.range.begin);
  // Neighbours may differ in protection: still one piece of one file.
  for (Mapping last = first; last.range.end < pages.end;) {
    Mapping next;
    if (!query.find(last.range.end, &next) || next.range.begin != last.range.end || !next.shared ||
        next.inode != first.inode || next.dev_major != first.dev_major || next.dev_minor != first.dev_minor ||
        next.offset != last.offset + (last.range.end - last.range.begin)) {
      log::warn("xpmem: memory at {:#x} is shared memory of several files: make a segment of each",
                pages.begin);
      return true;
    }
    last = next;
  }
  const int flags = writes ? O_RDWR : O_RDONLY;
  *file = open_by_mapping(first, flags);
  if (!file->valid()) *file = open_by_descriptor(first, writes);
  if (!file->valid()) *file = open_by_name(first, flags);
  if (!file->valid())
    log::warn(
        "xpmem: shared memory at {:#x} cannot be attached: its file has no name and no open descriptor, and "
        "/proc/self/map_files is not open to this user (CAP_CHECKPOINT_RESTORE); take memory of shm_open or "
        "memfd_create, or MAP_PRIVATE",
        pages.begin);
  return true;
}

std::uint64_t mapping_unit(int file) {
  struct statfs info {};
  if (fstatfs(file, &info) != 0 || info.f_type != HUGETLBFS_MAGIC) return memory::kPageBytes;
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(info.f_bsize), memory::kPageBytes);
}

}  // namespace orrery::xpmem
