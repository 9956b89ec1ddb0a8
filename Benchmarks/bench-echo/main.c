// The minimum that any server does: an epoll loop that sends back what it reads. larder-bench compares servers with it.
//
// usage: bench-echo SOCKET-PATH
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

static void echo(int client) {
  static char bytes[65536];
  ssize_t count = read(client, bytes, sizeof bytes);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
    close(client);
    return;
  }
  // Clients read replies before they send more than a socket buffer holds, so that a write is never partial.
  if (count > 0 && write(client, bytes, (size_t)count) != count) close(client);
}

int main(int count, char **arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: bench-echo SOCKET-PATH\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  int listener = listen_on(arguments[1]);
  int poll = epoll_create1(EPOLL_CLOEXEC);
  if (poll < 0) fail("epoll_create1");
  watch(poll, listener);

  struct epoll_event events[256];
  for (;;) {
    int ready = epoll_wait(poll, events, 256, -1);
    for (int index = 0; index < ready; index++) {
      if (events[index].data.fd != listener) {
        echo(events[index].data.fd);
        continue;
      }
      int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (client >= 0) watch(poll, client);
    }
  }
}
