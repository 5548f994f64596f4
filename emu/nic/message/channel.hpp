// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/target/datagram_state.hpp"
#include "emu/nic/target/execute.hpp"
#include "emu/nic/transport/peer.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>

// Channels: sends that are matched to receive buffers which the target posted before, as the BTE's sends are
// by the NIC's receive matching table. A send takes the oldest buffer that is ready, however long it is; when
// none is, it ends in no_resource, "receive not ready", and nothing else happens. The credits of a channel
// are its ready buffers; any process may count them.
//
//   buffer word:  free -> pending (ready) -> claimed (being filled) -> filled -> completed -> free
//
// The words are those of datagrams (post_word). A sender that dies while it fills a buffer leaves the claim:
// the buffer is ready again once another process sees that. One that dies before it has raised the event of a
// buffer that it filled leaves its name in the word: the owner raises the event, once more perhaps, and
// take() knows by the buffer's serial number which of two is stale.
namespace orrery::nic {

inline constexpr std::uint32_t kMaxChannels = 64;
inline constexpr std::uint32_t kMaxReceives = 128;  // buffers of one channel

// One posted buffer. Owner writes it while preparing; a sender `bytes` and what follows while claimed.
struct alignas(kCacheLine) ReceiveBuffer {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> order;
  std::atomic<std::uint64_t> address;  // in the owner's memory
  std::atomic<std::uint64_t> length;
  std::atomic<std::uint32_t> region;             // of that memory: generation << 16 | index
  std::atomic<std::uint32_t> source;             // process slot of the sender
  std::atomic<std::uint64_t> bytes;              // that came
  std::atomic<std::uint32_t> transaction;        // of a send that comes in several packets
  std::atomic<std::uint32_t> remote_event_data;  // of the sender's endpoint
};
static_assert(sizeof(ReceiveBuffer) == 64);

//   63..48 generation | 47..32 domain | 31..16 queue + 1 | 0 open
struct alignas(kCacheLine) ChannelState {
  std::atomic<std::uint64_t> control;
  ReceiveBuffer buffers[kMaxReceives];
};

struct ChannelTable {
  ChannelState channels[kMaxChannels];
};
static_assert(sizeof(ChannelTable) <= kChannelArea.bytes);

inline ChannelTable& channels_of(const NicView& nic) { return nic.unit<ChannelTable, kChannelArea>(); }

// Names a channel to all processes: travels like a registration's key, whose fields it uses.
struct ChannelName {
  std::uint16_t process = 0;
  std::uint16_t index = 0;
  std::uint16_t generation = 0;  // never 0
  friend constexpr bool operator==(const ChannelName&, const ChannelName&) = default;
};
constexpr MemKey key_of(const ChannelName& name) {
  return {.index = name.index, .generation = name.generation, .process = name.process};
}

// Ready buffers of a channel: how many sends would be taken. Any thread of any process.
// Errors: invalid_handle (no such channel).
Result<std::uint32_t> credits_of(const NicView& nic, const ChannelName& name);

// Makes buffers ready again that were claimed by senders that are dead. Whether there were any. Any thread of
// any process.
bool take_back_buffers(const NicView& nic, std::uint16_t channel,
                       const std::function<bool(ProcessName)>& alive);

// The process that applies a send.
struct SendContext {
  wire::ProcessSlot claimer = post_word::kOwner;
  std::uint32_t generation = 0;
  // Announces that the memory of a region is about to be touched, calls body(body_argument), and withdraws
  // the announcement. Null: the owner itself, which need not announce anything.
  Errc (*with_region)(void* self, std::uint32_t region, Errc (*body)(void*), void* body_argument) = nullptr;
  void* self = nullptr;
  bool only_mapped = false;  // memory that is not mapped here ends it in not_done
  bool same_space = false;   // the target's addresses are ours
};

// Applies one packet of a send to `target`. ok: its bytes are in place, and with the last packet the
// channel's owner has its event. no_resource: no buffer is ready. not_done: the buffer that was next cannot
// be reached from here. size: longer than the buffer, which then stays ready. invalid_handle, permission
// (another domain). Not blocking; any thread.
Errc execute_send(const Target& target, const wire::PacketHeader& header, std::span<const std::byte> payload,
                  const SendContext& context);

struct Port;

// What came.
struct ReceivedSend {
  void* context = nullptr;  // of the buffer
  std::uint64_t bytes = 0;
  wire::ProcessSlot source = 0;
  std::uint32_t remote_event_data = 0;  // the sender's
};

// The owner's side of a NIC's channels. Threads: any, but one at a time for one channel.
// Usage: auto name = unit.open(port, queue);  unit.post(name.value(), key, at, n, context);
//        Event e;  queue->take(&e);  auto came = unit.take(e);
class ChannelUnit {
 public:
  ChannelUnit(HostServices& services, NicView view) : services_(services), view_(view) {}

  // A channel whose sends raise events of kind `received` in `queue`. Errors: no_resource (64 are open).
  Result<ChannelName> open(const Port& port, CompletionQueue* queue);
  // Takes back all buffers that are not being filled. Errors: invalid_handle; not_done (a sender is filling
  // one: call again).
  Errc close(const ChannelName& name);
  // Makes [address, address + length) of a registration of ours the channel's next buffer.
  // Errors: invalid_handle, no_resource (128 are posted).
  Errc post(const ChannelName& name, const MemKey& key, std::uint64_t address, std::uint64_t length,
            void* context);
  // What an event of kind `received` tells of; its buffer is the caller's again. Errors: no_match (it was
  // taken already: two events may tell of a send whose sender died).
  Result<ReceivedSend> take(const Event& event);
  // Buffers that dead senders were filling are ready again, and what they had filled raises its event. The
  // NIC calls it when it learns of a death; an owner that is not connected to its senders has to call it
  // itself.
  void take_back_from_the_dead();

 private:
  ChannelState* find(const ChannelName& name) const;

  struct Own {
    bool open = false;
    std::uint16_t generation = 0;
    CompletionQueue* queue = nullptr;
    std::array<void*, kMaxReceives> contexts{};
  };
  HostServices& services_;
  const NicView view_;
  Lock<LockRank::channels> mu_;
  std::array<Own, kMaxChannels> own_;  // guarded by mu_
  std::uint64_t next_order_ = 0;       // guarded by mu_
};

}  // namespace orrery::nic
