// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/nic.hpp"

#include <atomic>
#include <cstdint>

namespace orrery::common {

// The two words by which a client names registered memory of its own: its API's handle, or a key and a zero.
struct LocalName {
  std::uint64_t word[2];
};

// The local side of an endpoint's last transfer, as the NIC allowed it. It holds as long as the control word
// of the registration's entry stays what it was: then the next transfer needs one load and no question.
// Threads: one at a time, the one that uses the endpoint.
// Usage: if (local.allows(name, at, n, true) || local.ask(nic, port, name, key, at, n, true)) ...
class LocalAccess {
 public:
  // Whether the NIC has said so before: so many bytes of that registration, at its own addresses.
  [[gnu::always_inline]] bool allows(const LocalName& name, std::uint64_t address, std::uint64_t bytes,
                                     bool writes) const {
    const std::uint64_t offset = address - begin_;
    return entry_ != nullptr && name_.word[0] == name.word[0] && name_.word[1] == name.word[1] &&
           offset <= size_ && bytes <= size_ - offset && (writable_ || !writes) &&
           entry_->control.load(std::memory_order_acquire) == control_;
  }

  // Asks the NIC, and keeps the answer for the next time. False: it says no, or the registration is one of
  // segments, which has no addresses of its own.
  [[gnu::noinline]] bool ask(nic::Nic& nic, const nic::Port& port, const LocalName& name,
                             const nic::MemKey& key, std::uint64_t address, std::uint64_t bytes,
                             bool writes) {
    if (nic.regions().check_local(port.domain, key, address, bytes, writes) != Errc::ok) return false;
    if ((key.flags & nic::kSegmented) != 0) return false;
    const nic::MrtEntry& entry = nic.view().region(key.index);
    const std::uint64_t word = entry.control.load(std::memory_order_acquire);
    if (nic::control::generation(word) != key.generation) return false;
    name_ = name;
    entry_ = &entry;
    control_ = word;
    begin_ = entry.begin.load(std::memory_order_relaxed);
    size_ = entry.end.load(std::memory_order_relaxed) - begin_;
    writable_ = (nic::control::flags(word) & nic::kReadOnly) == 0;
    return true;
  }

  // The entry, and the control word it had; null before the first answer.
  const nic::MrtEntry* entry() const { return entry_; }
  std::uint64_t control() const { return control_; }

 private:
  LocalName name_{};
  const nic::MrtEntry* entry_ = nullptr;
  std::uint64_t control_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t size_ = 0;
  bool writable_ = false;
};

}  // namespace orrery::common
