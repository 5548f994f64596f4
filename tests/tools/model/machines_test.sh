#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
set -euo pipefail
. "$(dirname "$0")/check.sh"

for name in aries gemini seastar bluegene-l asci-q ideal; do says "$name" machines; done
says '92,544' machines
says 'IN_ORDER' machines --routing
says 'dmapp.afadd                        fetch_amo_miss' machines --operations
says '"priced_as": "matched_put_ack"' machines --operations --json
says '"link_state_bytes"' machines --json
"$orrery" machines --print aries > "$folder/mine.toml"
sed -i 's/groups = { value = 8/groups = { value = 241/' "$folder/mine.toml"
says 'group 240' explain --machine "$folder/mine.toml" put 0 92543 8
sed -i 's/value = 241/value = 242/' "$folder/mine.toml"
refuses "mine.toml: topology.groups = 242: expected 1 .. 241" explain --machine "$folder/mine.toml" put 0 1 8
refuses "is not known" machines --print cray
