// Linux interfaces that Swift's Glibc module does not show.
#pragma once

#include "crc32c.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

// The headers have these only under _GNU_SOURCE, which the Glibc module is made without and would then disagree with.
extern int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
extern int wcwidth(wchar_t character);
extern int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *signals);

// The library's recv and send are cancellation points, and in a process of several threads pay for it in every call.
static inline ssize_t receive_without_cancellation(int socket, void *bytes, size_t count, int flags) {
  return syscall(SYS_recvfrom, socket, bytes, count, flags, NULL, NULL);
}

static inline ssize_t send_without_cancellation(int socket, const void *bytes, size_t count, int flags) {
  return syscall(SYS_sendto, socket, bytes, count, flags, NULL, 0);
}

// The library hides the affinity of threads behind _GNU_SOURCE, too.
static inline long get_affinity_of_thread(unsigned long *mask, size_t size) {
  return syscall(SYS_sched_getaffinity, 0, size, mask);
}

static inline long set_affinity_of_thread(const unsigned long *mask, size_t size) {
  return syscall(SYS_sched_setaffinity, 0, size, mask);
}

// Asks for a cache line that will be needed soon.
static inline void prefetch(const void *address) { __builtin_prefetch(address); }
