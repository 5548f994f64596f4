// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// Where the kernel cannot make a system call wait at a page that is being switched, the call fails with
// EFAULT. The ones that programs read data with are called again when that was the reason. Exported by
// liborrery.so before libc's.
#include "emu/memory/retry_call.hpp"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace orrery::memory {

namespace {

// libc's function (a cancellation point, so no raw call), looked up once.
template <typename Function>
Function* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  // A program that links only an API library loads libc before us: then libc's is the first there is.
  if (found == nullptr) found = dlsym(RTLD_DEFAULT, name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

}  // namespace orrery::memory

extern "C" {

ssize_t read(int file, void* to, std::size_t bytes) {
  static auto* const real = orrery::memory::next<ssize_t(int, void*, std::size_t)>("read");
  return orrery::memory::retry_call([&] { return real(file, to, bytes); });
}

ssize_t pread(int file, void* to, std::size_t bytes, off_t offset) {
  static auto* const real = orrery::memory::next<ssize_t(int, void*, std::size_t, off_t)>("pread");
  return orrery::memory::retry_call([&] { return real(file, to, bytes, offset); });
}

ssize_t pread64(int file, void* to, std::size_t bytes, off64_t offset) {
  return pread(file, to, bytes, offset);
}

ssize_t readv(int file, const iovec* parts, int count) {
  static auto* const real = orrery::memory::next<ssize_t(int, const iovec*, int)>("readv");
  return orrery::memory::retry_call([&] { return real(file, parts, count); });
}

ssize_t recv(int socket, void* to, std::size_t bytes, int flags) {
  static auto* const real = orrery::memory::next<ssize_t(int, void*, std::size_t, int)>("recv");
  return orrery::memory::retry_call([&] { return real(socket, to, bytes, flags); });
}

ssize_t recvfrom(int socket, void* to, std::size_t bytes, int flags, sockaddr* from, socklen_t* from_bytes) {
  static auto* const real =
      orrery::memory::next<ssize_t(int, void*, std::size_t, int, sockaddr*, socklen_t*)>("recvfrom");
  return orrery::memory::retry_call([&] { return real(socket, to, bytes, flags, from, from_bytes); });
}

ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static auto* const real = orrery::memory::next<ssize_t(int, msghdr*, int)>("recvmsg");
  return orrery::memory::retry_call([&] { return real(socket, message, flags); });
}

}  // extern "C"
