// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The wire between hosts beside bare libfabric, same provider, same run, two processes on the loopback
// interface:
//   half round trip of 8 bytes   bare fi_send/fi_recv, then OfiWire, in turns
//   rate                         puts of 8 bytes, at most 64 unanswered
//   bandwidth                    puts of 1 MiB, at most 8 unanswered; bare: messages of 64 KiB and of 1 MiB
//   encrypted                    the wire's rows once more with encryption, where there is one
// usage: ofi_wire_bench [provider] [interface] [frame bytes]     default: tcp;ofi_rxm 127.0.0.1, as the wire
// has it
#include "bench/common/clock.hpp"
#include "emu/wire/ofi_endpoint.hpp"
#include "emu/wire/ofi_wire.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace orrery;
using namespace orrery::wire;

namespace {

constexpr int kTurns = 9;
constexpr int kRoundTrips = 1500;
constexpr int kPuts = 100'000;
constexpr int kLongPuts = 600;
constexpr std::uint32_t kBareBytes = 1 << 20;

[[noreturn]] void fail(const char* what, const std::string& why) {
  std::fprintf(stderr, "ofi_wire_bench: %s: %s\n", what, why.c_str());
  _exit(1);
}

void must(bool good, const char* what) {
  if (!good) fail(what, "failed");
}

struct Bare final : OfiEvents {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  void arrived(std::span<const std::byte>) override { ++in; }
  void sent(OfiOperation&) override { ++out; }
};

struct Counter final : Sink {
  OfiWire* wire = nullptr;
  bool answers = false;
  std::uint64_t requests = 0;
  std::uint64_t responses = 0;
  void deliver(const Packet& packet) override {
    if (packet.header.verb == Verb::response) {
      ++responses;
      return;
    }
    ++requests;
    if (!answers || (packet.header.flags & kLast) == 0) return;
    PacketHeader answer;
    answer.verb = Verb::response;
    must(wire->try_send(packet.header.source, answer, {}).ok(), "answer");
  }
};

// One of the two processes; `rank` 0 measures.
class Side {
 public:
  Side(int rank, int channel, const std::string& provider, const std::string& interface,
       std::uint32_t frame_bytes, bool encrypt)
      : rank_(rank), channel_(channel) {
    std::string why;
    auto bare = OfiEndpoint::open({.provider = provider,
                                   .interface = interface,
                                   .message_bytes = kBareBytes,
                                   .receives = 32,
                                   .sends = 32},
                                  &why);
    if (!bare.ok()) fail("open", why);
    bare_ = std::move(bare).value();
    OfiWireOptions options;
    options.provider = provider;
    options.interface = interface;
    options.rank = static_cast<std::uint32_t>(rank);
    if (frame_bytes != 0) options.frame_bytes = frame_bytes;
    options.encrypt = encrypt;
    auto wire = OfiWire::open(options, sink_, nullptr, &why);
    if (!wire.ok()) fail("open", why);
    wire_ = std::move(wire).value();
    sink_.wire = wire_.get();
    peer_ = bare_->insert(swap(bare_->address())).value();
    must(wire_->add_peer(1, swap(wire_->address())).ok(), "add_peer");
  }

  // Both sides come here.
  void meet() {
    std::byte byte{};
    must(write(channel_, &byte, 1) == 1 && read(channel_, &byte, 1) == 1, "meet");
  }

  double bare_half_ns(int round_trips) {
    const double start = bench::now_ns();
    for (int i = 0; i < round_trips; ++i) {
      if (rank_ == 0) send_bare(8);
      wait_bare();
      if (rank_ == 1) send_bare(8);
    }
    return (bench::now_ns() - start) / round_trips / 2;
  }

  double wire_half_ns(int round_trips) {
    PacketHeader put;
    put.verb = Verb::put;
    put.flags = kLast;
    put.length = 8;
    const std::array<std::byte, 8> payload{};
    const auto wait = [&] {
      for (const std::uint64_t seen = waited_++; sink_.requests <= seen;) wire_->poll(16);
    };
    const double start = bench::now_ns();
    for (int i = 0; i < round_trips; ++i) {
      if (rank_ == 0) must(wire_->try_send(1, put, payload).ok(), "put");
      wait();
      if (rank_ == 1) must(wire_->try_send(1, put, payload).ok(), "put");
    }
    return (bench::now_ns() - start) / round_trips / 2;
  }

  // Nanoseconds per put of `bytes`, at most `window` unanswered.
  double put_ns(int puts, std::size_t bytes, std::uint64_t window) {
    meet();
    sink_.answers = true;
    double taken = 0;
    if (rank_ == 0) {
      PacketHeader put;
      put.verb = Verb::put;
      put.flags = kLast;
      put.length = bytes;
      const std::vector<std::byte> payload(bytes, std::byte{1});
      const std::uint64_t base = sink_.responses;
      const double start = bench::now_ns();
      for (std::uint64_t posted = 0; sink_.responses - base < static_cast<std::uint64_t>(puts);) {
        while (posted < static_cast<std::uint64_t>(puts) && posted - (sink_.responses - base) < window &&
               wire_->try_send(1, put, payload).ok()) {
          ++posted;
        }
        wire_->poll(64);
      }
      taken = (bench::now_ns() - start) / puts;
      finish();
    } else {
      serve();
    }
    sink_.answers = false;
    return taken;
  }

  // Nanoseconds per bare message of `bytes`, a single answer at the end.
  double bare_stream_ns(int messages, std::size_t bytes) {
    meet();
    const double start = bench::now_ns();
    if (rank_ == 0) {
      for (int i = 0; i < messages; ++i) send_bare(bytes);
      wait_bare();
    } else {
      for (int i = 0; i < messages; ++i) wait_bare();
      send_bare(8);
    }
    return (bench::now_ns() - start) / messages;
  }

  // Long enough for every acknowledgement to come and go.
  void settle() {
    for (const double end = bench::now_ns() + 5e7; bench::now_ns() < end;) wire_->poll(16);
  }
  const OfiWireCounts& counts() const { return wire_->counts(); }

 private:
  std::vector<std::byte> swap(const std::vector<std::byte>& mine) {
    std::vector<std::byte> theirs(1024);
    must(write(channel_, mine.data(), mine.size()) > 0, "wire-up");
    const ssize_t got = read(channel_, theirs.data(), theirs.size());
    must(got > 0, "wire-up");
    theirs.resize(static_cast<std::size_t>(got));
    return theirs;
  }
  void send_bare(std::size_t bytes) {
    while (bare_sent_ - events_.out >= operations_.size()) bare_->poll(events_, 16);
    const auto i = static_cast<std::uint32_t>(bare_sent_ % operations_.size());
    while (!bare_->send(peer_, {bare_->send_buffer(i), bytes}, operations_[i]).ok()) bare_->poll(events_, 16);
    ++bare_sent_;
  }
  void wait_bare() {
    for (const std::uint64_t seen = bare_waited_++; events_.in <= seen;) bare_->poll(events_, 16);
  }
  // Rank 0 tells rank 1 that a part is over; rank 1 polls until then.
  void finish() {
    std::byte byte{};
    must(write(channel_, &byte, 1) == 1, "finish");
  }
  void serve() {
    std::byte byte{};
    for (int i = 0;; ++i) {
      wire_->poll(64);
      if (i % 256 == 0 && recv(channel_, &byte, 1, MSG_DONTWAIT) == 1) break;
    }
    waited_ = sink_.requests;
  }

  const int rank_;
  const int channel_;
  std::unique_ptr<OfiEndpoint> bare_;
  std::uint64_t peer_ = 0;
  Bare events_;
  std::array<OfiOperation, 16> operations_{};
  std::uint64_t bare_sent_ = 0;
  std::uint64_t bare_waited_ = 0;
  Counter sink_;
  std::unique_ptr<OfiWire> wire_;
  std::uint64_t waited_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    const bool help = std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0;
    std::fprintf(help ? stdout : stderr,
                 "usage: ofi_wire_bench [PROVIDER [INTERFACE [FRAME BYTES]]]\n"
                 "one provider of libfabric (default tcp;ofi_rxm), on an interface or its address (default "
                 "127.0.0.1); FRAME BYTES: default as the wire has it\n");
    return help ? 0 : 2;
  }
  const std::string provider = argc > 1 ? argv[1] : "tcp;ofi_rxm";
  const std::string interface = argc > 2 ? argv[2] : "127.0.0.1";
  // Or the bare endpoint's long messages would make every one of rxm's buffers as long: gigabytes.
  setenv("FI_OFI_RXM_BUFFER_SIZE", "131072", 0);
  int channel[2];
  must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channel) == 0, "socketpair");
  const int rank = fork() == 0 ? 1 : 0;
  bench::pin(rank);
  const std::uint32_t frame_bytes = argc > 3 ? static_cast<std::uint32_t>(std::stoul(argv[3])) : 0;
  Side side(rank, channel[rank], provider, interface, frame_bytes, false);
  (void)side.bare_half_ns(200);
  (void)side.wire_half_ns(200);
  std::vector<double> bare;
  std::vector<double> ours;
  std::vector<double> ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    bare.push_back(side.bare_half_ns(kRoundTrips));
    ours.push_back(side.wire_half_ns(kRoundTrips));
    ratios.push_back(ours.back() / bare.back());
  }
  side.settle();
  const double put = side.put_ns(kPuts, 8, 64);
  const double long_put = side.put_ns(kLongPuts, 1 << 20, 8);
  side.meet();
  const double bare_64k = side.bare_stream_ns(kLongPuts * 16, 1 << 16);
  const double bare_1m = side.bare_stream_ns(kLongPuts, 1 << 20);
  side.meet();
  std::string why;
  const bool encrypts = Sealer::is_usable(&why);
  std::vector<double> encrypted;
  double encrypted_put = 0;
  double encrypted_long_put = 0;
  if (encrypts) {
    Side closed(rank, channel[rank], provider, interface, frame_bytes, true);
    (void)closed.wire_half_ns(200);
    for (int turn = 0; turn < kTurns; ++turn) encrypted.push_back(closed.wire_half_ns(kRoundTrips));
    closed.settle();
    encrypted_put = closed.put_ns(kPuts, 8, 64);
    encrypted_long_put = closed.put_ns(kLongPuts, 1 << 20, 8);
    closed.meet();
  }
  if (rank == 1) return 0;
  std::printf("provider %s, interface %s, %d turns of %d round trips\n", provider.c_str(), interface.c_str(),
              kTurns, kRoundTrips);
  std::printf("half round trip 8 B    bare %8.2f us   wire %8.2f us   ratio %5.2f\n",
              bench::median(bare) / 1e3, bench::median(ours) / 1e3, bench::median(ratios));
  std::printf("put 8 B, window 64     %8.3f M/s\n", 1e3 / put);
  std::printf("put 1 MiB, window 8    %8.2f GB/s   bare 64 KiB %8.2f GB/s   bare 1 MiB %8.2f GB/s\n",
              static_cast<double>(1 << 20) / long_put, 65536.0 / bare_64k,
              static_cast<double>(1 << 20) / bare_1m);
  if (encrypts)
    std::printf(
        "encrypted: half round trip %8.2f us (%.2f x)   put 8 B %8.3f M/s (%.2f x)   put 1 MiB %8.2f GB/s "
        "(%.2f x)\n",
        bench::median(encrypted) / 1e3, bench::median(encrypted) / bench::median(ours), 1e3 / encrypted_put,
        put / encrypted_put, static_cast<double>(1 << 20) / encrypted_long_put,
        long_put / encrypted_long_put);
  else
    std::printf("encrypted: %s\n", why.c_str());
  std::printf("retransmitted %llu of %llu frames\n",
              static_cast<unsigned long long>(side.counts().retransmitted),
              static_cast<unsigned long long>(side.counts().frames_sent));
  wait(nullptr);
  return 0;
}
