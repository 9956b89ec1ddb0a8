// A library that breaks a server's promises, to check that the system tests notice (LD_PRELOAD; the mode is LYING_DISK).
//
//   late     keeps every second write of commits back until the next write: SIGKILL loses what was acknowledged. The log
//            engine writes commits by pwritev2, the directory engine to its journals. Nor does it write how far they were
//            synced, by which the server would notice it itself
//   nosync   syncs nothing: a power cut loses what was acknowledged
//   slow     breaks nothing, but waits 2 ms before it writes or syncs, so that there is much to lose
//
// All of these calls report success.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

typedef ssize_t (*write_call)(int, const struct iovec *, int, off_t, int);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  int file, flags;
  off_t offset;
  struct iovec bytes;
} kept;
static unsigned count;

static bool is_mode(const char *mode) {
  const char *value = getenv("LYING_DISK");
  return value && strcmp(value, mode) == 0;
}

static void wait_if_slow(void) {
  if (is_mode("slow")) usleep(2000);
}

static ssize_t size_of(const struct iovec *parts, int number) {
  ssize_t size = 0;
  for (int i = 0; i < number; i++) size += parts[i].iov_len;
  return size;
}

static void keep(int file, const struct iovec *parts, int number, off_t offset, int flags) {
  kept.file = dup(file);
  kept.offset = offset;
  kept.flags = flags;
  kept.bytes.iov_len = 0;
  kept.bytes.iov_base = malloc(size_of(parts, number));
  for (int i = 0; i < number; i++) {
    memcpy((char *)kept.bytes.iov_base + kept.bytes.iov_len, parts[i].iov_base, parts[i].iov_len);
    kept.bytes.iov_len += parts[i].iov_len;
  }
}

static void write_kept(write_call call) {
  if (!kept.bytes.iov_base) return;
  call(kept.file, &kept.bytes, 1, kept.offset, kept.flags);
  close(kept.file);
  free(kept.bytes.iov_base);
  kept.bytes.iov_base = NULL;
}

ssize_t pwritev2(int file, const struct iovec *parts, int number, off_t offset, int flags) {
  write_call call = (write_call)dlsym(RTLD_NEXT, "pwritev2");
  wait_if_slow();
  if (is_mode("nosync")) return call(file, parts, number, offset, flags & ~(RWF_DSYNC | RWF_SYNC));
  if (!is_mode("late")) return call(file, parts, number, offset, flags);
  pthread_mutex_lock(&lock);
  ssize_t result;
  write_kept(call);
  if (count++ % 2) {
    keep(file, parts, number, offset, flags);
    result = size_of(parts, number);
  } else {
    result = call(file, parts, number, offset, flags);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

// Returns the name of an open file.
static const char *name_of(int file, char *path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, size - 1);
  path[length < 0 ? 0 : length] = 0;
  const char *name = strrchr(path, '/');
  return name ? name + 1 : path;
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
  if (is_mode("late")) {
    char path[4096];
    const char *name = name_of(file, path, sizeof path);
    if (strncmp(name, ".journal-", 9) == 0) {
      struct iovec part = {(void *)bytes, size};
      return pwritev2(file, &part, 1, offset, 0);
    }
    if (strcmp(name, "manifest") == 0 || (strcmp(name, ".journal") == 0 && size == 12)) return size;
  }
  wait_if_slow();
  pthread_mutex_lock(&lock);
  write_kept((write_call)dlsym(RTLD_NEXT, "pwritev2"));
  pthread_mutex_unlock(&lock);
  return ((ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(file, bytes, size, offset);
}

int fdatasync(int file) { return is_mode("nosync") ? 0 : ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file); }

int fsync(int file) { return is_mode("nosync") ? 0 : ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file); }
