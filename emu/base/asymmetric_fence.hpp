// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

// A barrier whose whole price is paid by the rare side. The frequent side announces something (a store) and
// then looks at something (a load) with nothing but a compiler barrier between; the rare side changes what is
// looked at and then calls heavy(), which makes every running thread of every enrolled process execute a full
// barrier (membarrier(2), GLOBAL_EXPEDITED). After heavy() either the rare side sees the announcement, or the
// frequent side sees the change.
namespace orrery::asymmetric_fence {

// Enrols this process; to be called once before the frequent side is used. False when the kernel does not
// offer it (or a sandbox forbids it): then the frequent side must announce with a full barrier instead.
bool enrol();
// Whether this process is enrolled. Any thread.
bool enrolled();

// The rare side's barrier: a system call of a few microseconds. When the kernel has no memory for it, an
// enrolled process makes another one, which takes milliseconds. False: there was no barrier; the log of an
// enrolled process says so once.
bool heavy();

}  // namespace orrery::asymmetric_fence
