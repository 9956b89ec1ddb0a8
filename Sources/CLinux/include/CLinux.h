// Linux interfaces that Swift's Glibc module does not show.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <netinet/tcp.h>

// The headers have these only under _GNU_SOURCE, which the Glibc module is made without and would then disagree with.
extern int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
extern int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *signals);
