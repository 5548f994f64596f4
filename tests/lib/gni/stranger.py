#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: stranger.py PID: a process of another user, which opens whatever it can reach of the processes below PID,
# writes there what they do not expect, and prints what it got, until its input ends.
import array, collections, os, random, select, socket, struct, sys

NOBODY = 65534
got = collections.Counter()
held = collections.deque(maxlen=64)  # connections that stay open for a while


def below(root):
    parents = {}
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                with open(f'/proc/{name}/stat') as stat:
                    parents[int(name)] = int(stat.read().rsplit(')', 1)[1].split()[1])
            except OSError:
                pass
    found, more = {root}, True
    while more:
        more = [pid for pid, parent in parents.items() if parent in found and pid not in found]
        found.update(more)
    return found


def garbage():
    kind = random.randrange(4)
    if kind == 0:
        return bytes(random.randrange(1, 64))
    if kind == 1:
        return random.randbytes(random.choice([1, 8, 64, 512, 4096]))
    if kind == 2:
        return struct.pack('<QIIQ', 0xffffffffffffffff, 0x7fffffff, 1, 0x7f0000000000)
    return b'cmd=init pmi_version=1 pmi_subversion=1\ncmd=barrier_in\ncmd=finalize\n'


def open_file(path, kind):
    got[kind + ' tried'] += 1
    try:
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return
    got[kind + ' opened'] += 1
    os.close(fd)


def talk(s):
    s.settimeout(0.02)
    try:
        for _ in range(random.randrange(4)):
            memory = os.memfd_create('stranger')
            os.ftruncate(memory, random.choice([0, 1, 4096, 1 << 30]))
            s.sendmsg([garbage()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [memory]))]
                      if s.family == socket.AF_UNIX else [])
            os.close(memory)
        _, handed, _, _ = s.recvmsg(4096, 4096)
        got['descriptors handed out'] += len(handed)
    except OSError:
        pass
    if random.random() < 0.5:
        held.append(s)
    else:
        s.close()


def connect(family, address):
    for kind in ((socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM) if family == socket.AF_UNIX
                 else (socket.SOCK_STREAM,)):
        got['sockets tried'] += 1
        s = socket.socket(family, kind)
        try:
            s.settimeout(0.1)
            s.connect(address)
        except OSError:
            s.close()
            continue
        got['sockets reached'] += 1
        talk(s)


def round_of(root):
    pids = below(root) - {root, os.getpid()}
    for pid in pids:
        for what in ('mem', 'maps', 'environ', 'clear_refs', 'oom_score_adj'):
            open_file(f'/proc/{pid}/{what}', 'files')
        for fd in range(3, 80):
            open_file(f'/proc/{pid}/fd/{fd}', 'files')
    for folder in ('/dev/shm', '/run/user/0/orrery', '/tmp/orrery-0'):
        try:
            names = os.listdir(folder)
        except OSError:
            names = []
        for name in names:
            open_file(os.path.join(folder, name), 'files')
    with open('/proc/net/unix') as table:
        for line in table.readlines()[1:]:
            words = line.split()
            if len(words) < 8 or not any(part in words[7] for part in ('orrery', 'run.')):
                continue
            name = words[7]
            connect(socket.AF_UNIX, '\0' + name[1:] if name.startswith('@') else name)


def main():
    root = int(sys.argv[1])
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    except OSError as problem:
        print(f'cannot become another user: {problem}')
        sys.exit(77)
    while not select.select([sys.stdin], [], [], 0)[0]:
        round_of(root)
        got['rounds'] += 1
    for what, times in sorted(got.items()):
        print(f'{what}: {times}')


main()
