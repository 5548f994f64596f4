// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// What a client asks of an API's library, one line a call: liborrery_log_<api>.so, which `orrery run --log`
// loads in front of the client (LD_PRELOAD). Its functions, which generate_calls.py writes from the API's
// headers, call the library's own and say what was asked and what came of it. Without the option nothing of
// this is loaded.
namespace orrery::common::log {

// The interface that this library logs; each defines its own.
struct Interface {
  const char* name;     // in each line
  const char* library;  // the file that has the functions
  // Whether a call, by its line, only asks for something: that it says the same as before is not news.
  bool (*asks_alone)(const char* line);
};
extern const Interface kLogged;

// The function of that name behind ours; ends the process with a message when there is none.
void* find_next(const char* name);

// The library's own function, looked up at the first call.
template <typename Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  template <typename... Args>
  auto operator()(Args... args) {
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
class CallLine {
 public:
  explicit CallLine(const char* name);

  // Before a call that may sleep: what hangs is seen.
  void about_to_wait();
  // Ends the parameters of a call that gives nothing back.
  void returned();
  // Writes the line, or counts it when it is one more look that found nothing.
  void end();

 protected:
  static constexpr std::uint32_t kMostListed = 8;

  void begin(const char* name);
  void number(const char* name, std::uint64_t value, std::size_t bytes);
  void show(const void* pointer);
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...);
  // Ends the parameters. `has_output`: answers are there to be shown. `nothing`: a client that polls gets it
  // again and again.
  void result(const char* text, bool has_output, bool nothing);
  const char* text() const { return text_.data(); }
  bool has_output() const { return has_output_; }

 private:
  std::array<char, 1024> text_;
  std::size_t length_ = 0;
  bool first_ = true;
  bool has_output_ = false;
  bool nothing_ = false;
};

// A call of one API: `Derived` has show() for what its pointers point to, of structures returned(), and may
// have out_value() for answers that are more than numbers.
// Usage: Call call("EpBind"); call.in("endpoint", ep); call.returned(result); call.out("size", size);
// call.end();
template <typename Derived>
class LoggedCall : public CallLine {
 public:
  using CallLine::CallLine;

  // A parameter as the client gave it.
  template <typename T>
  void in(const char* name, T value) {
    begin(name);
    if constexpr (std::is_pointer_v<T>) {
      show_pointer(value);
    } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      if constexpr (requires { self().show_value(name, value); }) {
        self().show_value(name, value);
      } else {
        number(name, static_cast<std::uint64_t>(value), sizeof(T));
      }
    } else if constexpr (requires { self().show(&value); }) {
      self().show(&value);
    } else {
      add("{...}");
    }
  }
  // Several handles or numbers, of which there are `count`.
  template <typename T>
  void list(const char* name, const T* values, std::uint32_t count) {
    begin(name);
    if (values == nullptr) return CallLine::show(nullptr);
    add("[");
    for (std::uint32_t i = 0; i < count && i < kMostListed; ++i) {
      if (i > 0) add(", ");
      if constexpr (std::is_pointer_v<T>) {
        CallLine::show(static_cast<const void*>(values[i]));
      } else {
        number(name, static_cast<std::uint64_t>(values[i]), sizeof(T));
      }
    }
    add(count > kMostListed ? ", ...]" : "]");
  }
  // What the call left behind `pointer`; only where it says that it did.
  template <typename T>
  void out(const char* name, const T* pointer) {
    if (!has_output() || pointer == nullptr) return;
    begin(name);
    if constexpr (requires { self().out_value(*pointer); }) {
      self().out_value(*pointer);
    } else if constexpr (std::is_pointer_v<T>) {
      CallLine::show(static_cast<const void*>(*pointer));
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      number(name, static_cast<std::uint64_t>(*pointer), sizeof(T));
    } else {
      show_pointer(pointer);
    }
  }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
  template <typename T>
  void show_pointer(T* pointer) {
    if constexpr (std::is_function_v<T>) {
      CallLine::show(reinterpret_cast<const void*>(pointer));
    } else if constexpr (requires { self().show(static_cast<const T*>(pointer)); }) {
      self().show(static_cast<const T*>(pointer));
    } else {
      CallLine::show(static_cast<const void*>(pointer));
    }
  }
};

}  // namespace orrery::common::log
