// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/data_segment.hpp"

#include <algorithm>

#include <link.h>

namespace orrery::dmapp {

DataSegment data_segment() {
  DataSegment found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& segment = *static_cast<DataSegment*>(context);
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::uint64_t readonly_end = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& header = info->dlpi_phdr[i];
          const std::uint64_t at = info->dlpi_addr + header.p_vaddr;
          if (header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0) {
            begin = at;
            end = at + header.p_memsz;
          }
          // The loader protects whole pages.
          if (header.p_type == PT_GNU_RELRO) readonly_end = (at + header.p_memsz) & ~std::uint64_t{4095};
        }
        begin = readonly_end > begin && readonly_end <= end ? readonly_end : begin;
        segment = {begin, end - begin};
        return 1;  // the program itself comes first
      },
      &found);
  return found;
}

}  // namespace orrery::dmapp
