// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/issue.hpp"

namespace orrery::dmapp {

void Issue::start(const Place& place, const nic::Request& request) {
  if (failed_ != Errc::ok) return;
  if (tracker_ == nullptr) {
    switch (mode_) {
      case Mode::blocking:
        tracker_ = &own_;
        break;
      case Mode::syncid:
        tracker_ = &context_.open_named(&name_);
        break;
      case Mode::implicit:
        tracker_ = &context_.implicit();
        break;
    }
  }
  const Errc accepted = context_.start(place, request, *tracker_);
  if (accepted != Errc::ok) failed_ = accepted;
}

dmapp_return_t Issue::finish_slowly(dmapp_syncid_handle_t* syncid) {
  if (failed_ != Errc::ok) {
    abandon();
    return return_of(failed_);
  }
  Tracker& tracker = *tracker_;
  tracker_ = nullptr;
  switch (mode_) {
    case Mode::blocking:
      return return_of(context_.wait(tracker));
    case Mode::syncid:
      *syncid = name_;
      return DMAPP_RC_SUCCESS;
    case Mode::implicit:
      break;
  }
  return DMAPP_RC_SUCCESS;
}

void Issue::abandon() {
  if (tracker_ == nullptr) return;
  Tracker& tracker = *tracker_;
  tracker_ = nullptr;
  if (mode_ == Mode::implicit) return;  // gsync's
  (void)context_.wait(tracker);
  if (mode_ == Mode::syncid) context_.close_named(name_);
}

}  // namespace orrery::dmapp
