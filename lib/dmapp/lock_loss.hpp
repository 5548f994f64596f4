// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

namespace orrery::dmapp {

// The PE that died with the lock of this thread's last call of dmapp_lock_*, where that call failed with
// DMAPP_RC_TRANSACTION_ERROR because a PE that held the lock, or waited for it, died; -1: any other end, or
// it is not known which PE. Any thread. For lib/shmem, which this library exports it to.
[[gnu::visibility("default")]] int lock_lost_with();

}  // namespace orrery::dmapp
