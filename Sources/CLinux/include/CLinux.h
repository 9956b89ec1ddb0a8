// Linux interfaces that Swift's Glibc module doesn't have.
#pragma once

#include "arguments.h"
#include "crc32c.h"
#include "json_scan.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>

// The headers declare these only under _GNU_SOURCE. The Glibc module is built without it, and would then conflict.
extern int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
extern int pipe2(int ends[2], int flags);
extern int wcwidth(wchar_t character);
extern ssize_t preadv2(int file, const struct iovec *rooms, int count, off_t offset, int flags);
extern ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t offset, int flags);
extern int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *signals);

// The library's recv and send are cancellation points, which costs every call in a multithreaded process.
static inline ssize_t receive_without_cancellation(int socket, void *bytes, size_t count, int flags) {
  return syscall(SYS_recvfrom, socket, bytes, count, flags, NULL, NULL);
}

static inline ssize_t send_without_cancellation(int socket, const void *bytes, size_t count, int flags) {
  return syscall(SYS_sendto, socket, bytes, count, flags, NULL, 0);
}

// Sends pieces of memory one after the other.
static inline ssize_t send_pieces_without_cancellation(int socket, struct iovec *pieces, size_t count, int flags) {
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
  return syscall(SYS_sendmsg, socket, &message, flags);
}

// Reads what is in the page cache, without waiting for the disk: RWF_NOWAIT, which the headers declare only under
// _GNU_SOURCE, too.
static inline ssize_t pread_from_cache(int file, void *bytes, size_t count, off_t offset) {
  struct iovec room = {bytes, count};
  return preadv2(file, &room, 1, offset, 0x00000008);
}

// Writes two buffers, one after the other. If `durably` is true, it returns when the bytes and the file's size are on the
// disk: RWF_DSYNC.
static inline ssize_t pwrite_two(
    int file, const void *first, size_t first_count, const void *second, size_t second_count, off_t offset,
    bool durably) {
  struct iovec parts[2] = {{(void *)first, first_count}, {(void *)second, second_count}};
  return pwritev2(file, parts, 2, offset, durably ? 0x00000002 : 0);
}

// Thread affinity, which the headers also declare only under _GNU_SOURCE.
static inline long get_affinity_of_thread(unsigned long *mask, size_t size) {
  return syscall(SYS_sched_getaffinity, 0, size, mask);
}

static inline long set_affinity_of_thread(const unsigned long *mask, size_t size) {
  return syscall(SYS_sched_setaffinity, 0, size, mask);
}

// Returns how many times the calling thread has lost its core to another one while it had something to do. Swift doesn't
// see RUSAGE_THREAD.
static inline long involuntary_switches_of_thread(void) {
  struct rusage usage = {0};
  getrusage(1 /* RUSAGE_THREAD */, &usage);
  return usage.ru_nivcsw;
}

// Sets the length of the calling thread's time slices, in nanoseconds; 0 for the default. Linux heeds it from 6.12 on, for
// threads with the default policy; others are left alone. The headers don't have the call.
static inline long set_time_slice_of_thread(uint64_t nanoseconds) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes = {0};
  long result = syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0);
  if (result != 0 || attributes.policy != 0) return result;
  attributes.runtime = nanoseconds;
  return syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// Forbids core dumps of the process, and that other processes of its user read its memory: PR_SET_DUMPABLE of prctl(2).
static inline int forbid_core_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

// Prefetches a cache line that will be needed soon.
static inline void prefetch(const void *address) { __builtin_prefetch(address); }
