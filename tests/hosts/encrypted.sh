#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# encrypted.sh PROGRAM [ARGUMENT...]: a PE of a job whose launcher was told to encrypt the wire: this host's too.
[ "${ORRERY_ENCRYPT-}" = on ] || { echo "ORRERY_ENCRYPT is '${ORRERY_ENCRYPT-}', not 'on'" >&2; exit 1; }
exec "$@"
