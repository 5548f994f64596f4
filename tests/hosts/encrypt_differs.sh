#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# encrypt_differs.sh PROGRAM [ARGUMENT...]: a PE of a job whose first one encrypts the wire, and no other one does.
[ "$PMI_RANK" != 0 ] || export ORRERY_ENCRYPT=on
exec "$@"
