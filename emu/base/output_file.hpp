// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

// Opens files in folders where other users may write too, to write into them and to read that. Each function
// returns a descriptor (close-on-exec), or -1 with errno set. Any thread.
namespace orrery {

// A new, empty file under a name that the emulator made up, for example of one PE's record. A regular file
// of this user that has been left there is removed first. EEXIST: something else is there, a link or
// another user's file.
int create_file(const char* path);

// The same, but what is there is added to: for a file that is opened several times. EEXIST as above; ELOOP:
// a link.
int append_to_file(const char* path);

// A file that the user named, emptied: links are followed, devices and pipes are written to. ENXIO: a FIFO
// that no process reads; it is not waited for.
int open_output(const char* path);

// To read what create_file() has made in another process of this user. EEXIST: something else is there, as
// above; ELOOP: a link. A FIFO is not waited for.
int open_created(const char* path);

}  // namespace orrery
