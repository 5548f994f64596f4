// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/gni/gni_pub.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// What a client asks of libugni, one line a call: liborrery_log_gni.so, which `orrery run --log gni` loads in
// front of the client (LD_PRELOAD). Its GNI_ functions, which generate_calls.py writes from the headers, call
// the library's own and say what was asked and what came of it. Without the option nothing of this is loaded.
namespace orrery::gni::log {

// The function of that name behind ours; ends the process with a message when there is none.
void* find_next(const char* name);

// The library's own function, looked up at the first call.
template <typename Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  template <typename... Args>
  gni_return_t operator()(Args... args) {
    // Threads that look it up at the same time find the same.
    auto* function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(find_next(name_));
      function_.store(function, std::memory_order_relaxed);
    }
    return function(args...);
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

// One call's line. Not for other threads; allocates nothing, and leaves errno as it was.
// Usage: Call call("GNI_EpBind"); call.in("ep_hndl", ep); ... call.out("size", size); return
// call.end(result);
class Call {
 public:
  explicit Call(const char* name);

  // A parameter as the client gave it.
  template <typename T>
  void in(const char* name, T value) {
    begin(name);
    if constexpr (std::is_pointer_v<T>) {
      show(value);
    } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      number(name, static_cast<std::uint64_t>(value), sizeof(T));
    } else {
      add("{...}");
    }
  }
  // Several handles, of which there are `count`.
  template <typename T>
  void list(const char* name, T* const* values, std::uint32_t count) {
    begin(name);
    if (values == nullptr) return show(static_cast<const void*>(nullptr));
    add("[");
    for (std::uint32_t i = 0; i < count && i < kMostListed; ++i) {
      if (i > 0) add(", ");
      show(static_cast<const void*>(values[i]));
    }
    add(count > kMostListed ? ", ...]" : "]");
  }

  // Before a call that may give an event: what its place held, so that event() tells whether it did.
  void before(const gni_cq_entry_t* entry);
  // Before a call that may sleep: what hangs is seen.
  void about_to_wait();
  // Ends the parameters; `result` is what the library said.
  void returned(gni_return_t result);
  // What the call left behind `pointer`; only where it says that it did.
  template <typename T>
  void out(const char* name, const T* pointer) {
    if (!has_output_ || pointer == nullptr) return;
    begin(name);
    if constexpr (std::is_pointer_v<T>) {
      show(static_cast<const void*>(*pointer));
    } else if constexpr (std::is_same_v<T, gni_mem_handle_t>) {
      show(pointer);
    } else if constexpr (std::is_same_v<T, gni_post_state_t>) {
      state(*pointer);
    } else {
      number(name, static_cast<std::uint64_t>(*pointer), sizeof(T));
    }
  }
  // The event of a completion queue.
  void event(const char* name, const gni_cq_entry_t* entry);
  // Writes the line, or counts it when it is one more look that found nothing.
  gni_return_t end();

 private:
  static constexpr std::uint32_t kMostListed = 8;

  void begin(const char* name);
  void number(const char* name, std::uint64_t value, std::size_t bytes);
  void state(gni_post_state_t state);
  void show(const void* pointer);
  void show(const gni_mem_handle_t* handle);
  void show(const gni_post_descriptor_t* descriptor);
  void show(const gni_smsg_attr_t* attributes);
  void show(const gni_job_limits_t* limits);
  void show(const gni_msgq_attr_t* attributes);
  void show(const gni_dqueue_in_attr_t* attributes);
  void show(const gni_mem_segment_t* segment);
  template <typename T>
  void show(T* pointer) {
    if constexpr (std::is_function_v<T>) {
      show(reinterpret_cast<const void*>(pointer));
    } else if constexpr (!std::is_const_v<T>) {
      show(static_cast<const T*>(pointer));
    } else {
      show(static_cast<const void*>(pointer));
    }
  }
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...);

  std::array<char, 1024> text_;
  std::size_t length_ = 0;
  bool first_ = true;
  bool has_output_ = false;
  gni_return_t result_ = GNI_RC_SUCCESS;
  gni_cq_entry_t entry_before_ = 0;
};

}  // namespace orrery::gni::log
