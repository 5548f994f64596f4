/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */

/* usage: mesh_coordinates NID X Y Z LARGEST_X LARGEST_Y LARGEST_Z: whether the job's machine says so. */
#include <rca_lib.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  rca_mesh_coord_t at, most;
  if (argc != 8 || rca_get_meshcoord((uint16_t)atoi(argv[1]), &at) != 0 || rca_get_max_dimension(&most) != 0)
    return 2;
  printf("%d %d %d of %d %d %d\n", at.mesh_x, at.mesh_y, at.mesh_z, most.mesh_x, most.mesh_y, most.mesh_z);
  const int found[] = {at.mesh_x, at.mesh_y, at.mesh_z, most.mesh_x, most.mesh_y, most.mesh_z};
  for (int i = 0; i < 6; ++i)
    if (found[i] != atoi(argv[2 + i])) return 1;
  return rca_get_meshcoord(65535, &at) == -1 ? 0 : 3; /* neither machine is so large */
}
