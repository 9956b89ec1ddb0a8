// Linux interfaces that Swift's Glibc module does not show.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <netinet/tcp.h>

// <sys/socket.h> has it only under _GNU_SOURCE, which the Glibc module is made without and would then disagree with.
extern int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
