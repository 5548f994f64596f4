// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The directory's share in the wire between hosts: which job this is to other hosts, and where each of its
// processes is reached.
#include "emu/job/host_directory.hpp"

#include <algorithm>
#include <cstring>

namespace orrery::job {

namespace {
enum WireStage : std::uint32_t { kNone = 0, kClaimed = 1, kReady = 2 };
}  // namespace

void HostDirectory::set_wire_job(const WireJob& job) {
  layout::WireHeader& header = wire_header();
  std::uint32_t stage = header.stage.load(std::memory_order_acquire);
  if (stage == kReady) return;
  // One that claimed and died wrote what we write: all processes on this host were told the same.
  if (stage == kNone) header.stage.compare_exchange_strong(stage, kClaimed, std::memory_order_acq_rel);
  header.hosts.store(job.hosts, std::memory_order_relaxed);
  header.job.store(job.job, std::memory_order_relaxed);
  if ((job.secret[0] | job.secret[1]) != 0) {
    header.secret[0].store(job.secret[0], std::memory_order_relaxed);
    header.secret[1].store(job.secret[1], std::memory_order_relaxed);
  }
  header.stage.store(kReady, std::memory_order_release);
  announce_change();
}

std::optional<WireJob> HostDirectory::wire_job() const {
  const layout::WireHeader& header = wire_header();
  if (header.stage.load(std::memory_order_acquire) != kReady) return std::nullopt;
  WireJob job;
  job.job = header.job.load(std::memory_order_relaxed);
  job.secret[0] = header.secret[0].load(std::memory_order_relaxed);
  job.secret[1] = header.secret[1].load(std::memory_order_relaxed);
  job.hosts = header.hosts.load(std::memory_order_relaxed);
  return job;
}

Status HostDirectory::write_wire_slot(ProcessRef process, std::uint32_t host,
                                      std::span<const std::byte> address) {
  if (process.index >= kMaxProcesses) return Errc::invalid_param;
  if (address.empty() || address.size() > layout::kWireAddressBytes) return Errc::size;
  layout::WireSlot& slot = wire_slots()[process.index];
  std::uint64_t words[layout::kWireAddressBytes / 8] = {};
  std::memcpy(words, address.data(), address.size());
  const std::uint32_t before = slot.state.load(std::memory_order_relaxed) | 1;
  // Sequentially consistent, as the reader's loads are: a reader of a word of ours sees the odd state too.
  slot.state.store(before, std::memory_order_seq_cst);
  slot.bytes.store(static_cast<std::uint32_t>(address.size()), std::memory_order_seq_cst);
  slot.generation.store(process.generation, std::memory_order_seq_cst);
  slot.host.store(host, std::memory_order_seq_cst);
  for (std::size_t i = 0; i < std::size(words); ++i)
    slot.address[i].store(words[i], std::memory_order_seq_cst);
  slot.state.store(before + 1, std::memory_order_seq_cst);
  announce_change();
  return {};
}

Status HostDirectory::publish_wire_address(ProcessRef self, std::span<const std::byte> address) {
  return write_wire_slot(self, 0, address);
}

Status HostDirectory::add_remote(ProcessRef process, std::uint32_t host, std::span<const std::byte> address) {
  if (process.index >= kMaxProcesses || host == 0) return Errc::invalid_param;
  const std::uint64_t state = processes()[process.index].state.load(std::memory_order_acquire);
  if (is_live({process.index, static_cast<std::uint32_t>(state >> 32)})) return Errc::invalid_param;
  return write_wire_slot(process, host, address);
}

Result<WireAddress> HostDirectory::wire_address(std::uint32_t index) const {
  if (index >= kMaxProcesses) return Errc::no_match;
  const layout::WireSlot& slot = wire_slots()[index];
  const std::uint32_t state = slot.state.load(std::memory_order_seq_cst);
  const std::uint32_t bytes = slot.bytes.load(std::memory_order_seq_cst);
  if (state == 0 || (state & 1) != 0 || bytes == 0 || bytes > layout::kWireAddressBytes)
    return Errc::no_match;
  WireAddress found;
  found.generation = slot.generation.load(std::memory_order_seq_cst);
  found.host = slot.host.load(std::memory_order_seq_cst);
  std::uint64_t words[layout::kWireAddressBytes / 8];
  for (std::size_t i = 0; i < std::size(words); ++i)
    words[i] = slot.address[i].load(std::memory_order_seq_cst);
  if (slot.state.load(std::memory_order_seq_cst) != state) return Errc::no_match;
  const auto* first = reinterpret_cast<const std::byte*>(words);
  found.bytes.assign(first, first + bytes);
  return found;
}

std::uint32_t HostDirectory::remote_host_of(std::uint32_t index, std::uint32_t* generation) const {
  if (index >= kMaxProcesses) return 0;
  const layout::WireSlot& slot = wire_slots()[index];
  const std::uint32_t state = slot.state.load(std::memory_order_acquire);
  if (state == 0 || (state & 1) != 0) return 0;
  *generation = slot.generation.load(std::memory_order_relaxed);
  return slot.host.load(std::memory_order_relaxed);
}

}  // namespace orrery::job
