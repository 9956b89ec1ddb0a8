// The minimum that any server does: an epoll loop that sends back what it reads. larder-bench compares servers with it.
//
// With --sync, the minimum that any durable server does: whatever has arrived is appended to a preallocated file with
// one write and one fdatasync, and then sent back.
//
// usage: bench-echo [--sync FILE] SOCKET-PATH
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { EVENTS = 256, READ_SIZE = 65536, ALLOCATION = 64 << 20 };

// What one wakeup has read, from all clients, and who gets which part of it.
static char bytes[EVENTS * READ_SIZE];
static struct { int client; size_t count; } parts[EVENTS];

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void watch(int poll, int descriptor) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
  if (epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
}

static int listen_on(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) {
    fprintf(stderr, "bench-echo: the socket path is too long\n");
    exit(2);
  }
  strcpy(address.sun_path, path);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) fail("socket");
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0) fail("bind");
  if (listen(listener, 4096) != 0) fail("listen");
  return listener;
}

// Returns how many bytes were read. Closes a connection that has ended.
static size_t receive(int client, char *target) {
  ssize_t count = read(client, target, READ_SIZE);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) close(client);
  return count > 0 ? (size_t)count : 0;
}

static void answer(int client, const char *source, size_t count) {
  // Clients read replies before they send more than a socket buffer holds, so that a write is never partial.
  if (write(client, source, count) != (ssize_t)count) close(client);
}

// Appends bytes to the file and makes them durable.
static void append(int file, const char *source, size_t count) {
  static off_t end, capacity;
  if (end + (off_t)count > capacity) {
    int error = posix_fallocate(file, capacity, ALLOCATION);
    if (error != 0) {
      errno = error;
      fail("fallocate");
    }
    capacity += ALLOCATION;
    if (fsync(file) != 0) fail("fsync");
  }
  if (pwrite(file, source, count, end) != (ssize_t)count) fail("pwrite");
  if (fdatasync(file) != 0) fail("fdatasync");
  end += (off_t)count;
}

int main(int count, char **arguments) {
  int file = -1;
  if (count == 4 && strcmp(arguments[1], "--sync") == 0) {
    file = open(arguments[2], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) fail("open");
  } else if (count != 2) {
    fprintf(stderr, "usage: bench-echo [--sync FILE] SOCKET-PATH\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  int listener = listen_on(arguments[count - 1]);
  int poll = epoll_create1(EPOLL_CLOEXEC);
  if (poll < 0) fail("epoll_create1");
  watch(poll, listener);

  struct epoll_event events[EVENTS];
  for (;;) {
    int ready = epoll_wait(poll, events, EVENTS, -1);
    int part_count = 0;
    size_t end = 0;
    for (int index = 0; index < ready; index++) {
      int client = events[index].data.fd;
      if (client == listener) {
        client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client >= 0) watch(poll, client);
        continue;
      }
      size_t received = receive(client, bytes + end);
      if (received == 0) continue;
      if (file < 0) {
        answer(client, bytes, received);
        continue;
      }
      parts[part_count].client = client;
      parts[part_count++].count = received;
      end += received;
    }
    if (part_count == 0) continue;
    append(file, bytes, end);
    const char *start = bytes;
    for (int index = 0; index < part_count; index++) {
      answer(parts[index].client, start, parts[index].count);
      start += parts[index].count;
    }
  }
}
