/* Stands between SQLite and the kernel: records what is done to the files of a folder, dies, or fails, where it is told.
 *
 * Preloaded into a test process (glibc, Linux). Only calls on paths below FAULT_ROOT count; every other call goes through.
 * A log's `-shm` is left out: it is memory that happens to have a name, and nobody finds it after a power cut.
 *
 *   FAULT_TRACE=file   append every operation with its data to this file, in the order in which they were done
 *   FAULT_ACKS=file    what the process writes to this file is recorded as an acknowledgement; it is no operation
 *   FAULT_KILL=n       SIGKILL in place of operation n (from 1)
 *   FAULT_TORN=1       ... after the first half of its bytes, where that operation is a write
 *   FAULT_FAIL=kinds   letters of the operations that may fail, as in the trace:
 *                      c create, w write, t truncate, s sync, u unlink, m mkdir, r rename
 *   FAULT_AT=n         the n-th of those fails (from 1)
 *   FAULT_ERRNO=e      with this error
 *   FAULT_UNTIL=file   ... and every later one, until this file is there; without it only the n-th fails
 *
 * An operation that failed is recorded as x, so that the records of operations count as FAULT_KILL does.
 * A record: kind (1 byte), length of the path (4), path, a number (8), length of the data (4), data; little-endian. The
 * number is the offset of a write and the new length of a truncate.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS 4096
#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* One lock around each operation and its record: the trace has the order in which the kernel saw them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root, *acks, *fail, *until;
static long kill_at, fail_at, torn, number, failable;
static int failure, trace = -1;
static char *paths[FDS];

__attribute__((constructor)) static void begin(void) {
    const char *value;
    root = getenv("FAULT_ROOT");
    acks = getenv("FAULT_ACKS");
    fail = getenv("FAULT_FAIL");
    until = getenv("FAULT_UNTIL");
    kill_at = (value = getenv("FAULT_KILL")) ? atol(value) : 0;
    torn = (value = getenv("FAULT_TORN")) ? atol(value) : 0;
    fail_at = (value = getenv("FAULT_AT")) ? atol(value) : 0;
    failure = (value = getenv("FAULT_ERRNO")) ? atoi(value) : EIO;
    if ((value = getenv("FAULT_TRACE")))
        trace = REAL(open)(value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int is_ours(const char *path) {
    size_t length = root ? strlen(root) : 0, whole = strlen(path);
    if (!length || strncmp(path, root, length) || (path[length] && path[length] != '/')) return 0;
    return whole < 4 || strcmp(path + whole - 4, "-shm");
}

static const char *path_of(int fd) { return fd >= 0 && fd < FDS ? paths[fd] : NULL; }

static void record(char kind, const char *path, uint64_t at, const void *data, uint32_t size) {
    if (trace < 0) return;
    int kept = errno;
    uint32_t length = strlen(path);
    struct iovec parts[] = {{&kind, 1}, {&length, 4}, {(void *)path, length}, {&at, 8}, {&size, 4}, {(void *)data, size}};
    if (REAL(writev)(trace, parts, 6) != (ssize_t)(17 + length + size)) abort();
    errno = kept;
}

/* Counts an operation. Dies if its number has come; says whether it has to fail. */
static int is_refused(char kind, int fd, const void *data, size_t size, uint64_t at) {
    if (++number == kill_at) {
        /* Half of the bytes: a process dies between two pages of one write. */
        if (torn && kind == 'w' && REAL(pwrite64)(fd, data, size / 2, at) < 0) abort();
        kill(getpid(), SIGKILL);
    }
    if (!fail || !strchr(fail, kind)) return 0;
    if (++failable < fail_at || (failable > fail_at && !until)) return 0;
    if (until && !access(until, F_OK)) return 0;
    errno = failure;
    return 1;
}

static int opened(int fd, const char *path, int flags, int was_there) {
    if (fd < 0 && is_ours(path) && !was_there) record('x', path, 0, NULL, 0);
    if (fd < 0 || fd >= FDS) return fd;
    paths[fd] = is_ours(path) || (acks && !strcmp(path, acks)) ? strdup(path) : NULL;
    if (is_ours(path) && !was_there) record('c', path, 0, NULL, 0);
    if (is_ours(path) && was_there && (flags & O_TRUNC)) record('t', path, 0, NULL, 0);
    return fd;
}

/* Only an open that makes a name is an operation. */
#define OPEN(name, parameters, call)                                                                                   \
    int name parameters {                                                                                              \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = __OPEN_NEEDS_MODE(flags) ? va_arg(rest, mode_t) : 0;                                             \
        va_end(rest);                                                                                                  \
        pthread_mutex_lock(&lock);                                                                                     \
        int was_there = !(flags & O_CREAT) || !access(path, F_OK);                                                     \
        int refused = is_ours(path) && !was_there && is_refused('c', -1, NULL, 0, 0);                                  \
        int fd = opened(refused ? -1 : REAL(name) call, path, flags, was_there);                                       \
        pthread_mutex_unlock(&lock);                                                                                   \
        return fd;                                                                                                     \
    }
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
    pthread_mutex_lock(&lock);
    if (path_of(fd)) free(paths[fd]), paths[fd] = NULL;
    int result = REAL(close)(fd);
    pthread_mutex_unlock(&lock);
    return result;
}

/* What is recorded is what the kernel took: `done`, not what was asked for. */
#define WRITE(name, parameters, call, at)                                                                              \
    ssize_t name parameters {                                                                                          \
        const char *path = path_of(fd);                                                                                \
        if (!path) return REAL(name) call;                                                                             \
        pthread_mutex_lock(&lock);                                                                                     \
        int ack = acks && !strcmp(path, acks);                                                                         \
        uint64_t offset = ack ? 0 : (at);                                                                              \
        ssize_t done = !ack && is_refused('w', fd, data, size, offset) ? -1 : REAL(name) call;                         \
        record(done < 0 ? 'x' : ack ? 'a' : 'w', path, offset, data, done < 0 ? 0 : done);                             \
        pthread_mutex_unlock(&lock);                                                                                   \
        return done;                                                                                                   \
    }
WRITE(write, (int fd, const void *data, size_t size), (fd, data, size), lseek(fd, 0, SEEK_CUR))
WRITE(pwrite, (int fd, const void *data, size_t size, off_t where), (fd, data, size, where), where)
WRITE(pwrite64, (int fd, const void *data, size_t size, off64_t where), (fd, data, size, where), where)

/* A call on a descriptor that has no data, and what it is in the trace. */
#define ON_FD(name, parameters, call, kind, at)                                                                        \
    int name parameters {                                                                                              \
        const char *path = path_of(fd);                                                                                \
        if (!path) return REAL(name) call;                                                                             \
        pthread_mutex_lock(&lock);                                                                                     \
        int result = is_refused(kind, -1, NULL, 0, 0) ? -1 : REAL(name) call;                                          \
        record(result ? 'x' : kind, path, at, NULL, 0);                                                                \
        pthread_mutex_unlock(&lock);                                                                                   \
        return result;                                                                                                 \
    }
ON_FD(ftruncate, (int fd, off_t size), (fd, size), 't', size)
ON_FD(ftruncate64, (int fd, off64_t size), (fd, size), 't', size)
ON_FD(fsync, (int fd), (fd), 's', 0)
ON_FD(fdatasync, (int fd), (fd), 's', 0)

/* A call on names. */
#define ON_NAME(name, parameters, call, kind, other)                                                                   \
    int name parameters {                                                                                              \
        if (!is_ours(path)) return REAL(name) call;                                                                    \
        pthread_mutex_lock(&lock);                                                                                     \
        int result = is_refused(kind, -1, NULL, 0, 0) ? -1 : REAL(name) call;                                          \
        record(result ? 'x' : kind, path, 0, other, strlen(other));                                                    \
        pthread_mutex_unlock(&lock);                                                                                   \
        return result;                                                                                                 \
    }
ON_NAME(unlink, (const char *path), (path), 'u', "")
ON_NAME(mkdir, (const char *path, mode_t mode), (path, mode), 'm', "")
ON_NAME(rename, (const char *path, const char *to), (path, to), 'r', to)
