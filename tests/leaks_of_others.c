/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * What LeakSanitizer asks a test program that opens the wire or speaks PMIx: libfabric 1.17 forgets the
 * description of an endpoint that is closed, libpmix its own settings. Only what these libraries allocate is
 * left out; our own leaks are still reported. In the program, not in its environment: launchers pass that on
 * or not. */
const char* __lsan_default_suppressions(void);
const char* __lsan_default_options(void);

const char* __lsan_default_suppressions(void) { return "leak:libfabric.so\nleak:libpmix.so\n"; }
const char* __lsan_default_options(void) { return "print_suppressions=0"; }
