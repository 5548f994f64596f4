! SPDX-License-Identifier: BSD-3-Clause
! Copyright 2026 the Orrery authors
! Each part of the Fortran interface once, round a ring.
program ring
  implicit none
  include 'shmem.fh'
  integer :: shmem_my_pe, shmem_n_pes, shmem_int4_fadd
  integer :: me, npes, next, errcode, i
  integer, save :: psync(SHMEM_REDUCE_SYNC_SIZE), from, counter, lock, total, mine
  real(8), save :: work(SHMEM_REDUCE_MIN_WRKDATA_SIZE), numbers(10), sums(10)
  integer :: block(1)
  pointer (block_at, block)
  logical :: good

  psync = SHMEM_SYNC_VALUE
  call shmem_init()
  me = shmem_my_pe()
  npes = shmem_n_pes()
  next = mod(me + 1, npes)
  call shmem_barrier_all()

  call shmem_integer_put(from, me, 1, next)
  i = shmem_int4_fadd(counter, 1, 0)
  good = i >= 0 .and. i < npes
  call shmem_barrier_all()
  good = good .and. from == mod(me + npes - 1, npes)
  if (me == 0) good = good .and. counter == npes

  call shmem_set_lock(lock)
  call shmem_integer_get(mine, total, 1, 0)
  mine = mine + 1
  call shmem_integer_put(total, mine, 1, 0)
  call shmem_clear_lock(lock)
  call shmem_barrier_all()
  if (me == 0) good = good .and. total == npes

  do i = 1, 10
    numbers(i) = i * (me + 1)
  end do
  call shmem_barrier_all()
  call shmem_real8_sum_to_all(sums, numbers, 10, 0, 0, npes, work, psync)
  good = good .and. sums(10) == 10 * (npes * (npes + 1)) / 2

  call shpalloc(block_at, 10, errcode, 0)
  good = good .and. errcode == 0
  call shmem_int4_inc(block(1), next)
  call shmem_barrier_all()
  good = good .and. shmem_addr_accessible(block, next)
  call shpdeallc(block_at, errcode, 0)
  if (.not. good) write (*, *) 'PE ', me, ': WRONG'
  call shmem_barrier_all()
  if (me == 0) write (*, *) 'ring: right'
  call shmem_finalize()
end program ring
