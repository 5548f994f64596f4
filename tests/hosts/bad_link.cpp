// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A slow cable that loses frames, for kernels without netem: makes one TAP device in each of two network
// namespaces and hands on what is sent into the one at the other, both ways, each frame a while later and
// some never. Usage:
//   bad_link NETNS NETNS DEVICE DELAY_US LOSS_PERCENT SEED
// The devices have that name, no address, and are down. Says "ready" when both are there, and after a SIGTERM
//   N frames carried, N dropped, N refused; delay M us median, P us p99
// where the delay is from when a frame was read to when it was written, in whole microseconds. What waits
// longer waited in the kernel before. Exit code: 77 where /dev/net/tun may not be opened.
#include "emu/base/unique_fd.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace {

using orrery::UniqueFd;

constexpr int kSkipped = 77;

[[noreturn]] void give_up(const std::string& what, int code = 1) {
  std::fprintf(stderr, "bad_link: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(code);
}

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

// A device of that name in the namespace, where this process is from then on.
UniqueFd make_device(const std::string& netns, const std::string& name) {
  const UniqueFd space(open(("/var/run/netns/" + netns).c_str(), O_RDONLY | O_CLOEXEC));
  if (!space.valid() || setns(space.get(), CLONE_NEWNET) != 0) give_up("namespace " + netns);
  UniqueFd device(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!device.valid()) give_up("/dev/net/tun", kSkipped);
  // Without a header for offloads the kernel cuts and sums what it hands over, as a cable wants it.
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (name.size() >= sizeof request.ifr_name) give_up("device " + name);
  std::memcpy(request.ifr_name, name.c_str(), name.size());
  if (ioctl(device.get(), TUNSETIFF, &request) != 0) give_up("device " + name + " in " + netns);
  return device;
}

// What became of the frames of both directions.
class Tally {
 public:
  std::uint64_t dropped = 0;
  std::uint64_t refused = 0;  // by the device that they were for, which is down

  void count(std::int64_t delay_ns) {
    ++carried_;
    ++delays_us_[static_cast<std::size_t>(std::min(delay_ns / 1000, std::int64_t{kLongestUs}))];
  }
  void print() const {
    std::printf("%llu frames carried, %llu dropped, %llu refused; delay %llu us median, %llu us p99\n",
                static_cast<unsigned long long>(carried_), static_cast<unsigned long long>(dropped),
                static_cast<unsigned long long>(refused), static_cast<unsigned long long>(delay_us(0.5)),
                static_cast<unsigned long long>(delay_us(0.99)));
  }

 private:
  static constexpr std::size_t kLongestUs = 100'000;

  std::size_t delay_us(double share) const {
    const auto before = static_cast<std::uint64_t>(share * static_cast<double>(carried_));
    std::uint64_t seen = 0;
    for (std::size_t us = 0; us < kLongestUs; ++us)
      if ((seen += delays_us_[us]) > before) return us;
    return carried_ == 0 ? 0 : kLongestUs;
  }

  std::uint64_t carried_ = 0;
  std::vector<std::uint64_t> delays_us_ = std::vector<std::uint64_t>(kLongestUs + 1);
};

// One way through the cable. All frames wait equally long, so the first that came is the first that is due.
class Way {
 public:
  Way(int from, int to, std::int64_t delay_ns, double loss, std::uint64_t seed, Tally* tally)
      : from_(from),
        to_(to),
        delay_ns_(delay_ns),
        lost_(loss),
        random_(seed),
        tally_(tally),
        frames_(kMost) {}

  int from() const { return from_; }
  // Where the cable is full frames wait in the device's own queue, which drops what it has no room for.
  bool has_room() const { return count_ < kMost; }
  std::optional<std::int64_t> due_ns() const {
    if (count_ == 0) return std::nullopt;
    return frames_[first_].read_ns + delay_ns_;
  }

  void take_in() {
    while (has_room()) {
      Frame& frame = frames_[(first_ + count_) % kMost];
      const ssize_t bytes = read(from_, frame.bytes.data(), frame.bytes.size());
      if (bytes < 0) {
        if (errno == EAGAIN || errno == EINTR) return;
        give_up("read");
      }
      if (lost_(random_)) {
        ++tally_->dropped;
        continue;
      }
      frame.length = static_cast<std::size_t>(bytes);
      frame.read_ns = now_ns();
      ++count_;
    }
  }

  void hand_on() {
    while (count_ > 0) {
      const Frame& frame = frames_[first_];
      const std::int64_t now = now_ns();
      if (now < frame.read_ns + delay_ns_) return;
      if (write(to_, frame.bytes.data(), frame.length) == static_cast<ssize_t>(frame.length))
        tally_->count(now - frame.read_ns);
      else
        ++tally_->refused;
      first_ = (first_ + 1) % kMost;
      --count_;
    }
  }

 private:
  // As many as netem holds unless told otherwise.
  static constexpr std::size_t kMost = 1000;

  struct Frame {
    std::int64_t read_ns = 0;
    std::size_t length = 0;
    std::array<char, 2048> bytes{};  // MTU 1500, Ethernet's header and tags
  };

  int from_;
  int to_;
  std::int64_t delay_ns_;
  std::bernoulli_distribution lost_;
  std::mt19937_64 random_;
  Tally* tally_;
  std::vector<Frame> frames_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

// Until the signal comes.
void carry(std::array<Way, 2>& ways, int signals) {
  for (;;) {
    std::array<pollfd, 3> polled{};
    polled[2] = {signals, POLLIN, 0};
    std::optional<std::int64_t> due;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      ways[i].take_in();
      ways[i].hand_on();
      polled[i] = {ways[i].from(), static_cast<short>(ways[i].has_room() ? POLLIN : 0), 0};
      if (const auto next = ways[i].due_ns()) due = due ? std::min(*due, *next) : *next;
    }
    timespec timeout{};
    if (due) {
      const std::int64_t left = std::max<std::int64_t>(*due - now_ns(), 0);
      timeout = {left / 1'000'000'000, static_cast<long>(left % 1'000'000'000)};
    }
    if (ppoll(polled.data(), polled.size(), due ? &timeout : nullptr, nullptr) < 0 && errno != EINTR)
      give_up("ppoll");
    if ((polled[2].revents & POLLIN) != 0) return;
  }
}

double number(const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*text != 0 && *end == 0 && std::isfinite(value) && value >= 0) return value;
  std::fprintf(stderr, "bad_link: %s: expected a number\n", text);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: bad_link NETNS NETNS DEVICE DELAY_US LOSS_PERCENT SEED\n");
    return 2;
  }
  const auto delay_ns = static_cast<std::int64_t>(number(argv[4]) * 1000);
  const double loss = std::min(number(argv[5]) / 100, 1.0);
  const auto seed = static_cast<std::uint64_t>(number(argv[6]));
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const UniqueFd signal_fd(signalfd(-1, &signals, SFD_CLOEXEC));
  if (!signal_fd.valid()) give_up("signalfd");
  const UniqueFd a = make_device(argv[1], argv[3]);
  const UniqueFd b = make_device(argv[2], argv[3]);
  // A cable does not outlive its maker, wakes when a frame is due, and waits for no program's turn. Where
  // the last is refused the report says what it came to.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  prctl(PR_SET_TIMERSLACK, 1);
  const sched_param first{.sched_priority = 1};
  (void)sched_setscheduler(0, SCHED_FIFO, &first);
  std::printf("ready\n");
  std::fflush(stdout);
  Tally tally;
  std::array<Way, 2> ways{Way(a.get(), b.get(), delay_ns, loss, 2 * seed, &tally),
                          Way(b.get(), a.get(), delay_ns, loss, 2 * seed + 1, &tally)};
  carry(ways, signal_fd.get());
  tally.print();
  return 0;
}
