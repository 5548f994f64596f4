// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/program_code.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <dlfcn.h>
#include <link.h>

namespace orrery::clock {

namespace {

// The folder of the library that this code is in, with the slash; empty in a program.
std::string_view own_folder() {
  static const std::string_view folder = [] {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&reads_counter), &info) == 0 || info.dli_fname == nullptr)
      return std::string_view();
    const std::string_view path(info.dli_fname);
    return path.substr(0, path.rfind('/') + 1);
  }();
  return folder;
}

bool is_programs_own(std::string_view path) {
  if (path.empty()) return true;  // the program itself
  if (path.find('/') == std::string_view::npos || path.find("/liborrery") != std::string_view::npos)
    return false;
  for (const std::string_view system : {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/"}) {
    if (path.starts_with(system)) return false;
  }
  return own_folder().empty() || !path.starts_with(own_folder());
}

int look_at(dl_phdr_info* object, std::size_t, void* found) {
  if (!is_programs_own(object->dlpi_name == nullptr ? "" : object->dlpi_name)) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & (PF_X | PF_R)) != (PF_X | PF_R)) continue;
    const auto* const begin = reinterpret_cast<const std::byte*>(object->dlpi_addr + part.p_vaddr);
    if (!reads_counter({begin, part.p_filesz})) continue;
    *static_cast<bool*>(found) = true;
    return 1;
  }
  return 0;
}

}  // namespace

bool reads_counter(std::span<const std::byte> code) {
  constexpr std::size_t kSoon = 40;  // bytes; an unoptimised program stores and loads both halves in between
  const auto* const at = reinterpret_cast<const unsigned char*>(code.data());
  const std::size_t size = code.size();
  for (std::size_t i = 0; i + 2 < size; ++i) {
    const auto* const next = static_cast<const unsigned char*>(std::memchr(at + i, 0x0f, size - 2 - i));
    if (next == nullptr) return false;
    i = static_cast<std::size_t>(next - at);
    const bool plain = at[i + 1] == 0x31;
    const bool with_processor = at[i + 1] == 0x01 && at[i + 2] == 0xf9;
    if (!plain && !with_processor) continue;
    const std::size_t end = std::min(size, i + kSoon);
    for (std::size_t j = i + 2; j + 3 < end; ++j) {
      // shl of a 64-bit register by 32
      if ((at[j] == 0x48 || at[j] == 0x49) && at[j + 1] == 0xc1 && (at[j + 2] & 0xf8) == 0xe0 &&
          at[j + 3] == 32)
        return true;
    }
  }
  return false;
}

bool program_reads_counter() {
  bool found = false;
#if defined(__x86_64__)
  dl_iterate_phdr(look_at, &found);
#else
  (void)look_at;
#endif
  return found;
}

bool program_has_libc_clock() {
  Dl_info info{};
  const void* const call = dlsym(RTLD_DEFAULT, "clock_gettime");
  if (call == nullptr || dladdr(call, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view path(info.dli_fname);
  return path.substr(path.rfind('/') + 1).starts_with("libc.so");
}

bool runs_under_valgrind() {
  bool found = false;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* result) {
        if (object->dlpi_name == nullptr || std::strstr(object->dlpi_name, "/vgpreload_") == nullptr)
          return 0;
        *static_cast<bool*>(result) = true;
        return 1;
      },
      &found);
  return found;
}

}  // namespace orrery::clock
