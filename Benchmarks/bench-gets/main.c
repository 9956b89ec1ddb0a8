// The minimum that any client of larderd does: one thread gets random keys over several connections, one call at a time
// on each, with an epoll loop of read and write. larder-bench compares the client library with it.
//
// usage: bench-gets SOCKET-PATH CONNECTIONS MILLISECONDS KEYS
//
// Prints the number of calls, their duration in seconds, and the CPU time of this process meanwhile in seconds. Takes
// integers in the byte order of the machine, which must be little-endian. The layout of frames is that of
// Protocol/wire.md.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { header_size = 12, key_size = 16, max_connections = 1024, op_hello = 1, op_store_open = 8, op_get = 16 };

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void refuse(const char *what) {
  fprintf(stderr, "bench-gets: %s\n", what);
  exit(1);
}

static double seconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) refuse("the socket path is too long");
  strcpy(address.sun_path, path);
  int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) fail("socket");
  if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
  return descriptor;
}

// Makes a request with the id 1.
static size_t make_request(uint8_t *frame, uint8_t operation, uint16_t store, const void *body, size_t size) {
  uint32_t length = (uint32_t)(header_size - 4 + size), id = 1;
  memset(frame, 0, header_size);
  memcpy(frame, &length, 4);
  frame[4] = operation;
  memcpy(frame + 6, &store, 2);
  memcpy(frame + 8, &id, 4);
  memcpy(frame + header_size, body, size);
  return header_size + size;
}

// Reads until the reply is whole. Requests follow replies, so that there is never more than one.
static size_t read_reply(int descriptor, uint8_t *reply, size_t capacity) {
  size_t count = 0, whole = header_size;
  while (count < whole) {
    ssize_t moved = read(descriptor, reply + count, capacity - count);
    if (moved <= 0) fail("read");
    count += (size_t)moved;
    uint32_t length = 0;
    if (count >= 4) memcpy(&length, reply, 4);
    if (count >= 4) whole = 4 + (size_t)length;
    if (whole > capacity) refuse("a reply is too long");
  }
  if (reply[4] != 0) refuse("the server refused a request");
  return count;
}

static void write_request(int descriptor, const uint8_t *request, size_t size) {
  // The socket is empty, so that it has room.
  if (write(descriptor, request, size) != (ssize_t)size) fail("write");
}

// Says hello and opens the store "bench".
static uint16_t open_store(int descriptor) {
  static const uint8_t hello[] = {'L', 'R', 'D', 'R', 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0};
  uint8_t request[header_size + sizeof hello], reply[4096];
  write_request(descriptor, request, make_request(request, op_hello, 0, hello, sizeof hello));
  read_reply(descriptor, reply, sizeof reply);
  write_request(descriptor, request, make_request(request, op_store_open, 0, "bench", 5));
  read_reply(descriptor, reply, sizeof reply);
  uint16_t handle;
  memcpy(&handle, reply + header_size, 2);
  return handle;
}

static uint64_t next_random(void) {
  static uint64_t state = 88172645463325252;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static void send_get(int descriptor, uint16_t handle, uint64_t keys) {
  uint8_t request[header_size + key_size], key[key_size] = "key:000000000000";
  uint64_t number = next_random() % keys;
  for (int index = key_size - 1; number > 0; index--, number /= 10) key[index] = (uint8_t)('0' + number % 10);
  write_request(descriptor, request, make_request(request, op_get, handle, key, key_size));
}

int main(int count, char **arguments) {
  if (count != 5) {
    fprintf(stderr, "usage: bench-gets SOCKET-PATH CONNECTIONS MILLISECONDS KEYS\n");
    return 2;
  }
  int connections = atoi(arguments[2]);
  double duration = atof(arguments[3]) * 1e-3;
  uint64_t keys = strtoull(arguments[4], NULL, 10);
  if (connections < 1 || connections > max_connections || duration <= 0 || keys < 1) refuse("an argument is wrong");

  int poll = epoll_create1(EPOLL_CLOEXEC);
  if (poll < 0) fail("epoll_create1");
  static int descriptors[max_connections];
  static uint16_t handles[max_connections];
  for (int index = 0; index < connections; index++) {
    descriptors[index] = connect_to(arguments[1]);
    handles[index] = open_store(descriptors[index]);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)index};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, descriptors[index], &event) != 0) fail("epoll_ctl");
  }

  double start = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), end = start + duration, now = start;
  uint64_t calls = 0;
  for (int index = 0; index < connections; index++) send_get(descriptors[index], handles[index], keys);
  while (now < end) {
    static struct epoll_event events[max_connections];
    int ready = epoll_wait(poll, events, max_connections, -1);
    if (ready < 0 && errno != EINTR) fail("epoll_wait");
    for (int event = 0; event < ready; event++) {
      uint8_t reply[65536];
      uint32_t index = events[event].data.u32;
      read_reply(descriptors[index], reply, sizeof reply);
      calls++;
      send_get(descriptors[index], handles[index], keys);
    }
    now = seconds(CLOCK_MONOTONIC);
  }
  printf("%llu %.6f %.6f\n", (unsigned long long)calls, now - start, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
  return 0;
}
